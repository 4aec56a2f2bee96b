"""``sbench resume``."""

from functools import partial
from pathlib import Path

import click

from serverless_bench.cli.flags.options import format_option, progress_option, trust_option
from serverless_bench.cli.lookup import run_argument
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
    from serverless_bench.cli.continued_run import continue_run
    from serverless_bench.driver.run import resume_job

    resume = partial(resume_job, progress=progress)
    return continue_run(directory, format, resume, verb="resume", trust=trust)
