"""Launch remote invocations, and yield their outcomes.

Records are found by listing the control prefix, starting at the first index in flight. An attempt
that has not started in time is revoked by claiming it; an attempt that started and went silent is
lost after the time limit.
"""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from queue import Queue
from typing import Any, Final

from serverless_bench.base.clock import monotonic_ns, sleep, utc_stamp, wall_ns
from serverless_bench.base.errors import ExecutorError, OperationError
from serverless_bench.base.plugins import TOOLS
from serverless_bench.base.units import NS_PER_S, format_count
from serverless_bench.executors.base import GRACE_S, RunProgress
from serverless_bench.features.remote.claims import RecordKey
from serverless_bench.features.remote.launcher import Launcher, NotLaunchedError, Pending, Refusal
from serverless_bench.features.remote.options import RemoteOptions
from serverless_bench.features.remote.stop import StopSign, signed
from serverless_bench.features.remote.thread_pool import (
    Completions,
    PatientPool,
    ThreadPool,
    Urgency,
    handle_completions,
)
from serverless_bench.features.remote.view import SKEW_S, ControlView, RequestedRecords
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.rundir.record import InvocationRecord, Lost, Outcome

_TICK_S: Final = 0.04
_POLL_S: Final = 0.25
"""Interval of listings for records, from start to start; it increases over time, because each costs
a LIST."""
_PAGE_S: Final = 0.1
"""Increase of that interval for each page, so that there are never more than 10 LISTs a second."""
_SLOWEST_POLL_S: Final = 0.6
_SLOWER_AFTER_S: Final = 100.0
_RETRY_S: Final = 0.35
_CHECK_S: Final = 0.5
_FETCHERS: Final = 64
"""A driver far from its store waits 150 ms for each record, and until then the slot of the function
stays occupied. Together with the connections of launches, they are fewer than the 256 files that a
process of macOS may open."""
_AHEAD: Final = 4
"""Launches waiting for a thread, per thread."""
_STOPPED: Final = "launch cancelled: the run was stopped before it started"
_MOST_FAILURES: Final = 5
"""Maximum failures of reading a record, or revoking an attempt, while the store answers other
requests; each is retried for a minute."""


class RemoteMap:
    """Launches invocations and yields their outcomes.

    Parameters
    ----------
    job
        Must have a control target.
    launcher
        Starts the invocations; None to follow launches of another driver.
    progress
        Updated during the run.
    since_ns
        Earliest possible time of a launch, on the driver's clock.
    seen
        Records requested in an earlier wave of the same driver.
    polled
        Whether another worker may run an event that a worker has rejected: it is revoked only after
        its time limit.
    """

    def __init__(
        self,
        job: JobSpec,
        launcher: Launcher | None,
        progress: RunProgress,
        *,
        since_ns: int | None = None,
        seen: RequestedRecords | None = None,
        polled: bool = False,
    ) -> None:
        self._job = job
        self._follows = launcher is None
        self._launcher = launcher or Launcher(0)
        self._progress = progress
        self._clock = progress.clock
        self._since_ns = self._clock.now_ns() if since_ns is None else since_ns
        self._completions: Completions = Queue()
        self._in_flight: dict[int, Pending] = {}
        self._seen = RequestedRecords(job.number) if seen is None else seen
        self._launching = self._fetching = 0
        self._pages: Iterator[list[RecordKey]] | None = None
        """The listing under way."""
        self._next_list_ns = self._next_check_ns = 0
        self._ahead_ns = 0
        self._is_final = not polled
        self._refusals: dict[int, Refusal] = {}
        """Last refusal by index."""
        self._sign: StopSign | None = None
        self._hopeless: set[bool] = set()
        """Set of flags, whether lost invocations were rejected permanently."""

    def run(self, invocations: Iterable[InvocationSpec]) -> Generator[Outcome, None, None]:
        """Yield an outcome per invocation, and per additional record of it.

        Raises
        ------
        ExecutorError
            At the end, if every function was rejected permanently: another launch would fail, too.
        """
        waiting = iter(invocations)
        first = next(waiting, None)
        if first is None or self._job.control is None:
            return
        self._view = ControlView(self._job.control, first.run_id)
        self._fetchers = PatientPool(_FETCHERS, self._completions, self._progress, self._view.renew)
        self._launchers = ThreadPool(self._launcher.threads, self._completions)
        try:
            self._ahead_ns = self._view.reach(self._clock)
            if self._ahead_ns:
                seconds = self._ahead_ns / NS_PER_S
                self._progress.note(
                    f"this machine's clock is {seconds:+.0f} s off the store's; corrected"
                )
            waiting = chain((first,), waiting)
            with signed(self._job, first, self._progress, launches=not self._follows) as self._sign:
                while self._launch_more(waiting) or self._in_flight or self._fetching:
                    self._poll()
                    self._progress.in_flight = len(self._in_flight)
                    for outcome in handle_completions(self._completions, _TICK_S):
                        self._progress.in_flight = len(self._in_flight)
                        yield outcome
            yield from self._poll_last()
        except (GeneratorExit, KeyboardInterrupt):
            self._note_left()
            raise
        finally:
            self._launchers.shut_down()
            self._fetchers.shut_down()
            self._launcher.close()
            self._view.close()
            self._progress.requests.update(self._view.requests)
        if self._hopeless == {True} and not self._seen.any_ran:
            cause = next(iter(self._refusals.values())).cause
            raise ExecutorError(
                f"no function can run: {cause}",
                hint="functions have the credentials and the network of where they run;"
                " sbench resume launches them again",
            )

    # Launching

    def _launch_more(self, waiting: Iterator[InvocationSpec]) -> bool:
        """Launch as many as the limits allow; return whether any can be launched later."""
        if self._follows:
            # Possible launches of another driver are revoked if they have not started.
            for spec in waiting:
                self._in_flight[spec.index] = Pending(
                    spec=spec,
                    submitted_ns=self._since_ns,
                    check_ns=0,
                    problem="the driver that launched it has ended",
                )
            return False
        if self._progress.stopped:
            return False
        launcher = self._launcher
        # Launches that wait for a thread only use memory.
        wanted = _AHEAD * launcher.threads * launcher.batch - self._launching
        if self._progress.limit is not None:
            wanted = min(wanted, self._progress.limit - len(self._in_flight))
        room = launcher.admit(wanted, len(self._in_flight))
        while room > 0:
            batch = islice(waiting, min(room, launcher.batch))
            sent = [Pending(spec=spec, submitted_ns=self._clock.now_ns()) for spec in batch]
            if not sent:
                return False
            room -= len(sent)
            self._in_flight |= {pending.spec.index: pending for pending in sent}
            self._launching += len(sent)
            self._launchers.submit(
                partial(self._launch, sent),
                partial(self._on_launched, sent),
                NotLaunchedError,
                partial(self._on_refused, sent),
            )
        return True

    def _launch(self, sent: Sequence[Pending]) -> int:
        if self._progress.stopped:
            raise NotLaunchedError(_STOPPED, 0)
        now_ns = self._clock.now_ns()
        for pending in sent:
            pending.submitted_ns = now_ns
        return self._launcher.launch(partial(self._events, sent))

    def _events(self, sent: Sequence[Pending]) -> Iterator[InvocationSpec]:
        """Yield the events of an attempt, each with its latest start time."""
        late_ns = self._clock.now_ns() + round(
            RemoteOptions.from_work(self._job).start_timeout * NS_PER_S
        )
        for pending in sent:
            pending.late_ns = late_ns
            # In the store's time, which is closer to the clocks of workers than the driver's may
            # be.
            spec = replace(pending.spec, not_after_ns=late_ns - self._ahead_ns)
            yield spec if self._sign is None else self._sign.event(spec)

    def _on_launched(self, sent: Sequence[Pending], refusals: int) -> None:
        # A started invocation may be silent until its deadline, so it is checked after that.
        over_ns = self._clock.now_ns() + round((self._job.deadline + GRACE_S) * NS_PER_S)
        self._launching -= len(sent)
        for pending in sent:
            pending.refusals = refusals
            # The function may finish before the response to its launch arrives.
            is_refused = pending.spec.index in self._refusals and self._is_final
            pending.check_ns = 0 if is_refused else min(pending.late_ns, over_ns)
        self._progress.started += len(sent)

    def _on_refused(self, sent: Sequence[Pending], error: NotLaunchedError) -> None:
        self._launching -= len(sent)
        for pending in sent:
            pending.refusals, pending.problem, pending.check_ns = error.refusals, str(error), 0

    # Finding records

    def _poll(self) -> None:
        for refusal in self._launcher.refusals():
            self._note(refusal)
        now_ns = self._clock.now_ns()
        if self._pages is None and now_ns >= self._next_list_ns and self._in_flight:
            targets = sorted(i for i, pending in self._in_flight.items() if not pending.busy)
            if targets:
                age = (now_ns - self._since_ns) / NS_PER_S / _SLOWER_AFTER_S
                pause_s = min(_SLOWEST_POLL_S, _POLL_S * max(1.0, age))
                self._next_list_ns = now_ns + round(pause_s * NS_PER_S)
                self._list(self._view.records(targets))
        if now_ns >= self._next_check_ns:
            self._next_check_ns = now_ns + round(_CHECK_S * NS_PER_S)
            self._heed_stop(now_ns)
            for pending in self._in_flight.values():
                if pending.check_ns <= now_ns and not pending.busy:
                    pending.busy = True
                    self._check(pending)

    def _heed_stop(self, now_ns: int) -> None:
        """After a stop, cancel what has not begun, and limit the wait for the rest."""
        give_up_ns = None if self._sign is None else self._sign.give_up_ns
        if give_up_ns is None:
            return
        last_ns = now_ns + give_up_ns - monotonic_ns()
        for pending in self._in_flight.values():
            if pending.began:
                pending.check_ns = min(pending.check_ns, last_ns)
            elif pending.problem != _STOPPED:
                pending.problem, pending.check_ns = _STOPPED, 0

    def _note_left(self) -> None:
        """Add a note about the functions that the driver leaves behind."""
        if self._in_flight:
            job, left = self._job, len(self._in_flight)
            cost = TOOLS.load("cost-left")(job, left) if "cost-left" in TOOLS else ""
            until_ns = wall_ns() + round(job.deadline * NS_PER_S)
            self._progress.note(
                f"{format_count(left, 'function')} may still run, until"
                f" {utc_stamp(until_ns, separators=True)} at most{cost}: sbench stop ends them, and"
                " saves their records"
            )

    def _note(self, refusal: Refusal) -> None:
        pending = self._in_flight.get(refusal.index)
        if pending is not None and pending.spec.launch == refusal.launch:
            self._refusals[refusal.index] = refusal
            if self._is_final:
                pending.problem, pending.check_ns = refusal.cause, 0
            else:
                self._progress.note(f"a worker cannot claim its event: {refusal.cause}")

    def _list(self, pages: Iterator[list[RecordKey]]) -> None:
        """Request the next page of a listing."""
        self._pages = pages
        page = partial(next, pages, None)
        self._fetchers.ask(page, self._on_listed, self._on_not_listed, Urgency.LISTING)

    def _on_listed(self, keys: Sequence[RecordKey] | None) -> None:
        pages, self._pages = self._pages, None
        if keys is not None and pages is not None:
            self._next_list_ns += round(_PAGE_S * NS_PER_S)
            self._take(keys)
            self._list(pages)

    def _on_not_listed(self, error: OperationError, _: bool) -> None:  # noqa: FBT001 - a callback
        self._pages = None
        self._fetchers.tolerate(error)

    def _take(self, keys: Iterable[RecordKey]) -> int:
        """Fetch new records, and return their number."""
        new = [key for key in keys if self._seen.add(key)]
        self._fetching += len(new)
        for key in new:
            self._fetch(key)
        return len(new)

    def _fetch(self, key: RecordKey, failures: int = 0, pause_s: float = 0.0) -> None:
        def record() -> InvocationRecord | Lost:
            sleep(pause_s)
            return self._view.fetch(key)

        def on_error(error: OperationError, others_answered: bool) -> Outcome | None:  # noqa: FBT001
            all_failures = failures + (others_answered or not self._in_flight)
            if all_failures > _MOST_FAILURES:
                cause = f"its record cannot be read: {error}"
                return self._on_fetched(key, Lost(index=key.index, launch=key.launch, cause=cause))
            self._fetchers.tolerate(error)
            self._fetch(key, all_failures, _RETRY_S)
            return None

        self._fetchers.ask(record, partial(self._on_fetched, key), on_error)

    def _on_fetched(self, key: RecordKey, result: InvocationRecord | Lost) -> Outcome | None:
        self._fetching -= 1
        if isinstance(result, Lost) and result.not_started:
            self._note(
                Refusal(index=key.index, launch=key.launch, cause=result.cause, permanent=True)
            )
            return None
        now_ns = self._clock.now_ns()
        pending = self._in_flight.get(key.index)
        if pending is not None and pending.spec.launch != key.launch:
            pending = None
        if isinstance(result, Lost):
            return None if pending is None else self._report_lost(pending, result.cause)
        self._seen.any_ran = True
        if self._sign is not None:
            self._sign.learn(result)
        if pending is not None and not result.duplicate:
            del self._in_flight[key.index]
        return Outcome(
            submitted_ns=self._since_ns if pending is None else pending.submitted_ns,
            collected_ns=now_ns,
            result=result,
            refusals=0 if pending is None else pending.refusals,
        )

    def _poll_last(self) -> Iterator[Outcome]:
        """Find additional records: duplicates, and late ones."""
        try:
            for keys in self._view.pages():
                self._take(keys)
        except OperationError as exc:
            self._progress.note(f"duplicates could not be counted: {exc}")
        while self._fetching:
            yield from handle_completions(self._completions, _TICK_S)

    # Silence

    def _check(self, pending: Pending) -> None:
        """Determine why an attempt is silent, and revoke it if it has not started."""
        again = partial(self._on_unknown, pending)
        if pending.began:
            records = partial(self._view.records_of, pending.spec.index)
            self._fetchers.ask(records, partial(self._on_silent, pending), again, Urgency.CLAIM)
        else:
            holder = partial(self._find_holder, pending)
            self._fetchers.ask(holder, partial(self._on_holder, pending), again, Urgency.CLAIM)

    def _find_holder(self, pending: Pending) -> Mapping[str, Any] | None:
        index, launch = pending.spec.index, pending.spec.launch
        holder = self._view.holder(index, launch)
        now_ns = self._clock.now_ns()
        if holder is None and (pending.problem or now_ns >= pending.late_ns):
            holder = self._view.take_back(index, launch, now_ns)
        return holder

    def _on_holder(self, pending: Pending, holder: Mapping[str, Any] | None) -> Outcome | None:
        pending.busy = False
        now_ns = self._clock.now_ns()
        if holder is None:
            pending.check_ns = pending.late_ns
        elif "delivery" in holder:
            pending.began = True
            held_ns = round(float(holder.get("held_s", self._job.deadline)) * NS_PER_S)
            until_ns = int(holder.get("until_ns", 0)) + self._ahead_ns + round(SKEW_S * NS_PER_S)
            over_ns = min(max(until_ns, now_ns), now_ns + held_ns)
            pending.check_ns = over_ns + round(GRACE_S * NS_PER_S)
        else:
            waited_s = (now_ns - pending.submitted_ns) / NS_PER_S
            cause = pending.problem or f"launch cancelled: not started within {waited_s:.0f} s"
            if not (pending.problem or self._is_final or self._seen.any_ran):
                self._progress.note(
                    f"no worker has taken an event: `sbench worker --control {self._view.url}` runs"
                    " them",
                    act=True,
                )
            return self._report_lost(pending, cause, not_started=True)
        return None

    def _on_unknown(
        self,
        pending: Pending,
        error: OperationError,
        others_answered: bool,  # noqa: FBT001 - a callback
    ) -> Outcome | None:
        """Retry, unless the start time is long over: workers observe it by themselves."""
        self._fetchers.tolerate(error)
        pending.busy = False
        pending.failures += others_answered
        now_ns = self._clock.now_ns()
        over = now_ns >= pending.late_ns + round((SKEW_S + GRACE_S) * NS_PER_S)
        if pending.began or not over or pending.failures < _MOST_FAILURES:
            return None
        waited_s = (now_ns - pending.submitted_ns) / NS_PER_S
        cause = f"not started within {waited_s:.0f} s, and its launch cannot be cancelled"
        return self._report_lost(pending, cause)

    def _on_silent(self, pending: Pending, keys: Sequence[RecordKey]) -> Outcome | None:
        pending.busy = False
        now_ns = self._clock.now_ns()
        mine = (pending.spec.index, pending.spec.launch)
        if any((key.index, key.launch) == mine for key in keys) and (
            self._take(keys) or self._fetching
        ):
            pending.check_ns = now_ns + round(GRACE_S * NS_PER_S)
            return None
        if self._progress.stopped:
            cause = "it started and left no record in the time that a stop takes"
        else:
            cause = (
                "it started but left no record: killed, out of memory or time, or the store"
                " refused it"
            )
        return self._report_lost(pending, cause)

    def _report_lost(
        self, pending: Pending, cause: str, *, not_started: bool = False
    ) -> Outcome | None:
        index = pending.spec.index
        if self._in_flight.pop(index, None) is None:
            return None
        refusal = self._refusals.get(index)
        self._hopeless.add(refusal is not None and refusal.permanent)
        if refusal is not None and (not_started or self._is_final):
            cause = refusal.cause
        return Outcome(
            submitted_ns=pending.submitted_ns,
            collected_ns=self._clock.now_ns(),
            result=Lost(
                index=index, launch=pending.spec.launch, cause=cause, not_started=not_started
            ),
            refusals=pending.refusals,
        )
