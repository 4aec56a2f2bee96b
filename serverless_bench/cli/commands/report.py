"""``sbench report``."""

import sys
from pathlib import Path

import click

from serverless_bench.cli.flags.options import format_option, option, prices_option
from serverless_bench.cli.lookup import run_argument
from serverless_bench.cli.output.terminal import note


@click.command("report")
@run_argument
@option("--with-warm-up", is_flag=True, help="Include the warm-up rounds in the results.")
@prices_option
@format_option
def command(directory: Path, *, with_warm_up: bool, prices: Path | None, **flags: str) -> int:
    """Report on a run, finished or not, from its records.

    RUN is the name or the directory of a run; the default is the latest run.
    """
    from serverless_bench.analysis.summary import summarize
    from serverless_bench.reporters import open_reporter, write_report
    from serverless_bench.rundir.digests import file_problems
    from serverless_bench.rundir.run import load_run

    reporter = open_reporter(flags["format"])
    run = load_run(directory, detail=False)
    # The short report counts unreadable lines, so that one of them suffices.
    note(run.problems[: 1 if flags["format"] == "text" else None])
    contradictions = file_problems(run)
    note(contradictions)
    price_table = None
    if prices is not None:
        from serverless_bench.aws.cost.prices import load_prices

        price_table = load_prices(prices)
    summary = summarize(run, with_warmup=with_warm_up, prices=price_table)
    write_report(reporter, summary, run, sys.stdout)
    return summary.exit_code(contradictions)
