"""``sbench clean``."""

from pathlib import Path

import click

from serverless_bench.cli.exit_codes import ExitCode
from serverless_bench.cli.options import run_argument


@click.command("clean")
@run_argument
def command(directory: Path) -> int:
    """Delete the objects of a run, and nothing else.

    Only keys in the run's own ledger are touched, and open multipart uploads of those,
    and only if what is there is what the run wrote. Claims and records go when no late
    delivery can begin any more.
    """
    from serverless_bench.driver.clean import clean

    cleaned = clean(directory, survey=True, on_message=lambda text: click.echo(text, err=True))
    click.echo(cleaned)
    for key in cleaned.deleted.failed:
        click.echo(f"sbench: the store refused to delete {key}", err=True)
    for key in cleaned.deleted.foreign:
        click.echo(f"sbench: {key} is not what this run wrote, and stays", err=True)
    return ExitCode.OK if cleaned.complete else ExitCode.INCOMPLETE
