"""Importers of other tools' results, each with one module and one line here."""

from pathlib import Path
from typing import Final

from serverless_bench.base.errors import UsageError
from serverless_bench.base.plugins import Registry
from serverless_bench.features.formats.importers.base import Hints, Imported, Importer
from serverless_bench.features.formats.importers.content import open_content

IMPORTERS: Final = Registry[Importer](
    "importers",
    {
        "lithops": "serverless_bench.features.formats.importers.lithops:IMPORTER",
        "pywren": "serverless_bench.features.formats.importers.pywren:IMPORTER",
        "sai3": "serverless_bench.features.formats.importers.sai3:IMPORTER",
        "warp": "serverless_bench.features.formats.importers.warp:IMPORTER",
    },
)


def read_results(path: Path, hints: Hints, *, name: str | None = None) -> Imported:
    """Parse a file of another tool; nothing is written.

    Parameters
    ----------
    path
        The file.
    hints
        Information that the file may lack.
    name
        Name in ``IMPORTERS``; None to detect the format.

    Raises
    ------
    UsageError
        If the file has no results, or invalid results.
    PluginError
        If the name is unknown, or the file needs a library that is not installed.
    """
    named = None if name is None else IMPORTERS.load(name)
    content = open_content(path)
    if named is not None:
        if not named.takes(content):
            raise UsageError(f"{path} is not in the format of --from {name}", hint="omit --from")
        return named.read(content, hints)
    for importer_name in IMPORTERS.names():
        importer = IMPORTERS.load(importer_name)
        if importer.recognises(content):
            return importer.read(content, hints)
    raise UsageError(
        f"{path} has no results of {', '.join(IMPORTERS)}",
        hint='see "Import and export" in the documentation',
    )
