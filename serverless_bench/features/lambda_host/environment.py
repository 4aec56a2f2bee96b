"""An execution environment: a process that requests events and responds to them."""

import asyncio
import json
import signal
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from serverless_bench.base.clock import monotonic_ns, utc_stamp, wall_ns
from serverless_bench.base.process import linux_status
from serverless_bench.features.lambda_host.functions import LATEST, LambdaFunction

TAIL_BYTES: Final = 4096
"""Maximum length of the log that an invocation returns (AWS Lambda API reference, Invoke)."""
MAX_RESPONSE_BYTES: Final = 6_291_556
"""Maximum response for the Runtime API (message of AWS' runtime)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InvokeRequest:
    """A delivery of an event."""

    request_id: str
    payload: bytes
    client_context: str = ""
    fatal: bool = False
    """Whether to kill the environment as soon as it has the event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InvokeResponse:
    """Result of a delivery."""

    body: bytes
    kind: str = ""
    """AWS' name of the failure; empty for a success."""
    log: bytes = b""
    """Part of the log for this delivery, at most ``TAIL_BYTES``."""


def failed(kind: str, message: str) -> InvokeResponse:
    """Return the response for a function that did not respond."""
    body = {"errorType": kind, "errorMessage": message}
    return InvokeResponse(body=json.dumps(body).encode(), kind=kind)


@dataclass(eq=False)
class InitError(Exception):
    """The environment never requested a first event; ``response`` has the reason."""

    response: InvokeResponse


def not_started(reason: str, kind: str = "Runtime.ExitError") -> InitError:
    """Return the error of an environment that did not report an error itself."""
    return InitError(failed(kind, f"RequestId:  Error: {reason}"))


@dataclass(slots=True, kw_only=True, eq=False)
class Environment:
    """A process and its state in the Runtime API.

    ``Pool.spawn`` creates it; after ``started`` it serves one ``invoke`` at a time.
    """

    function: LambdaFunction
    stream: str
    """Name of the log stream."""
    log: Path
    kill: Callable[[int], None]
    """Function that kills the process with a number, and all processes started by it."""
    init_s: float
    pid: int = 0
    exited: asyncio.Future[int] = field(init=False)
    failure: bytes = b""
    """Initialisation error that it posted."""
    started_ns: int = field(default_factory=monotonic_ns)
    init_ms: float | None = None
    """Time from the order to its first request for an event; reported only once."""
    _idle: asyncio.Event = field(default_factory=asyncio.Event)
    _orders: "asyncio.Queue[Mapping[str, Any] | None]" = field(default_factory=asyncio.Queue)
    _current: tuple[str, "asyncio.Future[InvokeResponse]"] | None = None

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return not self.exited.done()

    # Methods for the Runtime API.

    async def next_order(self) -> Mapping[str, Any] | None:
        """Return the next event for the process; None if there will be no more events."""
        self._idle.set()
        order = await self._orders.get()
        self._idle.clear()
        return order

    def respond(self, request_id: str, response: InvokeResponse) -> bool:
        """Accept the response of the process; return whether it had that request."""
        if self._current is None or self._current[0] != request_id or self._current[1].done():
            return False
        self._current[1].set_result(response)
        return True

    # Methods for the host.

    async def started(self) -> None:
        """Wait until the process requests its first event.

        Raises
        ------
        InitError
            If it fails to do so.
        """
        if not await self._in_time(self._idle.wait(), self.init_s):
            await self.end()
            error = not_started(
                f"INIT_REPORT Status: timeout after {self.init_s:.2f} s", "Sandbox.Timedout"
            )
        elif self._idle.is_set():
            self.init_ms = (monotonic_ns() - self.started_ns) / 1e6
            return
        elif self.failure:
            error = InitError(InvokeResponse(body=self.failure, kind="Init"))
        else:
            error = not_started(_exit_text(self.exited.result()))
        error.response = replace(error.response, log=self._tail(0) if self.log.exists() else b"")
        raise error

    async def invoke(self, call: InvokeRequest, timeout_s: float) -> InvokeResponse:
        """Have the process handle one event, after which it may have ended."""
        answered: asyncio.Future[InvokeResponse] = asyncio.get_running_loop().create_future()
        self._current = (call.request_id, answered)
        start_ns = monotonic_ns()
        log_position = self._note(f"START RequestId: {call.request_id} Version: {LATEST}\n")
        self._orders.put_nowait(
            {
                "request_id": call.request_id,
                "payload": call.payload,
                "deadline_ms": wall_ns() // 1_000_000 + round(timeout_s * 1000),
                "client_context": call.client_context,
                "arn": self.function.arn,
            }
        )
        if call.fatal:
            # The process may have finished the work by then; its response is ignored.
            self.kill(self.pid)
            await asyncio.wait({self.exited})
        in_time = await self._in_time(_both(answered, self._idle), timeout_s)
        peak_mib = linux_status(self.pid).get("VmHWM", 0) // 1024
        prefix = f"RequestId: {call.request_id} Error: "
        if not in_time:
            await self.end()
            text = f"Task timed out after {timeout_s:.2f} seconds"
            self._note(f"{utc_stamp(separators=True)} {call.request_id} {text}\n\n")
            response = failed("Sandbox.Timedout", prefix + text)
        elif answered.done() and not call.fatal:
            response = answered.result()
        else:
            response = failed("Runtime.ExitError", prefix + _exit_text(self.exited.result()))
        self._report(call.request_id, (monotonic_ns() - start_ns) / 1e6, peak_mib)
        return replace(response, log=self._tail(log_position))

    async def end(self) -> None:
        """Kill the process, and wait until it has ended."""
        if self.alive:
            self.kill(self.pid)
            await asyncio.shield(self.exited)
        self._orders.put_nowait(None)

    async def _in_time(self, condition: Coroutine[Any, Any, Any], timeout_s: float) -> bool:
        """Wait for a condition, or the end of the process; return whether either came in time."""
        task: asyncio.Future[Any] = asyncio.create_task(condition)
        try:
            done, _ = await asyncio.wait(
                {task, self.exited}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
            )
            return bool(done)
        finally:
            task.cancel()

    def _note(self, text: str) -> int:
        """Append to the log; return the position."""
        with self.log.open("ab") as log:
            begin = log.tell()
            log.write(text.encode())
        return begin

    def _report(self, request_id: str, took_ms: float, peak_mib: int) -> None:
        init = "" if self.init_ms is None else f"\tInit Duration: {self.init_ms:.2f} ms"
        self.init_ms = None
        self._note(
            f"END RequestId: {request_id}\n"
            f"REPORT RequestId: {request_id}\tDuration: {took_ms:.2f} ms\t"
            f"Billed Duration: {int(took_ms) + 1} ms\t"
            f"Memory Size: {self.function.memory_mib} MB\t"
            f"Max Memory Used: {peak_mib} MB{init}\n"
        )

    def _tail(self, log_position: int) -> bytes:
        with self.log.open("rb") as log:
            log.seek(0, 2)
            log.seek(max(log_position, log.tell() - TAIL_BYTES))
            return log.read(TAIL_BYTES)


async def _both(answered: "asyncio.Future[InvokeResponse]", idle: asyncio.Event) -> None:
    # Wait for more than the response: an environment is free when it requests the next event. The
    # asyncio event set for this invocation is cleared as soon as the process has the request.
    await asyncio.shield(answered)
    await idle.wait()


def _exit_text(status: int) -> str:
    if status == 0:
        return "Runtime exited without providing a reason"
    if status < 0:
        name = "killed" if status == -signal.SIGKILL else signal.strsignal(-status)
        return f"Runtime exited with error: signal: {str(name).lower()}"
    return f"Runtime exited with error: exit status {status}"
