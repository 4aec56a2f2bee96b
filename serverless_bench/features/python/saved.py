"""Results of runs that were made earlier, here or by another tool."""

from os import PathLike
from pathlib import Path

from serverless_bench.base.plugins import TOOLS
from serverless_bench.base.units import parse_size
from serverless_bench.driver.run import new_directory
from serverless_bench.features.python.result import Result
from serverless_bench.rundir.run import as_run


def load_run(run: str | PathLike[str], *, detail: bool = True) -> Result:
    """Return a run with its figures.

    Parameters
    ----------
    run
        Name of a run in ``sbench-runs``, or its directory.
    detail
        Whether to load keys, request ids and similar text, half the memory of a large run.

    Raises
    ------
    ArchiveError
        If there is no such run, or it has another schema.

    Examples
    --------
    >>> sbench.load_run(written.path).job.workload, sbench.load_run(written.path.name).summary.ok
    ('write', 4)
    """
    return Result(as_run(run, detail=detail))


def import_results(
    file: str | PathLike[str],
    directory: str | Path | None = None,
    *,
    tool: str | None = None,
    phase: str | None = None,
    size: int | str | None = None,
) -> Result:
    """Import results of PyWren, Lithops, warp or sai3-bench, like ``sbench import``.

    Parameters
    ----------
    file
        A pickle of PyWren or Lithops, which is not executed, or an op-log, plain or compressed.
    directory
        The new run directory; None for a new one in ``sbench-runs``.
    tool
        pywren, lithops, warp or sai3; None to detect it.
    phase
        ``write`` or ``read``, if a pickle has no bytes; None means write.
    size
        Size of each object, if a pickle has no bytes: a number of bytes, or a text such as 512MiB.

    Raises
    ------
    UsageError
        If the file has no results, or invalid results.

    Examples
    --------
    >>> sbench.export(written, "write.pickle", format="pywren")
    >>> sbench.import_results("write.pickle", size="1MiB").summary.ok
    4
    """
    size_bytes = parse_size(size) if isinstance(size, str) else size
    hints = {"phase": phase, "size_bytes": size_bytes}
    return Result(TOOLS.load("import")(file, new_directory(directory, "import"), hints, tool=tool))
