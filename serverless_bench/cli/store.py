"""``sbench store``: a longer life for the embedded store."""

import click

from serverless_bench.cli.help import Group
from serverless_bench.cli.terminal import confirmed
from serverless_bench.stores.embedded import Lease, clear, default_directory, kept_bytes
from serverless_bench.units import format_count, format_size


@click.group("store", cls=Group)
def command() -> None:
    """Keep the embedded store running between commands, or empty it.

    Without this, each command starts the store and ends it, and the data stay.
    """


@command.command("start")
def start() -> int:
    """Start the embedded store and leave it running."""
    # It makes the bucket with botocore, which takes long to load: not for the other commands.
    from serverless_bench.driver.target import embedded_target

    with embedded_target() as target:
        lease = Lease.take(default_directory())
        if lease is not None:
            lease.ask("pin")
            lease.release()
        click.echo(f"running at {target.endpoint_url}, bucket {target.bucket}")
    return 0


@command.command("stop")
def stop() -> int:
    """End the embedded store as soon as no command uses it."""
    lease = Lease.take(default_directory(), start=False)
    if lease is None:
        click.echo("not running")
        return 0
    others = lease.ask("unpin")["others"]
    lease.release()
    click.echo(f"ends when {format_count(others, 'other command')} have" if others else "stopped")
    return 0


@command.command("status")
@click.option("--env", is_flag=True, help="Print shell lines for other S3 tools.")
def status(*, env: bool) -> int:
    """Say whether the embedded store runs, where, and how much it keeps."""
    directory = default_directory()
    lease = Lease.take(directory, start=False)
    if lease is not None and env:
        address = lease.address
        click.echo(f"export AWS_ENDPOINT_URL={address.endpoint_url}")
        click.echo(f"export AWS_ACCESS_KEY_ID={address.access_key}")
        click.echo(f"export AWS_SECRET_ACCESS_KEY={address.secret_key}")
    elif lease is not None:
        address = lease.address
        click.echo(f"running at {address.endpoint_url}, bucket {address.bucket}")
    else:
        click.echo("not running")
    if not env:
        click.echo(f"{format_size(kept_bytes(directory))} in {directory}")
    if lease is not None:
        lease.release()
    return 0


@command.command("clear")
@click.option("--yes", is_flag=True, help="Do not ask: for scripts.")
def clear_command(*, yes: bool) -> int:
    """Delete all that the embedded store keeps, of every run; it must not be running."""
    directory = default_directory()
    size = format_size(kept_bytes(directory))
    if not directory.exists():
        click.echo(f"{directory} is not there: nothing to delete")
        return 0
    what = f"delete all objects of the embedded store, {size}"
    if not (yes or confirmed(what, hint="--yes")):
        return 0
    clear(directory)
    click.echo(f"deleted {size} in {directory}")
    return 0
