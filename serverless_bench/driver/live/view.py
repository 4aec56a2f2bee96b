"""What is known of a run while it is under way: what the live view and a log show."""

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from serverless_bench.clients import CLIENTS
from serverless_bench.clock import monotonic_ns
from serverless_bench.driver.live.bound_now import KEPT_PACE, bound_now
from serverless_bench.driver.live.cost_so_far import CostSoFar, Spent
from serverless_bench.executors import info_of
from serverless_bench.executors.base import RunProgress
from serverless_bench.job.planned_objects import mean_bytes
from serverless_bench.job.spec import JobSpec
from serverless_bench.rundir.record import InvocationRecord, Outcome
from serverless_bench.units import NS_PER_S, bytes_per_second, format_seconds
from serverless_bench.worker.live_board import BoardTotals, LiveBoard
from serverless_bench.worker.live_layout import KINDS, SLOT_WORDS, WARM_UP, percentile_ns

WINDOW_NS: Final = 5 * NS_PER_S
"""Rates and percentiles are those of the last five seconds."""
_STEP_NS: Final = NS_PER_S // 5
"""Samples are this far apart at least, whoever asks how often."""
_POINTS: Final = 512
_PERCENTILES: Final = {"p50": 0.5, "p99": 0.99}
_NOTHING: Final = BoardTotals((0,) * SLOT_WORDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """What operations of one kind do."""

    kind: str
    per_s: float | None
    """None where only records tell: these come function by function."""
    bytes_per_s: float | None
    """None of a kind that moves none, too."""
    operations: int
    """So far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A run at one instant."""

    phase: str
    """What functions are at: starting, preparing, their workload, or finishing."""
    share: float
    """How much of the work is done, 0 to 1."""
    elapsed_s: float
    left_s: float | None
    """At the pace so far; None as long as nobody knows."""
    functions: Mapping[str, int]
    """By state: ``waiting``, ``running`` (launched, where they are remote), ``done``, ``failed``
    and ``lost``; their sum is how many were asked for, once those that are launched again have
    ended."""
    told: bool
    """Whether functions tell what they do while they run; otherwise their records do in the
    end, and figures are of those that have ended."""
    totals: BoardTotals
    rates: Sequence[Rate]
    """Of the kinds that have occurred."""
    asked_per_s: float | None
    """Rate of an open loop."""
    achieved_per_s: float | None
    latencies: Sequence[str]
    """Median and 99th percentile; empty as long as nothing has succeeded."""
    timeline: Sequence[tuple[int, int, int]]
    """Nanoseconds since the beginning, bytes and operations until then; empty where only records
    tell."""
    cost: Spent | None
    """None where nothing has a cost."""
    bound: str


class RunView:
    """Watches a run. Several threads may look.

    Parameters
    ----------
    job
        What runs.
    functions
        How many of its functions are waited for.
    live
        What the executor keeps up to date.
    keys
        Of the objects that are read.
    now_ns
        A clock.
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
        self._ended = {"done": 0, "failed": 0, "lost": 0}
        self._lock = threading.Lock()
        self._samples = deque([(self._created_ns, _NOTHING)])
        self._timeline = [(0, 0, 0)]
        self._lanes_known = _lanes_known(job)
        self._in_process = info_of(job.executor).in_process

    def add(self, outcome: Outcome) -> None:
        """Count a function that has come to its end."""
        result = outcome.result
        with self._lock:
            if not isinstance(result, InvocationRecord):
                self._ended["lost"] += 1
                return
            self._ended["done" if result.ok else "failed"] += 1
            if not self._live.boards:
                self._from_records.add_record(result)
            self._cost.add(outcome)

    def look(self) -> Look:
        """Return how it stands now."""
        with self._lock:
            return self._look(self._now_ns())

    def _look(self, now_ns: int) -> Look:
        now = self._live.totals()
        told, totals = now is not None, self._records.totals() if now is None else now
        then_ns, before = self._sample(now_ns, totals)
        added, span_ns = totals.since(before), now_ns - then_ns
        over = sum(self._ended.values())
        running = max(0, self._live.started - over)
        phase, asked = self._phase(totals), self._job.load.rate
        achieved = bytes_per_second(added.measured, span_ns)
        bound = bound_now(
            added,
            span_ns=span_ns if told else 0,
            running=running,
            absent=self._at_once(over) - running,
            on_schedule=asked is not None and achieved >= KEPT_PACE * asked,
            lanes_known=self._lanes_known,
            threads=self._job.load.threads > 1 or self._job.transfer.connections > 1,
        )
        # Records say what was, and not when.
        histogram = added.histogram if told else totals.histogram
        share = self._share(now_ns, totals)
        return Look(
            phase=phase,
            share=share,
            elapsed_s=(now_ns - self._created_ns) / NS_PER_S,
            left_s=self._left_s(now_ns, share),
            functions={
                "waiting": max(0, self._functions - running - over),
                "running": running,
                **self._ended,
            },
            told=told,
            totals=totals,
            rates=_rates(totals, added, span_ns if told else None, preparing=phase == "preparing"),
            asked_per_s=asked,
            achieved_per_s=achieved if told else None,
            latencies=_latencies(histogram),
            timeline=tuple(self._timeline) if told else (),
            cost=self._cost.spent(totals),
            bound=bound,
        )

    def _at_once(self, ended: int) -> int:
        """Return how many functions could be at work now."""
        job, live = self._job, self._live
        most = 1 if self._in_process else live.concurrency or job.concurrency
        if live.limit is not None:
            most = min(most, live.limit)
        return min(most, max(0, self._functions - ended))

    def _sample(self, now_ns: int, totals: BoardTotals) -> tuple[int, BoardTotals]:
        """Keep what is seen now; return what was seen at the beginning of the window."""
        samples = self._samples
        while len(samples) > 1 and now_ns - samples[1][0] >= WINDOW_NS:
            samples.popleft()
        first = samples[0]
        if now_ns - samples[-1][0] >= _STEP_NS:
            samples.append((now_ns, totals))
            since_ns = now_ns - self._created_ns
            self._timeline.append((since_ns, totals.moved, totals.measured))
            if len(self._timeline) > _POINTS:
                # Every other one, and the last: the longer a run, the coarser.
                self._timeline = [*self._timeline[:-1:2], self._timeline[-1]]
        return first

    def _phase(self, totals: BoardTotals) -> str:
        if sum(self._ended.values()) >= self._functions:
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
        by_functions = min(1.0, sum(self._ended.values()) / functions)
        if self._began_ns is None:
            return by_functions
        if job.duration:
            if functions > job.concurrency:
                return by_functions
            took_s = (now_ns - self._began_ns) / NS_PER_S
            return max(by_functions, min(1.0, took_s / job.duration))
        # By bytes, where functions end all at once; what is mixed has no known total.
        total = 0.0 if job.load.is_drawn else functions * job.objects * self._mean_bytes
        total *= job.read_times + job.warm_up
        return max(by_functions, min(1.0, totals.moved / total) if total else 0.0)

    def _left_s(self, now_ns: int, share: float) -> float | None:
        took_s = 0.0 if self._began_ns is None else (now_ns - self._began_ns) / NS_PER_S
        return took_s / share * (1 - share) if took_s and share else None


def _rates(
    totals: BoardTotals, added: BoardTotals, span_ns: int | None, *, preparing: bool
) -> list[Rate]:
    """Return what the kinds do that have occurred; preparations only while they last.

    Without a span there are no rates.
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
    """Tell whether an attempt is one request, which occupies a thread, as the client says."""
    if job.load.library is not None or job.declared.runs_code:
        return False
    return CLIENTS.load(job.target.client).info.attempts == "exact"
