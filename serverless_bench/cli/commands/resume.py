"""``sbench resume``."""

import sys
from pathlib import Path

import click

from serverless_bench.cli.flags.options import format_option, progress_option, trust_option
from serverless_bench.cli.lookup import run_argument
from serverless_bench.cli.output.terminal import aside, complain, note
from serverless_bench.driver.live.display import Style


@click.command("resume")
@run_argument
@trust_option
@progress_option
@format_option
def command(
    directory: Path,
    format: str,  # noqa: A002 - the flag's name
    progress: Style,
    *,
    trust: bool,
) -> int:
    """Go on with a run whose driver died, or that lost functions.

    RUN is a run's name or its directory; the latest run without it.

    Records that came meanwhile are collected, functions that still run are waited for,
    and what is missing then is launched again, as a second wave. What has a record is
    never run again.
    """
    from serverless_bench.analysis.summary import summarize
    from serverless_bench.driver.origin import confirm
    from serverless_bench.driver.run import CutShort, resume_job
    from serverless_bench.executors.base import RunProgress
    from serverless_bench.reporters import open_reporter, write_report
    from serverless_bench.rundir.digests import file_problems
    from serverless_bench.rundir.run import load_run, lost_functions

    reporter, run, live = open_reporter(format), load_run(directory), RunProgress()
    problem: CutShort | None = None
    if run.ended and not lost_functions(run):
        aside(f"{directory} is complete: nothing to resume")
    else:
        if where := confirm(run, trust=trust):
            aside(where)
        try:
            run = resume_job(run, trust=trust, progress=progress, live=live)
        except CutShort as exc:
            problem, run = exc, exc.run
    contradictions = file_problems(run)
    note([*live.notes, *contradictions])
    summary = summarize(run)
    write_report(reporter, summary, run, sys.stdout)
    sys.stdout.flush()
    if problem is not None:
        return complain(problem)
    return summary.exit_code(contradictions)
