"""``sbench export``."""

import sys
from pathlib import Path

import click

from serverless_bench.base.errors import UsageError
from serverless_bench.cli.flags.options import FILE
from serverless_bench.cli.job import check_writable
from serverless_bench.cli.lookup import run_argument


@click.command("export")
@run_argument
@click.option("--format", "style", required=True, help="warp, csv, parquet or pywren.")
@click.option(
    "--output",
    type=FILE,
    help="File to write, compressed if it ends in .zst.  [default: standard output, for text]",
)
def command(directory: Path, style: str, output: Path | None) -> None:
    """Export the operations of a run for other tools.

    RUN is the name or the directory of a run; the default is the latest run.

    warp is the op-log for `warp analyze`, pywren the pickle of (start, stop, MB/s), csv and
    parquet are tables of operations.
    """
    from serverless_bench.features.formats.export import export
    from serverless_bench.features.formats.exporters import EXPORTERS

    if output is None and not EXPORTERS.load(style).is_text:
        raise UsageError(f"--format {style} needs a file", hint=f"--output run.{style}")
    check_writable("--output", output)
    export(directory, sys.stdout.buffer if output is None else output, format=style)
