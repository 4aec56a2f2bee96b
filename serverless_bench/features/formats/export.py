"""Export of a run for other tools, to a file that may be compressed."""

from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from serverless_bench.base.plugins import extra
from serverless_bench.features.formats.exporters import EXPORTERS
from serverless_bench.rundir.files import failing, replacing
from serverless_bench.rundir.run import AnyRun, as_run


def export(run: AnyRun, out: str | Path | BinaryIO, *, format: str) -> None:
    """Write the operations of a run for another tool.

    Parameters
    ----------
    run
        A run, its name or its directory.
    out
        File to write, compressed if its name ends in .zst; or a file that is open for bytes.
    format
        ``warp`` for the op-log for ``warp analyze``, ``csv`` or ``parquet`` for the
        table of operations, ``pywren`` for the pickle of (start, stop, MB/s).

    Raises
    ------
    ArchiveError
        If the directory holds no run, or the file cannot be written.
    PluginError
        If the format is unknown, or a library that it needs is not installed.

    Examples
    --------
    >>> sbench.export(written, "operations.csv", format="csv")
    >>> len(Path("operations.csv").read_text().splitlines())
    5
    """
    exporter = EXPORTERS.load(format)
    run = as_run(run)
    with ExitStack() as stack:
        exporter.write(run, _opened(Path(out), stack) if isinstance(out, str | Path) else out)


def _opened(path: Path, stack: ExitStack) -> BinaryIO:
    """Return the file to write to, with compression if its name requires it."""
    with failing(f"cannot write {path}"):
        file = stack.enter_context(replacing(path))
    if path.suffix != ".zst":
        return file
    with extra("warp", f"{path}", otherwise=", or omit .zst"):
        import zstandard
    return stack.enter_context(zstandard.ZstdCompressor().stream_writer(file, closefd=False))
