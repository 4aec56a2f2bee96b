"""``sbench clean``."""

from pathlib import Path

import click

from serverless_bench.archive import Run, load_run
from serverless_bench.bucket import Deleted, delete
from serverless_bench.cli.exit_codes import ExitCode
from serverless_bench.cli.options import run_argument
from serverless_bench.cli.target import open_target_of


@click.command("clean")
@run_argument
def command(directory: Path) -> int:
    """Delete the objects of a run, and nothing else.

    Only keys in the run's own ledger are touched, and open multipart uploads of those.
    """
    deleted = delete_objects(load_run(directory, detail=False))
    if deleted is None:
        click.echo(f"{directory} wrote no objects: nothing to delete")
        return ExitCode.OK
    click.echo(f"deleted {deleted.objects} objects, aborted {deleted.uploads} uploads")
    for key in deleted.failed:
        click.echo(f"sbench: the store refused to delete {key}", err=True)
    return ExitCode.INCOMPLETE if deleted.failed else ExitCode.OK


def delete_objects(run: Run) -> Deleted | None:
    """Delete what a run wrote; None if that was nothing."""
    ledger = run.ledger()
    if not ledger:
        return None
    with open_target_of(run) as target:
        return delete(target, ledger)
