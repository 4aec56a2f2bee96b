"""``sbench resume``."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from serverless_bench.cli.exit_codes import exit_code_of
from serverless_bench.cli.lookup import run_argument
from serverless_bench.cli.options import format_option
from serverless_bench.cli.target import open_target_of
from serverless_bench.job.spec import JobSpec, Target

if TYPE_CHECKING:
    from serverless_bench.rundir.run import Run


@click.command("resume")
@run_argument
@format_option
def command(directory: Path, format: str) -> int:  # noqa: A002 - the flag's name
    """Go on with a run whose driver died, or that lost functions.

    RUN is a run's name or its directory; the latest run without it.

    Records that came meanwhile are collected, functions that still run are waited for,
    and what is missing then is launched again, as a second wave. What has a record is
    never run again.
    """
    from serverless_bench.analysis.summary import summarize
    from serverless_bench.cli.progress import RunView, progress
    from serverless_bench.driver.run import CutShort, resume_job
    from serverless_bench.executors.base import RunProgress
    from serverless_bench.reporters import open_reporter
    from serverless_bench.rundir.run import load_run

    reporter, run = open_reporter(format), load_run(directory)
    problem: CutShort | None = None
    if run.ended and not _missing(run):
        click.echo(f"{directory} is complete: nothing to resume", err=True)
    else:
        live = RunProgress()
        with open_target_of(run) as target:
            job = relocated(run.job, target)
            with progress(RunView(job, _missing(run), live)) as on_outcome:
                try:
                    run = resume_job(job, directory, live=live, on_outcome=on_outcome)
                except CutShort as exc:
                    problem, run = exc, exc.run
        for note in live.notes:
            click.echo(f"note: {note}", err=True)
    summary = summarize(run)
    reporter(summary, sys.stdout)
    sys.stdout.flush()
    if problem is None:
        return exit_code_of(summary)
    click.echo(f"sbench: {problem}\nhint: {problem.hint}", err=True)
    return problem.exit_code


def relocated(job: JobSpec, target: Target) -> JobSpec:
    """Return a saved job with the address that its store has now."""

    def moved(saved: Target) -> Target:
        return replace(saved, endpoint_url=target.endpoint_url, region=target.region)

    control = None if job.control is None else moved(job.control)
    return replace(job, target=moved(job.target), control=control)


def _missing(run: "Run") -> int:
    return int((run.functions["status"] == "lost").sum())
