"""Invocations without processes: the host itself does what a worker would do.

A driver can so be shown many thousands of invocations on a machine that could not run
as many runtimes.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from serverless_bench.lab.lambda_host.environment import InvokeRequest, InvokeResponse, failed
from serverless_bench.lab.lambda_host.functions import LambdaFunction

_THREADS: Final = 8


class Scripted:
    """Stands in for every process of the host.

    Parameters
    ----------
    deliver
        What a function's handler does with an event, in a thread; what it returns is JSON.
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
        if not isinstance(event, dict):
            event = {}
        async with self._turns:
            # Workers keep connections for one run: what begins another is alone.
            places = 1 if event.get("run_id") == self._run else _THREADS
            for _ in range(places):
                await self._free.acquire()
            self._run = event.get("run_id")
        try:
            loop = asyncio.get_running_loop()
            returned = await loop.run_in_executor(self._threads, self._deliver, event)
            response = InvokeResponse(body=json.dumps(returned).encode())
        except Exception as exc:  # noqa: BLE001 - as the runtime does
            response = failed(type(exc).__name__, str(exc))
        finally:
            for _ in range(places):
                self._free.release()
        await asyncio.sleep(self._duration_s)
        return response
