"""``sbench report``."""

import sys
from pathlib import Path

import click

from serverless_bench.base.plugins import TOOLS
from serverless_bench.cli.flags.options import (
    format_option,
    option,
    prices_option,
    run_dir_option,
)
from serverless_bench.cli.lookup import RunName, the_run
from serverless_bench.cli.output.terminal import ExitCode, note


@click.command("report")
@click.argument("run", type=RunName(), required=False, metavar="[RUN]")
@run_dir_option
@option("--with-warm-up", is_flag=True, help="Include the warm-up rounds in the results.")
@prices_option
@format_option
def command(
    run: str | None,
    run_dir: Path,
    *,
    with_warm_up: bool,
    prices: Path | None,
    **flags: str,
) -> int:
    """Report on a run, finished or not, from its records.

    RUN is the name or the directory of a run, or of a series of runs, whose answer is shown
    again; the default is the latest run.
    """
    style = flags["format"]
    if run is not None and "answer" in TOOLS and TOOLS.load("answer")(run, run_dir, style):
        return ExitCode.OK
    return _report(the_run(run, run_dir), with_warm_up, prices, style)


def _report(directory: Path, with_warm_up: bool, prices: Path | None, style: str) -> int:  # noqa: FBT001 - as the command
    from serverless_bench.metrics.summary import summarize
    from serverless_bench.report import open_reporter, write_report
    from serverless_bench.rundir.digests import file_problems
    from serverless_bench.rundir.run import load_run

    reporter = open_reporter(style)
    run = load_run(directory, detail=False)
    # The short report counts unreadable lines, so that one of them suffices.
    note(run.problems[: 1 if style == "text" else None])
    contradictions = file_problems(run)
    note(contradictions)
    price_table = None if prices is None else TOOLS.load("prices")(prices)
    summary = summarize(run, with_warmup=with_warm_up, prices=price_table)
    write_report(reporter, summary, run, sys.stdout)
    return summary.exit_code(contradictions)
