"""``sbench clean``."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from serverless_bench.base.errors import ArchiveError
from serverless_bench.base.units import format_count
from serverless_bench.cli.flags.options import option, run_dir_option, trust_option
from serverless_bench.cli.lookup import RunName, latest_where
from serverless_bench.cli.output.terminal import ExitCode, aside, confirmed, say, working
from serverless_bench.cli.process import load_numpy
from serverless_bench.rundir.listing import LEDGER, as_argument, find_run, latest_run

if TYPE_CHECKING:
    from serverless_bench.job.spec import JobSpec


def _latest(run_dir: Path) -> Path | None:
    """Return the latest run that may have objects; claims and records are objects, too."""
    latest_run(run_dir)
    return latest_where(run_dir, _may_have_objects)


def _may_have_objects(path: Path, job: "JobSpec") -> bool:
    has_keys = (path / LEDGER).is_file() and (path / LEDGER).stat().st_size > 0
    return has_keys or job.control is not None or job.load.folder is not None


@click.command("clean")
@click.argument("run", type=RunName(), required=False, metavar="[RUN]")
@run_dir_option
@option("--yes", is_flag=True, help="Do not ask for confirmation without RUN: for scripts.")
@option("--versions", is_flag=True, help="Also delete versions that a bucket keeps, permanently.")
@trust_option
def command(run: str | None, run_dir: Path, *, yes: bool, versions: bool, trust: bool) -> int:
    """Delete the objects of a run, and only those.

    RUN is the name or the directory of a run. Without RUN the command asks whether to clean the
    latest run that may have objects and has not been cleaned.

    It deletes only keys of the run and their open multipart uploads, and only if they still
    have the content that the run wrote. It deletes claims and records once no late event can
    start any more.
    """
    # Report an unknown name before slow imports.
    directory = _latest(run_dir) if run is None else find_run(run, run_dir)
    if directory is None:
        say(f"no run in {run_dir} has objects to delete")
        return ExitCode.OK
    if run is None:
        aside(f"the latest run with objects: {directory}")
    load_numpy()
    from serverless_bench.driver.clean import clean
    from serverless_bench.rundir.run import load_run

    saved = load_run(directory, detail=False)
    if run is None and not yes:
        objects = format_count(len(saved.ledger()), "object")
        if not confirmed(f"delete {objects} of {saved.path}", hint="sbench clean RUN, or --yes"):
            return ExitCode.OK
    with working(f"deleting the objects of {saved.path}"):
        cleaned = clean(saved, survey=True, versions=versions, trust=trust, on_message=aside)
    nothing = f"{saved.path} wrote no objects: nothing to delete"
    say(*([nothing] if cleaned.wrote_nothing else str(cleaned).split("\n")))
    aside(*cleaned.complaints())
    if cleaned.kept.count:
        aside(f"hint: sbench clean {as_argument(directory)} --versions deletes its versions")
    if cleaned.problems:
        aside(f"hint: look for remaining objects of this run below {saved.job.target.url}")
        return ArchiveError.exit_code
    return ExitCode.OK if cleaned.complete else ExitCode.INCOMPLETE
