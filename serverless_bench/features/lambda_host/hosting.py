"""Support for commands that host a server until they are stopped, or a user's command exits."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from serverless_bench.base.errors import UsageError
from serverless_bench.cli.process import heard

_TICK_S: Final = 0.2
_TIMEOUT_S: Final = 5.0


def stop_on_signals() -> asyncio.Event:
    """Return an event that Ctrl-C, SIGTERM and SIGHUP set to end the command."""
    stop = asyncio.Event()
    for number in heard():
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


async def until_end(
    command: Sequence[str],
    variables: Mapping[str, str],
    stop: asyncio.Event,
    check: Callable[[], None] = lambda: None,
) -> int:
    """Run a command until it exits or ``stop`` is set; return the exit code.

    Parameters
    ----------
    command
        Command and arguments; empty to wait for ``stop`` and return 0.
    variables
        Variables to add to the environment.
    stop
        Event that stops the command.
    check
        Called periodically; an exception from it stops the command, too.

    Raises
    ------
    UsageError
        If the command cannot be run.
    """
    process = None
    endings: set[asyncio.Future[Any]] = {asyncio.ensure_future(stop.wait())}
    if command and not stop.is_set():
        try:
            process = await asyncio.create_subprocess_exec(
                *command, env={**os.environ, **variables}
            )
        except OSError as exc:
            raise UsageError(f"cannot run {command[0]!r}: {exc.strerror}") from exc
        endings.add(asyncio.ensure_future(process.wait()))
    try:
        while not any(end.done() for end in endings):
            check()
            await asyncio.wait(endings, timeout=_TICK_S, return_when=asyncio.FIRST_COMPLETED)
    finally:
        if process is not None and process.returncode is None:
            process.terminate()
            await asyncio.wait({asyncio.ensure_future(process.wait())}, timeout=_TIMEOUT_S)
            if process.returncode is None:
                process.kill()
    code = 0 if process is None else await process.wait()
    return code if code >= 0 else 128 - code
