"""The host: its functions, what runs, and what is to go wrong."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from serverless_bench.clock import monotonic_ns
from serverless_bench.lambda_host.answers import not_found
from serverless_bench.lambda_host.concurrency import Gate
from serverless_bench.lambda_host.counts import Counts
from serverless_bench.lambda_host.environment import Answer, Call
from serverless_bench.lambda_host.events import EventRules, Events
from serverless_bench.lambda_host.faults import FaultPlan
from serverless_bench.lambda_host.functions import LATEST, Function
from serverless_bench.lambda_host.pool import Pool, Shared
from serverless_bench.lambda_host.settings import Settings, arn
from serverless_bench.token_bucket import TokenBucket

Deliver = Callable[[Function, Call], Awaitable[Answer]]
"""Does what a function would do, inside the host."""


@dataclass(slots=True, kw_only=True, eq=False)
class Installed:
    """A function that can be invoked."""

    function: Function
    pool: Pool
    created: dict[str, Any] = field(default_factory=dict)
    """What CreateFunction was told, for those who ask."""
    events: EventRules


class Host:
    """Everything that requests act on.

    Parameters
    ----------
    settings
        How it behaves.
    shared
        What its pools use.
    scripted
        Stands in for every process; None runs processes.
    """

    def __init__(self, settings: Settings, shared: Shared, scripted: Deliver | None = None) -> None:
        self.settings = settings
        self.shared = shared
        self.counts: Counts = shared.counts
        self.gate = Gate(settings.concurrency)
        self.request_rate = TokenBucket(settings.request_per_s, settings.burst, monotonic_ns())
        self.plan = FaultPlan(settings.seed, settings.rules)
        self.late_s = settings.late_s
        self.functions: dict[str, Installed] = {}
        self.events = Events(self.gate, self.counts, self.deliver, settings.retry_delay_s)
        self.events.rules = self._rules
        self._scripted = scripted

    def install(self, function: Function) -> Installed:
        """Add a function, or replace the one of its name."""
        before = self.functions.get(function.name)
        rules = EventRules(retries=self.settings.event_retries, age_s=self.settings.event_age_s)
        made = Installed(
            function=function,
            pool=Pool(function, self.shared),
            events=before.events if before else rules,
            created=before.created if before else {},
        )
        self.functions[function.name] = made
        if before:
            self.shared.begin(before.pool.end())
        return made

    def uninstall(self, name: str) -> None:
        """Forget a function and end its environments."""
        gone = self.functions.pop(name)
        self.gate.reserved.pop(name, None)
        self.shared.begin(gone.pool.end())

    def find(self, named: str, qualifier: str = "") -> Installed:
        """Return the function that a name, a partial or a whole address says.

        Raises
        ------
        ApiError
            404 if there is none, or no such version of it.
        """
        words = named.split(":")
        if "function" in words:
            words = words[words.index("function") + 1 :]
        name, version = words[0], qualifier or (words[1] if len(words) > 1 else "")
        found = self.functions.get(name)
        if found is None or version not in {"", LATEST}:
            address = arn(self.settings.region, name)
            raise not_found(f"{address}:{version}" if version else address)
        return found

    async def deliver(self, name: str, call: Call) -> Answer:
        """Run a function once; the gate was entered for it, and is left here."""
        self.counts.begin()
        answer = Answer(body=b"null", error="Unhandled", kind="ResourceNotFoundException")
        try:
            installed = self.functions.get(name)
            if installed is not None and self._scripted is not None:
                answer = await self._scripted(installed.function, call)
            elif installed is not None:
                answer = await installed.pool.run(call)
        finally:
            self.counts.end(answer.kind, answer.error)
            self.gate.leave(name)
            self.events.pump()
        return answer

    def set_events(self, name: str, rules: EventRules) -> None:
        """Say how often and how long the events of a function are delivered."""
        self.functions[name].events = replace(rules)

    async def stop(self) -> None:
        """End every process."""
        for installed in self.functions.values():
            await installed.pool.kill()
        self.shared.limits.close()

    def _rules(self, name: str) -> EventRules:
        installed = self.functions.get(name)
        return installed.events if installed else EventRules(retries=0, age_s=0)
