"""The host: its functions, what runs, and what is to go wrong."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from serverless_bench.clock import monotonic_ns
from serverless_bench.lab.lambda_host.concurrency import ConcurrencyCounters
from serverless_bench.lab.lambda_host.counters import HostCounters
from serverless_bench.lab.lambda_host.environment import InvokeRequest, InvokeResponse
from serverless_bench.lab.lambda_host.events import EventRules, Events
from serverless_bench.lab.lambda_host.faults import InvokeFaultPlan
from serverless_bench.lab.lambda_host.functions import LATEST, LambdaFunction
from serverless_bench.lab.lambda_host.pool import Pool, Shared
from serverless_bench.lab.lambda_host.responses import ApiError
from serverless_bench.lab.lambda_host.settings import HostSettings, arn
from serverless_bench.token_bucket import TokenBucket

Deliver = Callable[[LambdaFunction, InvokeRequest], Awaitable[InvokeResponse]]
"""Does what a function would do, inside the host."""


@dataclass(slots=True, kw_only=True, eq=False)
class InstalledFunction:
    """A function that can be invoked."""

    function: LambdaFunction
    pool: Pool
    created: dict[str, Any] = field(default_factory=dict)
    """What CreateFunction was given, for later requests."""
    events: EventRules


class LambdaHost:
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
        """Where it listens."""
        self._scripted = scripted

    def statistics(self) -> dict[str, Any]:
        """Return what happened so far."""
        return {
            **self.counters.to_json(),
            "queued": len(self.events),
            "held": len(self.events.held),
        }

    def install(self, function: LambdaFunction) -> InstalledFunction:
        """Add a function, or replace the one of its name."""
        before = self.functions.get(function.name)
        rules = EventRules(retries=self.settings.event_retries, age_s=self.settings.event_age_s)
        made = InstalledFunction(
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
        self.concurrency.reserved.pop(name, None)
        self.shared.begin(gone.pool.end())

    def find(self, named: str, qualifier: str = "") -> InstalledFunction:
        """Return the function that a name, a partial or a whole address says.

        Raises
        ------
        ApiError
            404 if there is none, or no such version of it.
        """
        words = named.split(":")
        # A function may have that name, too.
        if "function" in words[:-1]:
            words = words[words.index("function") + 1 :]
        name, version = words[0], qualifier or (words[1] if len(words) > 1 else "")
        found = self.functions.get(name)
        if found is None or version not in {"", LATEST}:
            address = arn(self.settings.region, name)
            missing = f"{address}:{version}" if version else address
            raise ApiError(404, "ResourceNotFoundException", f"Function not found: {missing}")
        return found

    async def deliver(self, name: str, call: InvokeRequest) -> InvokeResponse:
        """Run a function once; the gate was entered for it, and is left here."""
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
        """End every process."""
        for installed in self.functions.values():
            await installed.pool.kill()
        self.shared.limits.close()

    def rules_of(self, name: str) -> EventRules:
        """Return how long and how often events of a function are delivered."""
        installed = self.functions.get(name)
        return installed.events if installed else EventRules(retries=0, age_s=0)
