"""Invocations without processes: the host itself does what a worker would do.

A driver can so be shown many thousands of invocations on a machine that could not run
as many runtimes.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from serverless_bench.lambda_host.environment import InvokeRequest, InvokeResponse
from serverless_bench.lambda_host.functions import LambdaFunction

_THREADS: Final = 8


class Scripted:
    """Stands in for every process of the host.

    Parameters
    ----------
    deliver
        What a function's handler does with an event, in a thread.
    duration_s
        How long each invocation keeps its concurrency after that.
    """

    def __init__(self, deliver: Callable[[Mapping[str, Any]], object], duration_s: float) -> None:
        self._deliver = deliver
        self._duration_s = duration_s
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="scripted")
        self._free = asyncio.Semaphore(_THREADS)
        self._turns = asyncio.Lock()
        self._run: object = None

    async def __call__(self, function: LambdaFunction, call: InvokeRequest) -> InvokeResponse:
        """Deliver one invocation."""
        event = json.loads(call.payload)
        response = await self._handle(event if isinstance(event, dict) else {})
        await asyncio.sleep(self._duration_s)
        return response

    async def _handle(self, event: dict[str, Any]) -> InvokeResponse:
        async with self._turns:
            # Workers keep connections for one run: what begins another is alone.
            if event.get("run_id") != self._run:
                for _ in range(_THREADS):
                    await self._free.acquire()
                try:
                    return await self._in_thread(event)
                finally:
                    self._run = event.get("run_id")
                    for _ in range(_THREADS):
                        self._free.release()
            await self._free.acquire()
        try:
            return await self._in_thread(event)
        finally:
            self._free.release()

    async def _in_thread(self, event: dict[str, Any]) -> InvokeResponse:
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._threads, self._deliver, event)
        except Exception as exc:  # noqa: BLE001 - as the runtime does
            error = {"errorType": type(exc).__name__, "errorMessage": str(exc)}
            return InvokeResponse(
                body=json.dumps(error).encode(), error="Unhandled", kind="Unhandled"
            )
        return InvokeResponse(body=b"null")
