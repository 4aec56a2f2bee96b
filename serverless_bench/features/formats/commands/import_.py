"""``sbench import``."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from serverless_bench.cli.flags.of_jobs import settings
from serverless_bench.cli.flags.options import (
    FILE,
    SIZE,
    format_option,
    new_name,
    option,
    run_dir_option,
)
from serverless_bench.cli.output.terminal import note, say
from serverless_bench.cli.process import load_numpy


@click.command("import")
@click.argument("file", type=FILE)
@option("--from", help="pywren, lithops, warp or sai3.  [default: detected]")
@option(
    "--phase",
    type=click.Choice(["write", "read"]),
    help="Kind of the operations in a pickle without bytes.  [default: write]",
)
@option("--size", type=SIZE, help="Size of the objects in a pickle without bytes, as in 512MiB.")
@settings("network_rate")
@run_dir_option
@settings("name")
@format_option
def command(file: Path, run_dir: Path, name: str | None, **flags: Any) -> int:
    """Import the results of another tool into a run directory, and report on them.

    FILE is a pickle of PyWren or Lithops, or the op-log of warp, sai3-bench or s3dlio,
    plain or compressed. A pickle is not executed: a pickle with classes is rejected.
    """
    load_numpy()
    from serverless_bench.features.formats.importing import import_run
    from serverless_bench.metrics.summary import summarize
    from serverless_bench.report import FOR_TERMINALS, open_reporter, write_report

    reporter = open_reporter(flags["format"])
    directory = run_dir / new_name("import", name)

    def name_directory(notes: Iterable[str]) -> None:
        say(f"run directory: {directory}", err=flags["format"] not in FOR_TERMINALS)
        note(notes)

    run = import_run(
        file,
        directory,
        {"phase": flags["phase"], "size_bytes": flags["size"]},
        tool=flags["from"],
        network_rate=flags["network_rate"],
        on_notes=name_directory,
        detail=False,
    )
    summary = summarize(run)
    write_report(reporter, summary, run, sys.stdout)
    return summary.exit_code()
