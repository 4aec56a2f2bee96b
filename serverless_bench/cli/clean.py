"""``sbench clean``."""

from pathlib import Path

import click

from serverless_bench.archive import load_run
from serverless_bench.bucket import delete
from serverless_bench.cli.exit_codes import ExitCode
from serverless_bench.cli.options import run_argument
from serverless_bench.cli.target import open_target_of


@click.command("clean")
@run_argument
def command(directory: Path) -> int:
    """Delete the objects of a run, and nothing else.

    Only keys in the run's own ledger are touched, and open multipart uploads of those.
    """
    run = load_run(directory, detail=False)
    ledger = run.ledger()
    if not ledger:
        click.echo(f"{directory} wrote no objects: nothing to delete")
        return ExitCode.OK
    with open_target_of(run) as target:
        deleted = delete(target, ledger)
    click.echo(f"deleted {deleted.objects} objects, aborted {deleted.uploads} uploads")
    for key in deleted.failed:
        click.echo(f"sbench: the store refused to delete {key}", err=True)
    return ExitCode.INCOMPLETE if deleted.failed else ExitCode.OK
