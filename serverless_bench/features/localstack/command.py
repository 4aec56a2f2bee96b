"""The command ``sbench localstack``."""

from pathlib import Path

import click

from serverless_bench.base.plugins import extra
from serverless_bench.cli.flags.options import FILE, option, port_option


@click.command("localstack")
@port_option
@option("--concurrency", type=int, default=1000, help="Maximum number of concurrent functions.")
@option(
    "--log",
    type=FILE,
    help="File for LocalStack's output; by default a file in the cache directory.",
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND ...]")
def command(command: tuple[str, ...], port: int, concurrency: int, log: Path | None) -> int:
    """Run LocalStack, with functions as processes, to try a stack without an account.

    The first call installs it into a separate environment: 350 MB, from the
    package index. With a COMMAND, run it with LocalStack's address in its environment,
    and exit with it.
    """
    # Refuse before the installation, which takes minutes.
    with extra("lambda-host", "sbench localstack"):
        from serverless_bench.features.localstack.session import run
    return run(command, port, concurrency, log)
