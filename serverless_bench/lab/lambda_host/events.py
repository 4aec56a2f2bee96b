"""The queue of asynchronous invocations.

An event waits here for concurrency, is delivered, and is delivered again if the function
failed (AWS Lambda developer guide, "How Lambda handles errors and retries with
asynchronous invocation").
"""

import asyncio
from collections import defaultdict, deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from serverless_bench.clock import monotonic_ns
from serverless_bench.lab.lambda_host.concurrency import SCALING
from serverless_bench.lab.lambda_host.environment import InvokeRequest
from serverless_bench.units import NS_PER_S

if TYPE_CHECKING:
    from serverless_bench.lab.lambda_host.host import LambdaHost

_AGAIN_S: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRules:
    """How long and how often an event is delivered."""

    retries: int
    age_s: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Event:
    """An event that was accepted."""

    name: str
    """Of the function."""
    call: InvokeRequest
    ages: bool = True
    """False for one that is late on purpose: it is delivered however old it is."""
    failures: int = 0
    accepted_ns: int = field(default_factory=monotonic_ns)


class Events:
    """Delivers events as fast as concurrency allows.

    Parameters
    ----------
    host
        Runs the functions; the gate has been entered for each, and is left by the host.
    """

    def __init__(self, host: "LambdaHost") -> None:
        self._host = host
        self._queues: defaultdict[str, deque[Event]] = defaultdict(deque)
        self._again: asyncio.TimerHandle | None = None
        self.held: list[Event] = []
        """What waits for its time, or for ``release``."""

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def put(self, event: Event) -> None:
        """Take an event."""
        queue = self._queues[event.name]
        queue.append(event)
        self.pump()
        self._host.counters.waited += event in queue

    def hold(self, event: Event, seconds: float) -> None:
        """Take an event that is delivered after ``seconds``, or on ``release``."""
        late = replace(event, ages=False)
        self.held.append(late)
        asyncio.get_running_loop().call_later(seconds, self._let_go, late)

    def release(self) -> int:
        """Deliver every event that is held; return how many."""
        held = list(self.held)
        for event in held:
            self._let_go(event)
        return len(held)

    def pump(self) -> None:
        """Deliver what may be delivered now."""
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
                # Nothing that ends may make room for what waits for an environment.
                self._again = asyncio.get_running_loop().call_later(_AGAIN_S, self._pump_again)

    def _pump_again(self) -> None:
        self._again = None
        self.pump()

    def _too_old(self, event: Event) -> bool:
        age_s = (monotonic_ns() - event.accepted_ns) / NS_PER_S
        return event.ages and age_s > self._host.rules_of(event.name).age_s

    def _let_go(self, event: Event) -> None:
        # A release may have been faster.
        if event in self.held:
            self.held.remove(event)
            self.put(event)

    async def _run(self, event: Event) -> None:
        response = await self._host.deliver(event.name, event.call)
        if not response.kind or event.failures >= self._host.rules_of(event.name).retries:
            return
        await asyncio.sleep(self._host.settings.retry_delay_s * 2**event.failures)
        self._host.counters.retried += 1
        self.put(replace(event, failures=event.failures + 1))
