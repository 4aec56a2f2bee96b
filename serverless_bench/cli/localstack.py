"""``sbench localstack``."""

import asyncio
import os
import signal
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

import click

from serverless_bench import plugins
from serverless_bench.cli.options import option, port_option
from serverless_bench.errors import UsageError
from serverless_bench.lambda_host.settings import Settings
from serverless_bench.stores.localstack.environment import Installed, default_directory, prepare
from serverless_bench.stores.localstack.server import CREDENTIALS, REGION, LocalStack, started

_SERVER: Final = {"lambda-host": "serverless_bench.lambda_host.server:serving"}
_TELL_IT: Final = """\
LocalStack {version} at {url}
  export {exports}
  sam build && sam deploy
  sbench write --executor lambda --stack sbench --number 50 --mb 8
ends with Ctrl-C, and keeps nothing"""
_TICK_S: Final = 0.2
_TIMEOUT_S: Final = 5.0


@click.command("localstack")
@port_option
@option("--concurrency", type=int, default=1000, show_default=True, help="Functions at once.")
@option(
    "--log",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for what LocalStack says; one in the cache directory without it.",
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND ...]")
def command(command: tuple[str, ...], port: int, concurrency: int, log: Path | None) -> int:
    """Run LocalStack, with functions as processes, to try a stack without an account.

    The first time it is installed, in an environment of its own: 350 MB, from the
    package index. With a COMMAND, run it with LocalStack's address in its environment,
    and end with it.
    """
    root = default_directory()
    installed = prepare(root, partial(click.echo, err=True))
    with tempfile.TemporaryDirectory(prefix="sbench-lambda-logs-") as logs:
        settings = Settings(logs=Path(logs), region=REGION, concurrency=concurrency)
        return asyncio.run(_run(installed, settings, log or root / "localstack.log", port, command))


async def _run(
    installed: Installed, settings: Settings, log: Path, port: int, command: Sequence[str]
) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Ctrl-C and SIGTERM are how it ends.
        loop.add_signal_handler(number, stop.set)
    serving = plugins.load("commands", _SERVER, "lambda-host")
    async with serving(settings, [], None) as host:
        with started(installed, port=port, lambda_host=host.url, log=log) as localstack:
            while not stop.is_set() and not await asyncio.to_thread(localstack.ready):
                await asyncio.sleep(_TICK_S)
            told = {"AWS_ENDPOINT_URL": localstack.endpoint_url, **CREDENTIALS}
            told["AWS_DEFAULT_REGION"] = settings.region
            if not command:
                exports = " ".join(f"{name}={value}" for name, value in told.items())
                click.echo(
                    _TELL_IT.format(
                        version=installed.version, url=localstack.endpoint_url, exports=exports
                    )
                )
            return await _until_its_end(localstack, stop, command, told)


async def _until_its_end(
    localstack: LocalStack, stop: asyncio.Event, command: Sequence[str], told: dict[str, str]
) -> int:
    """Wait for Ctrl-C, for the command's end, or for an end that nobody asked for."""
    process = None
    if command and not stop.is_set():
        try:
            process = await asyncio.create_subprocess_exec(*command, env={**os.environ, **told})
        except OSError as exc:
            raise UsageError(f"cannot run {command[0]!r}: {exc.strerror}") from exc
    try:
        while not stop.is_set() and (process is None or process.returncode is None):
            localstack.check()
            await asyncio.wait({asyncio.ensure_future(stop.wait())}, timeout=_TICK_S)
    finally:
        if process is not None and process.returncode is None:
            process.terminate()
            await asyncio.wait({asyncio.ensure_future(process.wait())}, timeout=_TIMEOUT_S)
            if process.returncode is None:
                process.kill()
    if process is None:
        return 0
    code = await process.wait()
    return code if code >= 0 else 128 - code
