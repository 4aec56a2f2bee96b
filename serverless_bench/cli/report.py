"""``sbench report``."""

import sys
from pathlib import Path

import click

from serverless_bench.archive import load_run
from serverless_bench.cli.exit_codes import exit_code_of
from serverless_bench.cli.options import format_option, option, run_argument
from serverless_bench.reduce import summarize
from serverless_bench.reporters import open_reporter


@click.command("report")
@run_argument
@option("--with-warm-up", is_flag=True, help="Count the rounds of the warm-up like all others.")
@format_option
def command(directory: Path, *, with_warm_up: bool, **flags: str) -> int:
    """Report on a run directory, finished or not, from its records alone."""
    reporter = open_reporter(flags["format"])
    summary = summarize(load_run(directory, detail=False), with_warmup=with_warm_up)
    reporter(summary, sys.stdout)
    return exit_code_of(summary)
