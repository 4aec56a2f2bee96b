"""LocalStack while a command or the user works with it."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from serverless_bench.cli.output.terminal import aside, say
from serverless_bench.features.lambda_host.hosting import stop_on_signals, until_end
from serverless_bench.features.lambda_host.server import serving
from serverless_bench.features.lambda_host.settings import HostSettings
from serverless_bench.features.localstack.server import (
    CREDENTIALS,
    REGION,
    LocalStackInstallation,
    default_directory,
    prepare,
    started,
)

_BANNER: Final = """\
LocalStack {version} at {url}
  export {exports}
  sam build && sam deploy
  sbench write --executor lambda --stack sbench --number 50 --mb 8
stop it with Ctrl-C; it keeps no data"""
_TICK_S: Final = 0.2


def run(command: Sequence[str], port: int, concurrency: int, log: Path | None) -> int:
    """Run LocalStack, and a command with its address in the environment; return the exit code.

    Parameters
    ----------
    command
        The command; empty to run LocalStack until a signal.
    port
        Port to listen on; 0 for a free one.
    concurrency
        Maximum number of concurrent functions.
    log
        File for the output of LocalStack; None for a file in the cache.
    """
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
    stop = stop_on_signals()
    async with serving(settings, [], None) as host:
        with started(installed, port=port, lambda_host=host.url, log=log) as localstack:
            while not stop.is_set() and not await asyncio.to_thread(localstack.ready):
                await asyncio.sleep(_TICK_S)
            variables = {
                "AWS_ENDPOINT_URL": localstack.endpoint_url,
                **CREDENTIALS,
                "AWS_DEFAULT_REGION": REGION,
            }
            if not command:
                say(
                    *_BANNER.format(
                        version=installed.version,
                        url=localstack.endpoint_url,
                        exports=" ".join(f"{name}={value}" for name, value in variables.items()),
                    ).splitlines()
                )
            return await until_end(command, variables, stop, localstack.check)
