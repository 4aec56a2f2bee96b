"""``sbench resume``."""

import sys
from pathlib import Path

import click

from serverless_bench.cli.flags.options import format_option, progress_option, trust_option
from serverless_bench.cli.lookup import run_argument
from serverless_bench.cli.output.terminal import aside, complain, note
from serverless_bench.driver.policy import Style


@click.command("resume")
@run_argument
@trust_option
@progress_option
@format_option
def command(
    directory: Path,
    format: str,
    progress: Style,
    *,
    trust: bool,
) -> int:
    """Resume a run after its driver died or functions were lost.

    RUN is the name or the directory of a run; the default is the latest run.

    The command collects the records that have arrived since, waits for functions that are
    still running, and launches the missing functions in a second wave. It never repeats a
    function that has a record.
    """
    from serverless_bench.driver.origin import confirm
    from serverless_bench.driver.run import CutShort, resume_job
    from serverless_bench.executors.base import RunProgress
    from serverless_bench.metrics.summary import summarize
    from serverless_bench.report import open_reporter, write_report
    from serverless_bench.rundir.digests import file_problems
    from serverless_bench.rundir.run import load_run, lost_functions

    reporter, run, live = open_reporter(format), load_run(directory), RunProgress()
    problem: CutShort | None = None
    if run.ended and not lost_functions(run):
        aside(f"{directory} is complete: nothing to resume")
    else:
        if places := confirm(run, trust=trust):
            aside(places)
        try:
            run = resume_job(run, trust=trust, progress=progress, live=live)
        except CutShort as exc:
            problem, run = exc, exc.run
    contradictions = file_problems(run)
    note([*live.unprinted(), *contradictions])
    summary = summarize(run)
    write_report(reporter, summary, run, sys.stdout)
    sys.stdout.flush()
    return summary.exit_code(contradictions) if problem is None else complain(problem)
