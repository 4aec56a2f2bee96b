"""``sbench store``: a longer life for the embedded store."""

import click

from serverless_bench.cli.output.help import Group
from serverless_bench.cli.output.terminal import confirmed, say
from serverless_bench.stores.embedded import Lease, clear, default_directory, kept_bytes
from serverless_bench.units import format_count, format_size


@click.group("store", cls=Group)
def command() -> None:
    """Keep the embedded store running between commands, or empty it.

    Without this, each command starts the store and ends it, and the data stay.
    """


@command.command("start")
def start() -> None:
    """Start the embedded store and leave it running."""
    # It makes the bucket with botocore, which takes long to load: not for the other commands.
    from serverless_bench.driver.target import embedded_target

    with embedded_target() as target:
        lease = Lease.take(default_directory())
        if lease is not None:
            lease.ask("pin")
            lease.release()
        say(f"running at {target.endpoint_url}, bucket {target.bucket}")


@command.command("stop")
def stop() -> None:
    """End the embedded store as soon as no command uses it."""
    lease = Lease.take(default_directory(), start=False)
    if lease is None:
        say("not running")
        return
    others = lease.ask("unpin")["others"]
    lease.release()
    say(f"ends when {format_count(others, 'other command')} have" if others else "stopped")


@command.command("status")
@click.option("--env", is_flag=True, help="Print shell lines for other S3 tools.")
def status(*, env: bool) -> None:
    """Say whether the embedded store runs, where, and how much it keeps."""
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
@click.option("--yes", is_flag=True, help="Do not ask: for scripts.")
def clear_command(*, yes: bool) -> None:
    """Delete all that the embedded store keeps, of every run; it must not be running."""
    directory = default_directory()
    size = format_size(kept_bytes(directory))
    if not directory.exists():
        say(f"{directory} is not there: nothing to delete")
    elif yes or confirmed(f"delete all objects of the embedded store, {size}", hint="--yes"):
        clear(directory)
        say(f"deleted {size} in {directory}")
