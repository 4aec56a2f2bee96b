"""Ways to read what other tools measured: one file and one line here each."""

from pathlib import Path
from typing import Final

from serverless_bench.errors import UsageError
from serverless_bench.formats.importers.base import Hints, Imported, Importer
from serverless_bench.formats.importers.content import open_content
from serverless_bench.plugins import Registry

IMPORTERS: Final = Registry[Importer](
    "importers",
    {
        "lithops": "serverless_bench.formats.importers.lithops:IMPORTER",
        "pywren": "serverless_bench.formats.importers.pywren:IMPORTER",
        "sai3": "serverless_bench.formats.importers.sai3:IMPORTER",
        "warp": "serverless_bench.formats.importers.warp:IMPORTER",
    },
)


def read_results(path: Path, hints: Hints, *, name: str | None = None) -> Imported:
    """Return what a file of another tool says; nothing is written.

    Parameters
    ----------
    path
        The file.
    hints
        What the file may not say.
    name
        Name in ``IMPORTERS``; None to go by the content.

    Raises
    ------
    UsageError
        If the file is no results, or says what cannot be.
    PluginError
        If the name is unknown, or the file needs a library that is not installed.
    """
    named = None if name is None else IMPORTERS.load(name)
    content = open_content(path)
    if named is not None:
        if not named.takes(content):
            raise UsageError(
                f"{path} is nothing that --from {name} reads", hint="leave --from away"
            )
        return named.read(content, hints)
    for known in IMPORTERS.names():
        importer = IMPORTERS.load(known)
        if importer.recognises(content):
            return importer.read(content, hints)
    raise UsageError(
        f"{path} holds no results of {', '.join(IMPORTERS)}",
        hint="docs/import-export.md lists what can be imported",
    )
