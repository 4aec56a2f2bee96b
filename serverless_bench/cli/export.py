"""``sbench export``."""

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

import click

from serverless_bench.cli.job import check_writable
from serverless_bench.cli.lookup import run_argument
from serverless_bench.cli.options import option
from serverless_bench.errors import PluginError, UsageError


@click.command("export")
@run_argument
@click.option("--format", "style", required=True, help="warp, csv, parquet or pywren.")
@option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write; .zst at its end compresses it.  [default: standard output, for text]",
)
def command(directory: Path, style: str, out: Path | None) -> None:
    """Write the operations of a run for other tools.

    RUN is a run's name or its directory; the latest run without it.

    warp is the op-log that `warp analyze` reads, pywren the pickle of (start, stop,
    MB/s), csv and parquet are the table of operations.
    """
    from serverless_bench.formats.exporters import open_exporter
    from serverless_bench.rundir.archive import load_run

    exporter = open_exporter(style)
    if out is None and not exporter.is_text:
        raise UsageError(f"--format {style} needs a file", hint=f"--out run.{style}")
    check_writable("--out", out)
    run = load_run(directory)
    with ExitStack() as stack:
        exporter.write(run, sys.stdout.buffer if out is None else _opened(out, stack))


def _opened(path: Path, stack: ExitStack) -> BinaryIO:
    """Return the file to write to, compressed if its name says so."""
    file = stack.enter_context(path.open("wb"))
    if path.suffix != ".zst":
        return file
    try:
        import zstandard
    except ModuleNotFoundError as exc:
        raise PluginError(
            f"{path} needs 'zstandard', which is not installed",
            hint="pip install 'serverless-bench[warp]', or leave .zst away",
        ) from exc
    writer = zstandard.ZstdCompressor().stream_writer(file, closefd=False)
    return stack.enter_context(writer)
