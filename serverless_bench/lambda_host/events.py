"""The queue of asynchronous invocations.

An event waits here for concurrency, is delivered, and is delivered again if the function
failed (AWS Lambda developer guide, "How Lambda handles errors and retries with
asynchronous invocation").
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from serverless_bench.clock import monotonic_ns
from serverless_bench.lambda_host.concurrency import ConcurrencyLimits
from serverless_bench.lambda_host.counters import HostCounters
from serverless_bench.lambda_host.environment import InvokeRequest, InvokeResponse
from serverless_bench.units import NS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRules:
    """How long and how often an event is delivered."""

    retries: int
    age_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event that was accepted."""

    name: str
    """Of the function."""
    call: InvokeRequest
    ages: bool = True
    """False for one that is late on purpose: it is delivered however old it is."""
    failures: int = 0
    accepted_ns: int = field(default_factory=monotonic_ns)

    def age_s(self) -> float:
        """Return how long it has been here."""
        return (monotonic_ns() - self.accepted_ns) / NS_PER_S


class Events:
    """Delivers events as fast as concurrency allows.

    Parameters
    ----------
    concurrency
        Concurrency.
    counters
        Count what it does.
    deliver
        Runs a function; the gate has been entered for it, and it leaves the gate.
    retry_delay_s
        Before the first further delivery; doubles.
    """

    def __init__(
        self,
        concurrency: ConcurrencyLimits,
        counters: HostCounters,
        deliver: Callable[[str, InvokeRequest], Awaitable[InvokeResponse]],
        retry_delay_s: float,
    ) -> None:
        self._concurrency = concurrency
        self._counts = counters
        self._deliver = deliver
        self._retry_delay_s = retry_delay_s
        self._queues: defaultdict[str, deque[Event]] = defaultdict(deque)
        self._held: list[Event] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.rules: Callable[[str], EventRules] = lambda _: EventRules(retries=0, age_s=60)
        """Of a function, by its name."""

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    @property
    def held(self) -> int:
        """How many wait for ``release``."""
        return len(self._held)

    def put(self, event: Event) -> None:
        """Take an event."""
        self._queues[event.name].append(event)
        self.pump()

    def hold(self, event: Event, seconds: float) -> None:
        """Take an event that is delivered after ``seconds``, or on ``release``."""
        late = replace(event, ages=False)
        self._held.append(late)
        asyncio.get_running_loop().call_later(seconds, self._let_go, late)

    def release(self) -> int:
        """Deliver every event that is held; return how many."""
        held = list(self._held)
        for event in held:
            self._let_go(event)
        return len(held)

    def pump(self) -> None:
        """Deliver what may be delivered now."""
        for name, queue in self._queues.items():
            while queue and (self._too_old(queue[0]) or not self._concurrency.refusal(name)):
                event = queue.popleft()
                if self._too_old(event):
                    self._counts.expired += 1
                    continue
                self._concurrency.enter(name)
                task = asyncio.create_task(self._run(event))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    def _too_old(self, event: Event) -> bool:
        return event.ages and event.age_s() > self.rules(event.name).age_s

    def _let_go(self, event: Event) -> None:
        # A release may have been faster.
        if any(event is held for held in self._held):
            self._held = [held for held in self._held if held is not event]
            self.put(event)

    async def _run(self, event: Event) -> None:
        response = await self._deliver(event.name, event.call)
        rules = self.rules(event.name)
        if not response.error or event.failures >= rules.retries:
            return
        await asyncio.sleep(self._retry_delay_s * 2**event.failures)
        self._counts.retried += 1
        self.put(replace(event, failures=event.failures + 1))
