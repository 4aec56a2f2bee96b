"""``sbench store``: management of the embedded store."""

import click

from serverless_bench.base.units import format_count, format_size
from serverless_bench.cli.output.terminal import Group, confirmed, say


@click.group("store", cls=Group)
def command() -> None:
    """Keep the embedded store running between commands, or empty it.

    By default each command starts and stops the store, and the data are kept.
    """


@command.command("start")
def start() -> None:
    """Start the embedded store and leave it running."""
    # The import is here because it loads botocore, which is slow and only needed for the bucket.
    from serverless_bench.driver.target import embedded_target
    from serverless_bench.stores.embedded import Lease, default_directory

    with embedded_target() as target:
        lease = Lease.take(default_directory())
        if lease is not None:
            lease.ask("pin")
            lease.release()
        say(f"running at {target.endpoint_url}, bucket {target.bucket}")


@command.command("stop")
def stop() -> None:
    """Stop the embedded store as soon as no command uses it."""
    from serverless_bench.stores.embedded import Lease, default_directory

    lease = Lease.take(default_directory(), start=False)
    if lease is None:
        say("not running")
        return
    others = lease.ask("unpin")["others"]
    lease.release()
    say(f"stops after the end of {format_count(others, 'other command')}" if others else "stopped")


@command.command("status")
@click.option("--env", is_flag=True, help="Print shell lines for other S3 tools.")
def status(*, env: bool) -> None:
    """Show whether the embedded store is running, its address, and the size of its data."""
    from serverless_bench.stores.embedded import Lease, default_directory, kept_bytes

    directory = default_directory()
    lease = Lease.take(directory, start=False)
    if lease is None:
        say("not running")
    elif env:
        say(
            f"export AWS_ENDPOINT_URL={lease.address.endpoint_url}",
            f"export AWS_ACCESS_KEY_ID={lease.address.access_key}",
            f"export AWS_SECRET_ACCESS_KEY={lease.address.secret_key}",
        )
    else:
        say(f"running at {lease.address.endpoint_url}, bucket {lease.address.bucket}")
    if not env:
        say(f"{format_size(kept_bytes(directory))} in {directory}")
    if lease is not None:
        lease.release()


@command.command("clear")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation: for scripts.")
def clear_command(*, yes: bool) -> None:
    """Delete all data of the embedded store, of all runs; the store must not be running."""
    from serverless_bench.stores.embedded import clear, default_directory, kept_bytes

    directory = default_directory()
    size = format_size(kept_bytes(directory))
    if not directory.exists():
        say(f"{directory} does not exist: nothing to delete")
    elif yes or confirmed(f"delete all objects of the embedded store, {size}", hint="--yes"):
        clear(directory)
        say(f"deleted {size} in {directory}")
