"""Commands that host something until they are stopped, or until a command of the user ends."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from serverless_bench.cli.interrupts import heard
from serverless_bench.errors import UsageError

_TICK_S: Final = 0.2
_TIMEOUT_S: Final = 5.0


def stop_on_signals() -> asyncio.Event:
    """Return an event that Ctrl-C, SIGTERM and SIGHUP set: they are how it ends."""
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
    """Run a command to its end, or to ours; return its exit code.

    Parameters
    ----------
    command
        Empty to wait for ``stop``, and to return 0.
    variables
        What its environment has besides ours.
    stop
        Ends it when set.
    check
        Called again and again; what it raises ends the command, too.

    Raises
    ------
    UsageError
        If the command cannot be run.
    """
    process = None
    ends: set[asyncio.Future[Any]] = {asyncio.ensure_future(stop.wait())}
    if command and not stop.is_set():
        try:
            process = await asyncio.create_subprocess_exec(
                *command, env={**os.environ, **variables}
            )
        except OSError as exc:
            raise UsageError(f"cannot run {command[0]!r}: {exc.strerror}") from exc
        ends.add(asyncio.ensure_future(process.wait()))
    try:
        while not any(end.done() for end in ends):
            check()
            await asyncio.wait(ends, timeout=_TICK_S, return_when=asyncio.FIRST_COMPLETED)
    finally:
        if process is not None and process.returncode is None:
            process.terminate()
            await asyncio.wait({asyncio.ensure_future(process.wait())}, timeout=_TIMEOUT_S)
            if process.returncode is None:
                process.kill()
    code = 0 if process is None else await process.wait()
    return code if code >= 0 else 128 - code
