"""``sbench clean``."""

import math
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from serverless_bench.cli.exit_codes import ExitCode
from serverless_bench.cli.lookup import RunName, the_run
from serverless_bench.cli.options import option, run_dir_option
from serverless_bench.cli.resume import relocated
from serverless_bench.cli.target import open_target_of
from serverless_bench.cli.terminal import confirmed, working
from serverless_bench.clock import sleep, wall_ns
from serverless_bench.job.spec import Target
from serverless_bench.units import NS_PER_S, format_count, format_size

if TYPE_CHECKING:
    from serverless_bench.driver.cleanup import Deleted
    from serverless_bench.rundir.run import Run

_MARGIN_S = 5.0
"""What the clocks of driver and workers may be apart."""
_NO_LIST = "uploads not looked for (this store does not list them)"


@click.command("clean")
@click.argument("run", type=RunName(), required=False, metavar="[RUN]")
@run_dir_option
@option("--yes", is_flag=True, help="Do not ask, though no RUN is named: for scripts.")
def command(run: str | None, run_dir: Path, *, yes: bool) -> int:
    """Delete the objects of a run, and nothing else.

    RUN is a run's name or its directory. Without it the latest run is meant, and you are asked.

    Only keys in the run's own ledger are touched, and open multipart uploads of those,
    and only if what is there is what the run wrote. Claims and records go when no late
    delivery can begin any more.
    """
    from serverless_bench.rundir.run import load_run

    saved = load_run(the_run(run, run_dir), detail=False)
    if run is None and not yes:
        objects = format_count(len(saved.ledger()), "object")
        if not confirmed(f"delete {objects} of {saved.path}", hint="sbench clean RUN, or --yes"):
            return ExitCode.OK
    with working(f"deleting what {saved.path} wrote"):
        cleaned = delete_objects(saved, survey=True)
    if cleaned is None:
        click.echo(f"{saved.path} wrote no objects: nothing to delete")
        return ExitCode.OK
    deleted = cleaned.deleted
    records = f", {deleted.control} claims and records" if saved.job.control else ""
    aborted = (
        f"aborted {format_count(deleted.uploads, 'upload')}" if deleted.lists_uploads else _NO_LIST
    )
    click.echo(f"deleted {format_count(deleted.objects, 'object')}{records}, {aborted}")
    if cleaned.rest:
        click.echo(cleaned.rest)
    for key in deleted.failed:
        click.echo(f"sbench: the store refused to delete {key}", err=True)
    for key in deleted.foreign:
        click.echo(f"sbench: {key} is not what this run wrote, and stays", err=True)
    return ExitCode.INCOMPLETE if deleted.failed or deleted.foreign else ExitCode.OK


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """What was deleted, and what else is there."""

    deleted: "Deleted"
    rest: str
    """A line about objects below the prefix that are not of the run; empty if there are none."""


def delete_objects(run: "Run", *, survey: bool = False) -> Cleaned | None:
    """Delete what a run wrote; None if that was nothing.

    With ``survey`` the whole prefix is listed after that, to say what else is there.
    """
    from serverless_bench.cli.array_files import is_in_files, remove_arrays
    from serverless_bench.driver.cleanup import Deleted, delete, delete_control
    from serverless_bench.driver.run import resume_job
    from serverless_bench.rundir.archive import refuse_if_locked

    if is_in_files(run.job):
        return Cleaned(deleted=Deleted(objects=remove_arrays(run)), rest="")
    ledger = run.ledger()
    if not ledger and run.job.control is None:
        return None
    if not run.ended:
        refuse_if_locked(run.path)
    with open_target_of(run) as target:
        job = relocated(run.job, target)
        died_ns = wall_ns() if _is_unfinished(run) else None
        if job.control is not None and died_ns is not None:
            click.echo("its driver ended early: waiting for functions that still run", err=True)
            run = resume_job(job, run.path, launch=False)
        deleted = delete(target, ledger)
        if job.control is not None:
            _outwait(run, died_ns)
            control = delete_control(job.control, run.run_id)
            deleted.control = control.control
            deleted.failed += control.failed
            deleted.foreign += control.foreign
        return Cleaned(deleted=deleted, rest=_rest(target) if survey else "")


def _is_unfinished(run: "Run") -> bool:
    """Tell whether functions may run that nobody waits for: the driver died, or was ended."""
    from serverless_bench.rundir.tables import ABSENT, is_text

    lost = is_text(run.functions["status"], "lost")
    return not run.ended or bool((run.functions["collected_ns"][lost] == ABSENT).any())


def _outwait(run: "Run", died_ns: int | None) -> None:
    """Return when no delivery of this run can begin any more.

    As long as one can, its claim has to stay: it is what makes a second delivery stop.
    """
    submitted_ns = int(run.functions["submitted_ns"].max(initial=0))
    last_ns = max(submitted_ns, died_ns or 0)
    until_ns = last_ns + round((run.job.start_timeout_s + _MARGIN_S) * NS_PER_S)
    left_s = (until_ns - wall_ns()) / NS_PER_S
    if left_s > 0:
        click.echo(f"waiting {math.ceil(left_s)} s for deliveries that may come late", err=True)
        sleep(left_s)


def _rest(target: Target) -> str:
    """Say what else lies below the prefix: it costs money, and is not of this run."""
    from serverless_bench.driver.target import explained, open_s3, open_uploads

    objects = size = 0
    with explained(target), closing(open_s3(target)) as client:
        pages = client.get_paginator("list_objects_v2")
        for page in pages.paginate(Bucket=target.bucket, Prefix=target.prefix):
            # Counted here: rclone does not say KeyCount.
            sizes = [entry["Size"] for entry in page.get("Contents", ())]
            objects += len(sizes)
            size += sum(sizes)
    uploads = open_uploads(target)
    if not objects and not uploads:
        return ""
    where = f"s3://{target.bucket}/{target.prefix}"
    number = "" if uploads is None else f", {format_count(len(uploads), 'open upload')}"
    embedded = "" if target.store is None else "; sbench store clear deletes all that is there"
    return (
        f"not of this run, and still there below {where}: {format_count(objects, 'object')}"
        f" ({format_size(size)}){number}{embedded}"
    )
