"""What executors share whose functions are far away: launch them, find their records.

A launcher hands invocations over and is believed about nothing. Records are found by
listing the control prefix, from the first index that is still out on; an invocation that
has not begun in time is taken back by claiming its attempt; one that began and went
silent is lost when its own time is over. One thread decides, others wait for the network.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Any, Final, Protocol

import orjson

from serverless_bench.clock import EpochClock, http_date_s
from serverless_bench.control import (
    RecordKey,
    before,
    claim,
    claim_name,
    for_run,
    get_claim,
    parse_record,
    record_name,
)
from serverless_bench.errors import ExecutorError, OperationError, SbenchError, StoreError
from serverless_bench.executors.base import GRACE_S, Live
from serverless_bench.objects import Objects
from serverless_bench.record import InvocationRecord, Lost, Outcome
from serverless_bench.spec import InvocationSpec, JobSpec
from serverless_bench.units import NS_PER_S

_TICK_S: Final = 0.04
_POLL_S: Final = 0.35
"""Between two looks for records; slower by and by, because each costs a LIST."""
_SLOWEST_POLL_S: Final = 0.7
_SLOWER_AFTER_S: Final = 100.0
_CHECK_S: Final = 0.5
_FETCHERS: Final = 8
_REQUEST_S: Final = 60.0
_PATIENCE_S: Final = 300.0
"""How long the control prefix may be out of reach before the driver gives up."""
_SKEW_S: Final = 2.0
"""What a worker's clock may be off, beyond what the store's ``Date`` says of ours."""


class NotLaunchedError(SbenchError):
    """One invocation was refused for too long; it may still have been accepted once."""

    def __init__(self, message: str, refusals: int) -> None:
        super().__init__(message)
        self.refusals = refusals


class Launcher(Protocol):
    """Hands invocations over to whatever runs functions."""

    batch: int
    """How many invocations one ``launch`` takes at most."""
    threads: int
    """How many calls of ``launch`` may be under way at once."""

    def room(self, flying: int) -> int:
        """Return how many more may be launched now, with ``flying`` under way."""

    def take(self, count: int) -> None:
        """Note that ``count`` of them are going to be launched."""

    def launch(self, invocations: Sequence[InvocationSpec]) -> int:
        """Hand over a batch and return how often it was refused before.

        Raises
        ------
        NotLaunchedError
            If it was refused for too long.
        ExecutorError
            If nothing can ever be launched like this.
        """

    def close(self) -> None:
        """End; what was handed over goes on."""


@dataclass(slots=True)
class _Flight:
    """One attempt that is out."""

    index: int
    attempt: int
    submitted_ns: int
    check_ns: int = 1 << 62
    """When to ask whether it has begun, or why it is silent."""
    refusals: int = 0
    began: bool = False
    busy: bool = False
    """A thread is asking for it."""
    problem: str = ""
    """Why it was not launched."""


@dataclass(slots=True)
class _Told:
    """What a thread has to say."""

    then: Callable[..., Iterable[Outcome]]
    arguments: tuple[Any, ...] = field(default=())


class Seen:
    """The records of a run that have been asked for; one for all of a run's waves.

    By index it keeps the digits of one delivery, and the few further ones apart: a set of
    keys would grow to tens of MB with 100,000 functions.

    Parameters
    ----------
    invocations
        Of the run.
    """

    def __init__(self, invocations: int) -> None:
        self._first = array("Q", bytes(8 * invocations))
        self._further: set[tuple[int, int]] = set()

    def add(self, index: int, delivery: str) -> bool:
        """Note a record, and return whether it is one of the run that was not noted yet."""
        if index >= len(self._first):
            return False
        digits = int(delivery[:16], 16)
        if not self._first[index]:
            self._first[index] = digits
            return True
        if self._first[index] == digits or (index, digits) in self._further:
            return False
        self._further.add((index, digits))
        return True


class RemoteMap:
    """Launches invocations and yields their outcomes.

    Parameters
    ----------
    job
        Has a control target.
    launcher
        None to follow what another driver launched, and to launch nothing.
    since_ns
        When the earliest of the invocations may have been launched, on the driver's clock.
    live
        Kept up to date.
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
        if job.control is None:
            raise ValueError("a remote map needs a control target")
        self._job = job
        self._control = job.control
        self._launcher = launcher
        self._live = live
        self._clock = EpochClock()
        self._since_ns = self._clock.now_ns() if since_ns is None else since_ns
        self._told: SimpleQueue[_Told] = SimpleQueue()
        self._flights: dict[int, _Flight] = {}
        self._seen = Seen(job.invocations) if seen is None else seen
        self._fetching = 0
        self._counting = Lock()
        self._listing = False
        self._next_list_ns = self._next_check_ns = 0
        self._heard_ns = self._clock.now_ns()
        self._behind_ns = 0
        for index, delivery in known:
            self._seen.add(index, delivery)

    def run(self, invocations: Iterable[InvocationSpec]) -> Generator[Outcome, None, None]:
        """Yield one outcome per invocation, and one per further record of it."""
        waiting = iter(invocations)
        first = next(waiting, None)
        if first is None:
            return
        self._run_id = first.run_id
        self._store = Objects(for_run(self._control, first.run_id))
        threads = 0 if self._launcher is None else self._launcher.threads
        launchers = ThreadPoolExecutor(max(1, threads), "launch")
        self._fetchers = ThreadPoolExecutor(_FETCHERS, "collect")
        try:
            self._reach_store()
            ahead = [first]
            while self._launch_more(launchers, ahead, waiting) or self._flights or self._fetching:
                self._look()
                yield from self._hear(_TICK_S)
            yield from self._look_once_more()
        finally:
            for pool in (launchers, self._fetchers):
                pool.shutdown(wait=False, cancel_futures=True)
            if self._launcher is not None:
                self._launcher.close()
            self._store.close()

    # Launching

    def _launch_more(
        self,
        pool: ThreadPoolExecutor,
        ahead: list[InvocationSpec],
        waiting: Iterator[InvocationSpec],
    ) -> bool:
        """Launch what there is room for; return whether there is more to launch."""
        launcher = self._launcher
        if launcher is None:
            for spec in (*ahead, *waiting):
                self._follow(spec)
            ahead.clear()
            return False
        room = launcher.room(len(self._flights))
        while room > 0:
            batch = [*ahead, *islice(waiting, min(room, launcher.batch) - len(ahead))]
            ahead.clear()
            if not batch:
                return False
            room -= len(batch)
            launcher.take(len(batch))
            for spec in batch:
                now_ns = self._clock.now_ns()
                self._flights[spec.index] = _Flight(spec.index, spec.attempt, now_ns)
            pool.submit(self._launch, launcher, batch)
        return True

    def _follow(self, spec: InvocationSpec) -> None:
        """Take over an attempt that somebody else may have launched: back, if possible."""
        flight = _Flight(spec.index, spec.attempt, self._since_ns, check_ns=0)
        flight.problem = "the driver that launched it has ended"
        self._flights[spec.index] = flight

    def _launch(self, launcher: Launcher, batch: Sequence[InvocationSpec]) -> None:
        now_ns = self._clock.now_ns()
        late_ns = now_ns + round(self._job.start_timeout_s * NS_PER_S) - self._behind_ns
        flights = [self._flights[spec.index] for spec in batch]
        for flight in flights:
            flight.submitted_ns = now_ns
        specs = [replace(spec, not_after_ns=late_ns) for spec in batch]
        try:
            refusals = launcher.launch(specs)
        except NotLaunchedError as exc:
            self._say(self._on_refused, flights, str(exc), exc.refusals)
        except SbenchError as exc:
            self._say(self._on_fatal, exc)
        except Exception as exc:  # noqa: BLE001 - a thread must not end in silence
            self._say(self._on_fatal, ExecutorError(f"launch: {type(exc).__name__}: {exc}"))
        else:
            self._say(self._on_launched, flights, refusals)

    def _on_launched(self, flights: Sequence[_Flight], refusals: int) -> Iterable[Outcome]:
        # Records are there at the earliest when it has run its time; a worker that has
        # begun is silent until then.
        patience_s = min(self._job.start_timeout_s, self._job.deadline_s + GRACE_S)
        for flight in flights:
            flight.refusals = refusals
            flight.check_ns = flight.submitted_ns + round(patience_s * NS_PER_S)
        self._live.started += len(flights)
        return ()

    def _on_refused(
        self, flights: Sequence[_Flight], cause: str, refusals: int
    ) -> Iterable[Outcome]:
        for flight in flights:
            flight.refusals, flight.problem, flight.check_ns = refusals, cause, 0
        return ()

    def _on_fatal(self, error: SbenchError) -> Iterable[Outcome]:
        raise error

    # Finding records

    def _reach_store(self) -> None:
        """Look into the control prefix before anything is launched.

        Raises
        ------
        StoreError
            If it cannot be listed.
        """
        try:
            self._store.list_page("records/", "", patience_s=_REQUEST_S)
        except OperationError as exc:
            where = f"{self._control.bucket}/{self._control.prefix}"
            raise StoreError(
                f"the control prefix {where} cannot be listed: {exc}",
                hint="check --control-prefix, --stack, and what these credentials may do",
            ) from exc
        date_s = http_date_s(self._store.date)
        if date_s is None:
            return
        behind_s = self._clock.now_ns() / NS_PER_S - date_s - 0.5
        if abs(behind_s) > _SKEW_S:
            self._behind_ns = round(behind_s * NS_PER_S)
            self._live.notes.append(
                f"this machine's clock is {behind_s:+.0f} s off the store's; allowed for"
            )

    def _look(self) -> None:
        now_ns = self._clock.now_ns()
        if not self._listing and now_ns >= self._next_list_ns and self._flights:
            targets = sorted(i for i, flight in self._flights.items() if not flight.busy)
            if targets:
                self._listing = True
                self._ask(self._list, targets)
        if now_ns >= self._next_check_ns:
            self._next_check_ns = now_ns + round(_CHECK_S * NS_PER_S)
            for flight in self._flights.values():
                if flight.check_ns <= now_ns and not flight.busy:
                    flight.busy = True
                    self._ask(self._check, flight)

    def _list(self, targets: Sequence[int]) -> None:
        """List records from the first target on, and skip what is complete."""
        found: list[str] = []
        after = before(targets[0])
        try:
            while True:
                self._count("list")
                names, more = self._store.list_page("records/", after, patience_s=_REQUEST_S)
                found += names
                last = next((k for n in reversed(names) if (k := parse_record(n))), None)
                if not more or last is None:
                    break
                position = bisect_left(targets, last.index)
                if position == len(targets):
                    break
                after = names[-1] if targets[position] == last.index else before(targets[position])
        except OperationError as exc:
            self._say(self._on_unreachable, exc)
        self._say(self._on_listed, found)

    def _on_listed(self, names: Iterable[str]) -> Iterable[Outcome]:
        self._listing = False
        now_ns = self._clock.now_ns()
        age = (now_ns - self._since_ns) / NS_PER_S / _SLOWER_AFTER_S
        pause_s = min(_SLOWEST_POLL_S, _POLL_S * max(1.0, age))
        self._next_list_ns = now_ns + round(pause_s * NS_PER_S)
        self._take(names)
        return ()

    def _take(self, names: Iterable[str]) -> int:
        """Fetch the records that nobody has asked for yet, and return how many these are."""
        already = self._fetching
        for name in names:
            key = parse_record(name)
            if key is not None and self._seen.add(key.index, key.delivery):
                self._fetching += 1
                self._ask(self._fetch, key)
        return self._fetching - already

    def _fetch(self, key: RecordKey) -> None:
        try:
            self._count("get")
            data = self._store.get(record_name(key), patience_s=_REQUEST_S)
        except OperationError as exc:
            self._say(self._on_unreachable, exc)
            self._say(self._on_fetch_failed, key)
            return
        result: InvocationRecord | str
        try:
            result = InvocationRecord.from_json(orjson.loads(data))
            if (result.run_id, result.delivery) != (self._run_id, key.delivery):
                result = "the record is of another run"
        except (ValueError, TypeError, KeyError) as exc:
            result = f"unreadable record: {type(exc).__name__}: {exc}"
        self._say(self._on_fetched, key, result)

    def _on_fetch_failed(self, key: RecordKey) -> Iterable[Outcome]:
        self._ask(self._fetch, key)
        return ()

    def _on_fetched(self, key: RecordKey, result: InvocationRecord | str) -> Iterator[Outcome]:
        self._fetching -= 1
        self._heard_ns = self._clock.now_ns()
        flight = self._flights.get(key.index)
        mine = flight is not None and flight.attempt == key.attempt
        if isinstance(result, str):
            if mine:
                yield from self._lose(key.index, result)
            return
        yield Outcome(
            submitted_ns=flight.submitted_ns if flight and mine else self._since_ns,
            collected_ns=self._heard_ns,
            result=result,
            refusals=flight.refusals if flight and mine else 0,
        )
        if mine and not result.duplicate:
            self._flights.pop(key.index, None)

    def _look_once_more(self) -> Iterator[Outcome]:
        """Find what came beside the records that counted: duplicates, and late ones."""
        try:
            self._count("list", 1 + self._job.invocations // 1000)
            names = list(self._store.list_all("records/", patience_s=_REQUEST_S))
        except OperationError:
            return
        self._take(names)
        while self._fetching:
            yield from self._hear(_TICK_S)

    # Silence

    def _check(self, flight: _Flight) -> None:
        """Find out why an attempt is silent, and take it back if it has not begun."""
        index, attempt = flight.index, flight.attempt
        try:
            if flight.began:
                names, _ = self._store.list_page("records/", before(index), patience_s=_REQUEST_S)
                self._count("list")
                keys = [key for name in names if (key := parse_record(name))]
                there = any((key.index, key.attempt) == (index, attempt) for key in keys)
                self._say(self._on_silent, flight, there, names)
                return
            self._count("get")
            holder = get_claim(self._store, index, attempt, patience_s=_REQUEST_S)
            late_ns = flight.submitted_ns + round(self._job.start_timeout_s * NS_PER_S)
            if holder is None and (flight.problem or self._clock.now_ns() >= late_ns):
                holder = claim(
                    self._store,
                    claim_name(index, attempt),
                    {"run_id": self._run_id, "taken_back_ns": self._clock.now_ns()},
                    patience_s=_REQUEST_S,
                )
            self._say(self._on_claim, flight, holder, late_ns)
        except OperationError as exc:
            self._say(self._on_unreachable, exc)
            self._say(self._on_check_failed, flight)

    def _on_check_failed(self, flight: _Flight) -> Iterable[Outcome]:
        flight.busy = False
        return ()

    def _on_claim(
        self, flight: _Flight, holder: Mapping[str, Any] | None, late_ns: int
    ) -> Iterator[Outcome]:
        flight.busy = False
        self._heard_ns = now_ns = self._clock.now_ns()
        if holder is None:
            flight.check_ns = late_ns
        elif "delivery" in holder:
            flight.began = True
            held_s = float(holder.get("held_s", self._job.deadline_s))
            until_ns = int(holder.get("until_ns", 0)) + self._behind_ns
            until_ns += round(_SKEW_S * NS_PER_S)
            latest_ns = now_ns + round(held_s * NS_PER_S)
            flight.check_ns = min(max(until_ns, now_ns), latest_ns) + round(GRACE_S * NS_PER_S)
        else:
            began_s = (now_ns - flight.submitted_ns) / NS_PER_S
            cause = flight.problem or f"not begun {began_s:.0f} s after its launch: taken back"
            yield from self._lose(flight.index, cause, never_began=True)

    def _on_silent(self, flight: _Flight, there: bool, names: list[str]) -> Iterator[Outcome]:  # noqa: FBT001
        flight.busy = False
        self._heard_ns = self._clock.now_ns()
        if there and (self._take(names) or self._fetching):
            flight.check_ns = self._heard_ns + round(GRACE_S * NS_PER_S)
        else:
            cause = "it began and left no record: killed, out of memory, or out of time"
            yield from self._lose(flight.index, cause)

    def _lose(self, index: int, cause: str, *, never_began: bool = False) -> Iterator[Outcome]:
        flight = self._flights.pop(index, None)
        if flight is None:
            return
        yield Outcome(
            submitted_ns=flight.submitted_ns,
            collected_ns=self._clock.now_ns(),
            result=Lost(index=index, attempt=flight.attempt, cause=cause, never_began=never_began),
            refusals=flight.refusals,
        )

    def _on_unreachable(self, error: OperationError) -> Iterable[Outcome]:
        """Bear with a store that refuses us for a while; credentials may be renewed."""
        silent_s = (self._clock.now_ns() - self._heard_ns) / NS_PER_S
        if silent_s > _PATIENCE_S:
            raise ExecutorError(
                f"the control prefix cannot be read: {error}",
                hint="functions go on by themselves; sbench resume DIR finds their records",
            )
        note = f"the control prefix could not be read for a while: {error}"
        if note not in self._live.notes:
            self._live.notes.append(note)
        self._store.renew()
        return ()

    # Between threads

    def _ask(self, task: Callable[..., None], *arguments: object) -> None:
        """Have a thread wait for the network."""

        def run() -> None:
            try:
                task(*arguments)
            except Exception as exc:  # noqa: BLE001 - a thread must not end in silence
                self._say(self._on_fatal, ExecutorError(f"{type(exc).__name__}: {exc}"))

        self._fetchers.submit(run)

    def _count(self, kind: str, number: int = 1) -> None:
        with self._counting:
            self._live.requests[kind] = self._live.requests.get(kind, 0) + number

    def _say(self, then: Callable[..., Iterable[Outcome]], *arguments: object) -> None:
        self._told.put(_Told(then, arguments))

    def _hear(self, patience_s: float) -> Iterator[Outcome]:
        with suppress(Empty):
            told = self._told.get(timeout=patience_s)
            while True:
                yield from told.then(*told.arguments)
                told = self._told.get_nowait()
