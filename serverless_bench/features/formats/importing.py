"""Import of another tool's results into a run directory."""

from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from serverless_bench.features.formats.importers import read_results
from serverless_bench.features.formats.importers.base import Hints
from serverless_bench.features.formats.importers.saving import save
from serverless_bench.rundir.run import Run, load_run


def import_run(
    file: str | PathLike[str],
    directory: Path,
    hints: Mapping[str, Any],
    *,
    tool: str | None = None,
    network_rate: float | None = None,
    on_notes: Callable[[Iterable[str]], object] = lambda _: None,
    detail: bool = True,
) -> Run:
    """Write a run directory with the results in a file, and return the run.

    Parameters
    ----------
    file
        The results.
    directory
        The new run directory.
    hints
        Values of ``Hints``.
    tool
        Name of the importer; None to detect the format.
    network_rate
        Rate of the network, as in ``JobSpec``.
    on_notes
        Called with notes about the results before anything is written.
    detail
        Same as for ``load_run``.

    Raises
    ------
    UsageError, PluginError, ArchiveError
        Same as for ``read_results`` and ``save``.
    """
    imported = read_results(Path(file), Hints(**hints), name=tool)
    on_notes(imported.notes)
    save(imported, directory, network_rate=network_rate)
    # Do not keep two copies of the operations in memory, which may be millions.
    del imported
    return load_run(directory, detail=detail)
