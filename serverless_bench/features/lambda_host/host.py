"""The host: functions, the queue of asynchronous invocations, and running invocations.

An event waits for concurrency, is delivered, and is delivered again if the function
failed (AWS Lambda developer guide, "How Lambda handles errors and retries with
asynchronous invocation").
"""

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Final

from serverless_bench.base.clock import monotonic_ns
from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.aws.token_bucket import TokenBucket
from serverless_bench.features.lambda_host.counters import (
    SCALING,
    ConcurrencyCounters,
    HostCounters,
)
from serverless_bench.features.lambda_host.environment import InvokeRequest, InvokeResponse, failed
from serverless_bench.features.lambda_host.functions import LATEST, LambdaFunction
from serverless_bench.features.lambda_host.pool import Pool, Shared
from serverless_bench.features.lambda_host.responses import ApiError
from serverless_bench.features.lambda_host.settings import HostSettings, InvokeFaultPlan, arn

_RETRY_S: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRules:
    """Maximum age and number of retries of an event."""

    retries: int
    age_s: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QueuedEvent:
    """An event that was accepted."""

    name: str
    """Name of the function."""
    call: InvokeRequest
    ages: bool = True
    """Whether the event expires; False for events delayed on purpose."""
    failures: int = 0
    accepted_ns: int = field(default_factory=monotonic_ns)


class Events:
    """Delivers events as fast as concurrency allows.

    Parameters
    ----------
    host
        Host that runs the functions; it releases the concurrency that each delivery occupies.
    """

    def __init__(self, host: "LambdaHost") -> None:
        self._host = host
        self._queues: defaultdict[str, deque[QueuedEvent]] = defaultdict(deque)
        self._again: asyncio.TimerHandle | None = None
        self.held: list[QueuedEvent] = []
        """Events waiting for their time, or for ``release``."""

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def put(self, event: QueuedEvent) -> None:
        """Accept an event."""
        queue = self._queues[event.name]
        queue.append(event)
        self.pump()
        self._host.counters.waited += event in queue

    def hold(self, event: QueuedEvent, seconds: float) -> None:
        """Accept an event for delivery after ``seconds``, or on ``release``."""
        late = replace(event, ages=False)
        self.held.append(late)
        asyncio.get_running_loop().call_later(seconds, self._let_go, late)

    def release(self) -> int:
        """Deliver all events on hold; return the number of them."""
        held = list(self.held)
        for event in held:
            self._let_go(event)
        return len(held)

    def pump(self) -> None:
        """Deliver all events that may be delivered now."""
        for name, queue in self._queues.items():
            refusal, now_ns = "", monotonic_ns()
            while queue:
                refusal = self._host.concurrency.refusal(name, now_ns)
                if refusal and not self._too_old(queue[0]):
                    break
                event = queue.popleft()
                if self._too_old(event):
                    self._host.counters.expired += 1
                else:
                    self._host.concurrency.enter(name, now_ns)
                    self._host.shared.begin(self._run(event))
            if queue and refusal == SCALING and self._again is None:
                # An event waiting for an environment may get room without the end of any delivery.
                self._again = asyncio.get_running_loop().call_later(_RETRY_S, self._pump_again)

    def _pump_again(self) -> None:
        self._again = None
        self.pump()

    def _too_old(self, event: QueuedEvent) -> bool:
        age_s = (monotonic_ns() - event.accepted_ns) / NS_PER_S
        return event.ages and age_s > self._host.rules_of(event.name).age_s

    def _let_go(self, event: QueuedEvent) -> None:
        # A release may have been faster.
        if event in self.held:
            self.held.remove(event)
            self.put(event)

    async def _run(self, event: QueuedEvent) -> None:
        response = await self._host.deliver(event.name, event.call)
        if not response.kind or event.failures >= self._host.rules_of(event.name).retries:
            return
        await asyncio.sleep(self._host.settings.retry_delay_s * 2**event.failures)
        self._host.counters.retried += 1
        self.put(replace(event, failures=event.failures + 1))


Deliver = Callable[[LambdaFunction, InvokeRequest], Awaitable[InvokeResponse]]
"""Function that takes the place of a function's process, inside the host."""


@dataclass(slots=True, kw_only=True, eq=False)
class InstalledFunction:
    """A function that can be invoked."""

    function: LambdaFunction
    pool: Pool
    created: dict[str, Any] = field(default_factory=dict)
    """Parameters of CreateFunction, for later requests."""
    events: EventRules


class LambdaHost:
    """State that requests act on.

    Parameters
    ----------
    settings
        Behaviour of the host.
    shared
        Resources of the pools.
    scripted
        Replacement of all processes; None runs processes.
    """

    def __init__(
        self, settings: HostSettings, shared: Shared, scripted: Deliver | None = None
    ) -> None:
        self.settings = settings
        self.shared = shared
        self.counters: HostCounters = shared.counters
        self.concurrency = ConcurrencyCounters(
            settings.concurrency,
            launch_per_s=settings.launch_per_s,
            launch_burst=settings.launch_burst,
        )
        self.request_rate = TokenBucket(settings.request_per_s, settings.burst, monotonic_ns())
        self.plan = InvokeFaultPlan(settings.seed, settings.rules)
        self.late_s = settings.late_s
        self.functions: dict[str, InstalledFunction] = {}
        self.events = Events(self)
        self.url = ""
        """URL at which it listens."""
        self._scripted = scripted

    def statistics(self) -> dict[str, Any]:
        """Return the counters so far, and the number of waiting events."""
        return {
            **self.counters.to_json(),
            "queued": len(self.events),
            "held": len(self.events.held),
        }

    def install(self, function: LambdaFunction) -> InstalledFunction:
        """Add a function, or replace the function of the same name."""
        before = self.functions.get(function.name)
        rules = EventRules(retries=self.settings.event_retries, age_s=self.settings.event_age_s)
        installed = InstalledFunction(
            function=function,
            pool=Pool(function, self.shared),
            events=before.events if before else rules,
            created=before.created if before else {},
        )
        self.functions[function.name] = installed
        if before:
            self.shared.begin(before.pool.end())
        return installed

    def uninstall(self, name: str) -> None:
        """Remove a function and end its environments."""
        gone = self.functions.pop(name)
        self.concurrency.reserved.pop(name, None)
        self.shared.begin(gone.pool.end())

    def find(self, named: str, qualifier: str = "") -> InstalledFunction:
        """Return the function for a name, or a partial or complete ARN.

        Raises
        ------
        ApiError
            404 if the function or its version does not exist.
        """
        words = named.split(":")
        # "function" may also be the name of a function.
        if "function" in words[:-1]:
            words = words[words.index("function") + 1 :]
        name, version = words[0], qualifier or (words[1] if len(words) > 1 else "")
        installed = self.functions.get(name)
        if installed is None or version not in {"", LATEST}:
            address = arn(self.settings.region, name)
            missing = f"{address}:{version}" if version else address
            raise ApiError(404, "ResourceNotFoundException", f"Function not found: {missing}")
        return installed

    async def deliver(self, name: str, call: InvokeRequest) -> InvokeResponse:
        """Run a function once; the caller has occupied its concurrency, which is released here."""
        counters = self.counters
        counters.delivered += 1
        counters.running += 1
        counters.peak_running = max(counters.peak_running, counters.running)
        response = InvokeResponse(body=b"null", kind="ResourceNotFoundException")
        try:
            installed = self.functions.get(name)
            if installed is not None and self._scripted is not None:
                response = await self._scripted(installed.function, call)
            elif installed is not None:
                response = await installed.pool.run(call, installed.function.timeout_s)
        finally:
            counters.running -= 1
            counters.succeeded += not response.kind
            counters.failed += bool(response.kind)
            counters.timeouts += response.kind == "Sandbox.Timedout"
            counters.exits += response.kind == "Runtime.ExitError"
            self.concurrency.leave(name)
            self.events.pump()
        return response

    async def stop(self) -> None:
        """End all processes."""
        for installed in self.functions.values():
            await installed.pool.kill()
        self.shared.limits.close()

    def rules_of(self, name: str) -> EventRules:
        """Return the maximum age and number of retries for events of a function."""
        installed = self.functions.get(name)
        return installed.events if installed else EventRules(retries=0, age_s=0)


_THREADS: Final = 8


class Scripted:
    """Replacement of all processes of the host.

    Parameters
    ----------
    deliver
        Handler of events, called in a thread; its result is sent as JSON.
    duration_s
        Additional time for which each invocation occupies its concurrency.
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
            # Workers keep connections for a single run, so the first event of another run has to be
            # alone.
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
