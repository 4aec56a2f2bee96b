"""``sbench report``."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from serverless_bench.base.errors import UsageError
from serverless_bench.base.plugins import TOOLS
from serverless_bench.cli.exit_codes import ExitCode
from serverless_bench.cli.flags.options import (
    PAGE,
    format_option,
    option,
    prices_option,
    run_dir_option,
)
from serverless_bench.cli.lookup import RunName, answer_of, the_run
from serverless_bench.cli.output.terminal import note, show

if TYPE_CHECKING:
    from serverless_bench.rundir.answers import Answer


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
    if run is not None and (series := answer_of(run, run_dir)) is not None:
        _, answer = series
        if flags["format"] == PAGE:
            click.echo(TOOLS.load("answer-page")(answer, run), nl=False)
        else:
            show(flags["format"], answer.result, _lines(answer, run, flags["format"]))
        return ExitCode.OK
    return _report(the_run(run, run_dir), with_warm_up, prices, flags["format"])


def _lines(answer: "Answer", name: str, style: str) -> tuple[str, ...]:
    """Return the lines of an answer.

    Raises
    ------
    UsageError
        If there are none in this style.
    """
    styles = {"text": answer.text, "full": answer.text, "markdown": answer.markdown, "json": ()}
    if style not in styles:
        hint = f"it is shown as {', '.join((*styles, PAGE))}"
        raise UsageError(f"{name} is a series of runs, without a {style} report", hint=hint)
    return styles[style]


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
    price_table = None
    if prices is not None:
        price_table = TOOLS.load("prices")(prices)
    summary = summarize(run, with_warmup=with_warm_up, prices=price_table)
    write_report(reporter, summary, run, sys.stdout)
    return summary.exit_code(contradictions)
