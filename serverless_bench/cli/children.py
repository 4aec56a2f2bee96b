"""A server of ours that runs until Ctrl-C, or until a command that was given to it ends."""

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Final

from serverless_bench.errors import UsageError
from serverless_bench.plugins import require

if TYPE_CHECKING:
    from serverless_bench.lambda_host.functions import Function
    from serverless_bench.lambda_host.scripted import Scripted
    from serverless_bench.lambda_host.server import Serving
    from serverless_bench.lambda_host.settings import Settings

_TICK_S: Final = 0.2
_TIMEOUT_S: Final = 3.0
"""How long a command may take to end once it is asked to; then it is killed."""


def open_lambda_host(
    settings: "Settings", functions: "Sequence[Function]" = (), scripted: "Scripted | None" = None
) -> "AbstractAsyncContextManager[Serving]":
    """Return a Lambda host that runs for the length of a block; see ``serving``.

    Raises
    ------
    PluginError
        If its library is not installed.
    """
    require("aiohttp", "sbench lambda-host needs", extra="lambda-host")
    from serverless_bench.lambda_host.server import serving

    return serving(settings, functions, scripted)


def stopped_by_signals() -> asyncio.Event:
    """Return an event that Ctrl-C, SIGTERM and SIGHUP set: that is how a server ends."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    return stop


async def wait_for_end(
    stop: asyncio.Event,
    command: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
    *,
    check: Callable[[], None] = lambda: None,
) -> int:
    """Return when ``stop`` is set or the command ends; its exit code, or 0 without one.

    Parameters
    ----------
    stop
        Ends the wait, and the command.
    command
        To run meanwhile.
    variables
        Added to its environment.
    check
        Called again and again; raises to end the wait.

    Raises
    ------
    UsageError
        If the command cannot be run.
    """
    process = None
    if command and not stop.is_set():
        environment = {**os.environ, **(variables or {})}
        try:
            process = await asyncio.create_subprocess_exec(*command, env=environment)
        except OSError as exc:
            raise UsageError(f"cannot run {command[0]!r}: {exc.strerror}") from exc
    ends: list[asyncio.Task[Any]] = [asyncio.create_task(stop.wait())]
    if process is not None:
        ends.append(asyncio.create_task(process.wait()))
    try:
        while not any(end.done() for end in ends):
            check()
            await asyncio.wait(ends, timeout=_TICK_S, return_when=asyncio.FIRST_COMPLETED)
    finally:
        ends[0].cancel()
        if process is not None and process.returncode is None:
            process.terminate()
            await asyncio.wait(ends[1:], timeout=_TIMEOUT_S)
            if process.returncode is None:
                process.kill()
    if process is None:
        return 0
    code = await process.wait()
    return code if code >= 0 else 128 - code
