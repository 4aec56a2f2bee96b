"""The command ``sbench localstack``."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from serverless_bench.cli.flags.options import FILE, harmless, option, port_option
from serverless_bench.cli.output.terminal import aside, say
from serverless_bench.lab.hosting import stop_on_signals, until_end
from serverless_bench.lab.lambda_host.settings import HostSettings
from serverless_bench.lab.localstack.server import (
    CREDENTIALS,
    REGION,
    LocalStackInstallation,
    default_directory,
    prepare,
    started,
)
from serverless_bench.plugins import extra

_BANNER: Final = """\
LocalStack {version} at {url}
  export {exports}
  sam build && sam deploy
  sbench write --executor lambda --stack sbench --number 50 --mb 8
stop it with Ctrl-C; it keeps no data"""
_TICK_S: Final = 0.2


@click.command("localstack")
@port_option
@harmless("--concurrency", type=int, default=1000, help="Maximum number of concurrent functions.")
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
        from serverless_bench.lab.lambda_host.server import serving  # noqa: F401
    root = default_directory()
    installed = prepare(root, aside)
    with tempfile.TemporaryDirectory(prefix="sbench-lambda-logs-") as logs:
        settings = HostSettings(logs=Path(logs), region=REGION, concurrency=concurrency)
        return asyncio.run(_run(installed, settings, log or root / "localstack.log", port, command))


async def _run(
    installed: LocalStackInstallation,
    settings: HostSettings,
    log: Path,
    port: int,
    command: Sequence[str],
) -> int:
    from serverless_bench.lab.lambda_host.server import serving

    stop = stop_on_signals()
    async with serving(settings, [], None) as host:
        with started(installed, port=port, lambda_host=host.url, log=log) as localstack:
            while not stop.is_set() and not await asyncio.to_thread(localstack.ready):
                await asyncio.sleep(_TICK_S)
            variables = {"AWS_ENDPOINT_URL": localstack.endpoint_url, **CREDENTIALS}
            variables["AWS_DEFAULT_REGION"] = settings.region
            if not command:
                exports = " ".join(f"{name}={value}" for name, value in variables.items())
                banner = _BANNER.format(
                    version=installed.version, url=localstack.endpoint_url, exports=exports
                )
                say(*banner.splitlines())
            return await until_end(command, variables, stop, localstack.check)
