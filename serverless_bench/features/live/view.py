"""State of a run in progress, for the live view and the log."""

import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from serverless_bench.base.clock import monotonic_ns
from serverless_bench.base.escaping import for_terminal
from serverless_bench.base.units import NS_PER_S, bytes_per_second, format_seconds
from serverless_bench.clients import CLIENTS
from serverless_bench.executors import info_of
from serverless_bench.executors.base import RunProgress
from serverless_bench.features.cost.so_far import CostSoFar, Spent
from serverless_bench.features.live.board import BoardTotals, LiveBoard
from serverless_bench.features.live.bound_now import KEPT_PACE, bound_now
from serverless_bench.features.live.layout import SLOT_WORDS, percentile_ns
from serverless_bench.features.live.sampled import SampledBoard
from serverless_bench.job.abilities import RunsCode
from serverless_bench.job.planned_objects import mean_bytes
from serverless_bench.job.spec import JobSpec
from serverless_bench.rundir.record import InvocationRecord, Outcome
from serverless_bench.worker.board import KINDS, WARM_UP

WINDOW_NS: Final = 5 * NS_PER_S
"""Rates and percentiles cover the last five seconds."""
_STEP_NS: Final = NS_PER_S // 5
"""Minimum interval of samples, independent of the number of viewers."""
_POINTS: Final = 512
_PERCENTILES: Final = {"p50": 0.5, "p99": 0.99}
_NOTHING: Final = BoardTotals((0,) * SLOT_WORDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Rate of the operations of one kind."""

    kind: str
    per_s: float | None
    """None if only records are available, which arrive function by function."""
    bytes_per_s: float | None
    """Also None for a kind that transfers no bytes."""
    operations: int
    """Operations until now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Snapshot of a run."""

    phase: str
    """Phase of the functions: starting, preparing, the workload's name, or finishing."""
    share: float
    """Completed fraction of the work, 0 to 1."""
    elapsed_s: float
    left_s: float | None
    """Estimate from the pace until now; None if it is unknown."""
    functions: Mapping[str, int]
    """Number by state: ``waiting``, ``running`` (launched, for remote functions), ``done``,
    ``failed``
    and ``lost``. The sum is the number of requested functions; one that is launched again is not
    lost.
    """
    is_reporting: bool
    """Whether functions report progress while they run; otherwise all values come from the records
    of functions that have ended.
    """
    sampled: str
    """Precision of the estimate, and size of the sample; empty if all functions report."""
    totals: BoardTotals
    rates: Sequence[Rate]
    """Rates of the kinds that have occurred."""
    asked_per_s: float | None
    """Requested rate of an open loop."""
    achieved_per_s: float | None
    latencies: Sequence[str]
    """Median and 99th percentile; empty until an operation has succeeded."""
    timeline: Sequence[tuple[int, int, int]]
    """Nanoseconds since the start, and bytes and operations until then; empty if only records are
    available.
    """
    cost: Spent | None
    """None if the run has no cost."""
    bound: str
    note: str
    """Latest message for the user; empty if there is none."""


class RunView:
    """Collects the state of a run. It can be used from several threads.

    Parameters
    ----------
    job
        Job of the run.
    functions
        Number of functions that the driver waits for.
    live
        Progress that the executor updates.
    keys
        Keys of the objects to read.
    now_ns
        Function that returns the time.
    """

    def __init__(
        self,
        job: JobSpec,
        functions: int,
        live: RunProgress,
        keys: Sequence[str] = (),
        *,
        now_ns: Callable[[], int] = monotonic_ns,
    ) -> None:
        self._job = job
        self._functions = functions
        self._live = live
        self._now_ns = now_ns
        self._mean_bytes = mean_bytes(job, keys)
        self._cost = CostSoFar(job, live.prices)
        self._records = LiveBoard.here()
        self._from_records = self._records.writer()
        self._created_ns = now_ns()
        self._began_ns: int | None = None
        self._states: dict[int, str] = {}
        """``done``, ``failed`` or ``lost`` by index, once the last launch of it has ended."""
        self._launches_ended = 0
        self._lock = threading.Lock()
        self._samples = deque([(self._created_ns, _NOTHING)])
        self._timeline = [(0, 0, 0)]
        self._lanes_known = _lanes_known(job)
        self._in_process = info_of(job.executor).in_process

    def add(self, outcome: Outcome) -> None:
        """Count a function that has ended."""
        result = outcome.result
        with self._lock:
            self._launches_ended += 1
            if not isinstance(result, InvocationRecord):
                self._states.setdefault(result.index, "lost")
                return
            self._states[result.index] = "done" if result.ok else "failed"
            if self._live.totals() is None:
                self._from_records.add_record(result)
            self._cost.add(outcome)

    def look(self) -> Look:
        """Return a snapshot of the current state."""
        with self._lock:
            return self._look(self._now_ns())

    def _look(self, now_ns: int) -> Look:
        now = cast("BoardTotals | None", self._live.totals())
        is_live, totals = now is not None, self._records.totals() if now is None else now
        then_ns, before = self._sample(now_ns, totals)
        added, span_ns = totals.since(before), now_ns - then_ns
        running, ended_by = self._running, self._ended()
        ended = sum(ended_by.values())
        phase, requested = self._phase(totals), self._job.load.rate
        achieved = bytes_per_second(added.measured, span_ns)
        bound = bound_now(
            added,
            span_ns=span_ns if is_live else 0,
            running=running,
            absent=self._at_once(ended) - running,
            on_schedule=requested is not None and achieved >= KEPT_PACE * requested,
            lanes_known=self._lanes_known,
            threads=self._job.load.threads > 1 or self._job.transfer.connections > 1,
        )
        # Records have no times, so that their histogram covers the whole run.
        histogram = added.histogram if is_live else totals.histogram
        share = self._share(now_ns, totals)
        return Look(
            phase=phase,
            share=share,
            elapsed_s=(now_ns - self._created_ns) / NS_PER_S,
            left_s=self._left_s(now_ns, share),
            functions={
                "waiting": max(0, self._functions - running - ended),
                "running": running,
                **ended_by,
            },
            is_reporting=is_live,
            sampled=next((b.remark() for b in self._live.boards if isinstance(b, SampledBoard)), "")
            if is_live
            else "",
            totals=totals,
            rates=_rates(
                totals, added, span_ns if is_live else None, preparing=phase == "preparing"
            ),
            asked_per_s=requested,
            achieved_per_s=achieved if is_live else None,
            latencies=_latencies(histogram),
            timeline=tuple(self._timeline) if is_live else (),
            cost=self._cost.spent(totals),
            bound=bound,
            note=for_terminal(self._live.notes[-1]) if self._live.notes else "",
        )

    @property
    def _running(self) -> int:
        return max(0, self._live.started - self._launches_ended)

    def _ended(self) -> dict[str, int]:
        """Return the number of functions that have ended, by state."""
        counts = Counter(self._states.values())
        others = self._running + counts["done"] + counts["failed"]
        # The rest is of a lost launch that was launched again.
        counts["lost"] = max(0, min(counts["lost"], self._functions - others))
        return {state: counts[state] for state in ("done", "failed", "lost")}

    def _at_once(self, ended: int) -> int:
        """Return how many functions could be running now."""
        job, live = self._job, self._live
        most = 1 if self._in_process else live.concurrency or job.concurrency
        if live.limit is not None:
            most = min(most, live.limit)
        return min(most, max(0, self._functions - ended))

    def _sample(self, now_ns: int, totals: BoardTotals) -> tuple[int, BoardTotals]:
        """Save the current sample; return the sample at the start of the window."""
        samples = self._samples
        while len(samples) > 1 and now_ns - samples[1][0] >= WINDOW_NS:
            samples.popleft()
        first = samples[0]
        if now_ns - samples[-1][0] >= _STEP_NS:
            samples.append((now_ns, totals))
            self._timeline.append((now_ns - self._created_ns, totals.moved, totals.measured))
            if len(self._timeline) > _POINTS:
                # Keep every second point and the last: the resolution decreases with the run's
                # length.
                self._timeline = [*self._timeline[:-1:2], self._timeline[-1]]
        return first

    def _phase(self, totals: BoardTotals) -> str:
        if sum(self._ended().values()) >= self._functions:
            return "finishing"
        if not self._live.started:
            return "starting"
        if self._began_ns is None and not totals.measured and totals.operations[WARM_UP]:
            return "preparing"
        if self._began_ns is None:
            self._began_ns = self._now_ns()
        return self._job.workload

    def _share(self, now_ns: int, totals: BoardTotals) -> float:
        job, functions = self._job, max(1, self._functions)
        by_functions = min(1.0, sum(self._ended().values()) / functions)
        if self._began_ns is None:
            return by_functions
        if job.duration:
            if functions > job.concurrency:
                return by_functions
            took_s = (now_ns - self._began_ns) / NS_PER_S
            return max(by_functions, min(1.0, took_s / job.duration))
        # Use bytes, because all functions may end at the same time; a mix has no known total.
        total = 0.0 if job.load.is_drawn else functions * job.objects * self._mean_bytes
        total *= job.read_times + job.warm_up
        return max(by_functions, min(1.0, totals.moved / total) if total else 0.0)

    def _left_s(self, now_ns: int, share: float) -> float | None:
        took_s = 0.0 if self._began_ns is None else (now_ns - self._began_ns) / NS_PER_S
        return took_s / share * (1 - share) if took_s and share else None


def _rates(
    totals: BoardTotals, added: BoardTotals, span_ns: int | None, *, preparing: bool
) -> list[Rate]:
    """Return the rates of kinds that have occurred; preparations only during that phase.

    Without a span the rates are None.
    """
    seen, moved = totals.operations, totals.bytes
    new, new_bytes = added.operations, added.bytes
    return [
        Rate(
            kind="preparing" if kind == WARM_UP else kind,
            per_s=bytes_per_second(new[kind], span_ns) if span_ns is not None else None,
            bytes_per_s=(
                bytes_per_second(new_bytes[kind], span_ns)
                if span_ns is not None and moved[kind]
                else None
            ),
            operations=seen[kind],
        )
        for kind in KINDS
        if (seen[kind] or moved[kind]) and (preparing or kind != WARM_UP)
    ]


def _latencies(histogram: Sequence[int]) -> list[str]:
    ends_ns = {name: percentile_ns(histogram, share) for name, share in _PERCENTILES.items()}
    return [f"{name} {format_seconds(ns / NS_PER_S)}" for name, ns in ends_ns.items() if ns]


def _lanes_known(job: JobSpec) -> bool:
    """Return whether, according to the client, an attempt is one request on one thread."""
    return (
        job.load.library is None
        and not isinstance(job.declared, RunsCode)
        and CLIENTS.load(job.target.client).info.attempts == "exact"
    )
