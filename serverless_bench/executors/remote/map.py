"""Launch invocations that run far away, and yield what becomes of them.

Records are found by listing the control prefix, from the first index that is still out
on; a launch that has not begun in time is taken back by claiming it; one that began and
went silent is lost when its own time is over.
"""

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from queue import SimpleQueue
from typing import Any, Final

from serverless_bench.clock import EpochClock
from serverless_bench.errors import ExecutorError, OperationError
from serverless_bench.executors.base import GRACE_S, Live
from serverless_bench.executors.remote.crew import Crew, Heard, hear
from serverless_bench.executors.remote.launcher import Launcher, NotLaunchedError
from serverless_bench.executors.remote.seen import Seen
from serverless_bench.executors.remote.view import SKEW_S, ControlView
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.rundir.record import InvocationRecord, Lost, Outcome
from serverless_bench.units import NS_PER_S
from serverless_bench.worker.claims import RecordKey

_TICK_S: Final = 0.04
_POLL_S: Final = 0.35
"""Between two looks for records; slower by and by, because each costs a LIST."""
_SLOWEST_POLL_S: Final = 0.7
_SLOWER_AFTER_S: Final = 100.0
_CHECK_S: Final = 0.5
_FETCHERS: Final = 8
_AHEAD: Final = 4
"""Launches that wait for a thread, per thread."""
_TIMEOUT_S: Final = 300.0
"""How long the control prefix may be out of reach before the driver gives up."""
_NEVER_NS: Final = 1 << 62


@dataclass(slots=True, kw_only=True)
class _Flight:
    """One launch that is out."""

    index: int
    launch: int
    submitted_ns: int
    check_ns: int = _NEVER_NS
    """When to ask whether it has begun, or why it is silent."""
    refusals: int = 0
    began: bool = False
    busy: bool = False
    """A thread is asking for it."""
    problem: str = ""
    """Why it was not launched."""


class RemoteMap:
    """Launches invocations and yields their outcomes.

    Parameters
    ----------
    job
        Has a control target.
    launcher
        None to follow what another driver launched, and to launch nothing.
    live
        Kept up to date.
    since_ns
        When the earliest of the invocations may have been launched, on the driver's clock.
    seen
        What an earlier wave of the same driver has found.
    known
        Index and delivery of records that are saved already.
    """

    def __init__(
        self,
        job: JobSpec,
        launcher: Launcher | None,
        live: Live,
        *,
        since_ns: int | None = None,
        seen: Seen | None = None,
        known: Collection[tuple[int, str]] = (),
    ) -> None:
        self._job = job
        self._launcher = launcher
        self._live = live
        self._clock = EpochClock()
        self._since_ns = self._clock.now_ns() if since_ns is None else since_ns
        self._heard: Heard = SimpleQueue()
        self._flights: dict[int, _Flight] = {}
        self._seen = Seen(job.invocations) if seen is None else seen
        for index, delivery in known:
            self._seen.add(RecordKey(index, 0, delivery))
        self._launching = self._fetching = 0
        self._listing = False
        self._next_list_ns = self._next_check_ns = 0
        self._reached_ns = self._clock.now_ns()
        self._ahead_ns = 0

    def run(self, invocations: Iterable[InvocationSpec]) -> Generator[Outcome, None, None]:
        """Yield one outcome per invocation, and one per further record of it."""
        waiting = iter(invocations)
        first = next(waiting, None)
        if first is None or self._job.control is None:
            return
        self._view = ControlView(self._job.control, first.run_id)
        launcher = self._launcher
        self._fetchers = Crew(_FETCHERS, self._heard)
        self._launchers = Crew(0 if launcher is None else launcher.threads, self._heard)
        try:
            self._ahead_ns = self._view.reach(self._clock)
            if self._ahead_ns:
                seconds = self._ahead_ns / NS_PER_S
                note = f"this machine's clock is {seconds:+.0f} s off the store's; allowed for"
                self._live.notes.append(note)
            ahead = [first]
            while self._launch_more(ahead, waiting) or self._flights or self._fetching:
                self._look()
                yield from hear(self._heard, _TICK_S)
            yield from self._look_once_more()
        finally:
            self._launchers.dismiss()
            self._fetchers.dismiss()
            if launcher is not None:
                launcher.close()
            self._view.close()
            self._live.requests.update(self._view.requests)

    # Launching

    def _launch_more(self, ahead: list[InvocationSpec], waiting: Iterator[InvocationSpec]) -> bool:
        """Launch what there is room for; return whether there is more to launch."""
        launcher = self._launcher
        if launcher is None:
            for spec in (*ahead, *waiting):
                self._follow(spec)
            ahead.clear()
            return False
        # What waits for a thread only takes memory.
        least = _AHEAD * launcher.threads * launcher.batch - self._launching
        room = min(launcher.room(len(self._flights)), least)
        if self._live.at_most is not None:
            room = min(room, self._live.at_most - len(self._flights))
        while room > 0:
            batch = [*ahead, *islice(waiting, min(room, launcher.batch) - len(ahead))]
            ahead.clear()
            if not batch:
                return False
            room -= len(batch)
            launcher.take(len(batch))
            flights = [
                _Flight(index=spec.index, launch=spec.launch, submitted_ns=self._clock.now_ns())
                for spec in batch
            ]
            self._flights |= {flight.index: flight for flight in flights}
            self._live.flying = len(self._flights)
            self._launching += len(flights)
            self._launchers.ask(
                partial(self._launch, launcher, batch, flights),
                partial(self._on_launched, flights),
                NotLaunchedError,
                partial(self._on_refused, flights),
            )
        return True

    def _follow(self, spec: InvocationSpec) -> None:
        """Take over a launch that another driver may have made: back, if possible."""
        flight = _Flight(
            index=spec.index, launch=spec.launch, submitted_ns=self._since_ns, check_ns=0
        )
        flight.problem = "the driver that launched it has ended"
        self._flights[spec.index] = flight

    def _launch(
        self, launcher: Launcher, batch: Sequence[InvocationSpec], flights: Sequence[_Flight]
    ) -> int:
        now_ns = self._clock.now_ns()
        for flight in flights:
            flight.submitted_ns = now_ns
        # By the store's clock, which workers' clocks are nearer to than ours may be.
        late_ns = now_ns + round(self._job.start_timeout_s * NS_PER_S) - self._ahead_ns
        return launcher.launch([replace(spec, not_after_ns=late_ns) for spec in batch])

    def _on_launched(self, flights: Sequence[_Flight], refusals: int) -> Iterable[Outcome]:
        # One that has begun may be silent for its whole time; only then it is asked for.
        timeout_s = min(self._job.start_timeout_s, self._job.deadline_s + GRACE_S)
        self._launching -= len(flights)
        for flight in flights:
            flight.refusals = refusals
            flight.check_ns = flight.submitted_ns + round(timeout_s * NS_PER_S)
        self._live.started += len(flights)
        return ()

    def _on_refused(self, flights: Sequence[_Flight], error: NotLaunchedError) -> Iterable[Outcome]:
        self._launching -= len(flights)
        for flight in flights:
            flight.refusals, flight.problem, flight.check_ns = error.refusals, str(error), 0
        return ()

    # Finding records

    def _look(self) -> None:
        now_ns = self._clock.now_ns()
        if not self._listing and now_ns >= self._next_list_ns and self._flights:
            targets = sorted(i for i, flight in self._flights.items() if not flight.busy)
            if targets:
                self._listing = True
                self._fetchers.ask(
                    partial(self._view.records, targets),
                    self._on_listed,
                    OperationError,
                    self._on_not_listed,
                )
        if now_ns >= self._next_check_ns:
            self._next_check_ns = now_ns + round(_CHECK_S * NS_PER_S)
            for flight in self._flights.values():
                if flight.check_ns <= now_ns and not flight.busy:
                    flight.busy = True
                    self._ask_for(flight)

    def _on_listed(self, keys: Iterable[RecordKey]) -> Iterable[Outcome]:
        self._reached_ns = self._clock.now_ns()
        self._pause_listing()
        self._take(keys)
        return ()

    def _on_not_listed(self, error: OperationError) -> Iterable[Outcome]:
        self._pause_listing()
        self._bear(error)
        return ()

    def _pause_listing(self) -> None:
        self._listing = False
        now_ns = self._clock.now_ns()
        age = (now_ns - self._since_ns) / NS_PER_S / _SLOWER_AFTER_S
        pause_s = min(_SLOWEST_POLL_S, _POLL_S * max(1.0, age))
        self._next_list_ns = now_ns + round(pause_s * NS_PER_S)

    def _take(self, keys: Iterable[RecordKey]) -> int:
        """Fetch the records that nobody has asked for yet, and return how many these are."""
        new = [key for key in keys if self._seen.add(key)]
        self._fetching += len(new)
        for key in new:
            self._fetch(key)
        return len(new)

    def _fetch(self, key: RecordKey) -> None:
        self._fetchers.ask(
            partial(self._view.fetch, key),
            partial(self._on_fetched, key),
            OperationError,
            partial(self._on_not_fetched, key),
        )

    def _on_not_fetched(self, key: RecordKey, error: OperationError) -> Iterable[Outcome]:
        self._bear(error)
        self._fetch(key)
        return ()

    def _on_fetched(self, key: RecordKey, result: InvocationRecord | str) -> Iterator[Outcome]:
        self._fetching -= 1
        self._reached_ns = self._clock.now_ns()
        flight = self._flights.get(key.index)
        if flight is not None and flight.launch != key.launch:
            flight = None
        if isinstance(result, str):
            if flight is not None:
                yield from self._lose(flight, result)
            return
        if flight is not None and not result.duplicate:
            del self._flights[key.index]
            self._live.flying = len(self._flights)
        yield Outcome(
            submitted_ns=self._since_ns if flight is None else flight.submitted_ns,
            collected_ns=self._reached_ns,
            result=result,
            refusals=0 if flight is None else flight.refusals,
        )

    def _look_once_more(self) -> Iterator[Outcome]:
        """Find what came beside the records that counted: duplicates, and late ones."""
        try:
            for keys in self._view.pages():
                self._take(keys)
        except OperationError as exc:
            self._live.notes.append(f"duplicates were not looked for: {exc}")
        while self._fetching:
            yield from hear(self._heard, _TICK_S)

    # Silence

    def _ask_for(self, flight: _Flight) -> None:
        """Find out why a launch is silent, and take it back if it has not begun."""
        otherwise = partial(self._on_not_told, flight)
        if flight.began:
            task = partial(self._view.records_of, flight.index)
            self._fetchers.ask(task, partial(self._on_silent, flight), OperationError, otherwise)
        else:
            holder = partial(self._find_holder, flight)
            self._fetchers.ask(holder, partial(self._on_holder, flight), OperationError, otherwise)

    def _find_holder(self, flight: _Flight) -> Mapping[str, Any] | None:
        holder = self._view.holder(flight.index, flight.launch)
        now_ns = self._clock.now_ns()
        if holder is None and (flight.problem or now_ns >= self._late_ns(flight)):
            holder = self._view.take_back(flight.index, flight.launch, now_ns)
        return holder

    def _late_ns(self, flight: _Flight) -> int:
        return flight.submitted_ns + round(self._job.start_timeout_s * NS_PER_S)

    def _on_not_told(self, flight: _Flight, error: OperationError) -> Iterable[Outcome]:
        flight.busy = False
        self._bear(error)
        return ()

    def _on_holder(self, flight: _Flight, holder: Mapping[str, Any] | None) -> Iterable[Outcome]:
        flight.busy = False
        self._reached_ns = now_ns = self._clock.now_ns()
        if holder is None:
            flight.check_ns = self._late_ns(flight)
        elif "delivery" in holder:
            flight.began = True
            held_ns = round(float(holder.get("held_s", self._job.deadline_s)) * NS_PER_S)
            until_ns = int(holder.get("until_ns", 0)) + self._ahead_ns + round(SKEW_S * NS_PER_S)
            over_ns = min(max(until_ns, now_ns), now_ns + held_ns)
            flight.check_ns = over_ns + round(GRACE_S * NS_PER_S)
        else:
            waited_s = (now_ns - flight.submitted_ns) / NS_PER_S
            cause = flight.problem or f"not begun {waited_s:.0f} s after its launch: taken back"
            return self._lose(flight, cause, never_began=True)
        return ()

    def _on_silent(self, flight: _Flight, keys: Sequence[RecordKey]) -> Iterable[Outcome]:
        flight.busy = False
        self._reached_ns = self._clock.now_ns()
        mine = (flight.index, flight.launch)
        there = any((key.index, key.launch) == mine for key in keys)
        if there and (self._take(keys) or self._fetching):
            flight.check_ns = self._reached_ns + round(GRACE_S * NS_PER_S)
            return ()
        cause = "it began and left no record: killed, out of memory, or out of time"
        return self._lose(flight, cause)

    def _lose(self, flight: _Flight, cause: str, *, never_began: bool = False) -> Iterable[Outcome]:
        if self._flights.pop(flight.index, None) is None:
            return ()
        self._live.flying = len(self._flights)
        lost = Lost(index=flight.index, launch=flight.launch, cause=cause, never_began=never_began)
        return (
            Outcome(
                submitted_ns=flight.submitted_ns,
                collected_ns=self._clock.now_ns(),
                result=lost,
                refusals=flight.refusals,
            ),
        )

    def _bear(self, error: OperationError) -> None:
        """Bear with a store that refuses us for a while; credentials may be renewed.

        Raises
        ------
        ExecutorError
            If it has been out of reach for too long.
        """
        silent_s = (self._clock.now_ns() - self._reached_ns) / NS_PER_S
        if silent_s > _TIMEOUT_S:
            raise ExecutorError(
                f"the control prefix cannot be read: {error}",
                hint="functions go on by themselves; sbench resume DIR finds their records",
            )
        note = f"the control prefix could not be read for a while: {error}"
        if note not in self._live.notes:
            self._live.notes.append(note)
        self._view.renew()
