"""An objective, the result of a run at a level, and whether its queue grows. Pure functions.

At a rate that exceeds the capacity of a store by 1 %, the delay of operations grows by 10 ms per
second. In a block of 5 s it only reaches 50 ms, but it continues to grow in a longer run. The
growth is the slope of a line through the medians of batches, which are robust against outliers. It
has to be significant: the lower bound is used, with an error that is increased for autocorrelated
batches.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.compare.distributions import student_quantile
from serverless_bench.job.types import wrong
from serverless_bench.metrics.clock_offsets import aligned, worker_offsets
from serverless_bench.metrics.latency_over_time import dropped_operations
from serverless_bench.metrics.timeline import counted, good_operations, measured_operations
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import ABSENT, Floats, Mask, is_text, largest_by, least_by

LASTS_S: Final = 60.0
"""A level holds an objective if it would hold it for this duration."""
_SURE: Final = 0.999
"""One-sided confidence for a block without growth, because a search has dozens of blocks."""
_BATCHES: Final = 16
_LEAST_BATCHES: Final = 8
_OF_BATCH: Final = 4
_MOST_MEMORY: Final = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Increase of the delay of operations, in seconds per second."""

    per_s: float
    low_per_s: float
    """Lower confidence bound."""

    def breaks(self, p99_s: float) -> bool:
        """Return whether the delay would exceed ``p99_s`` within ``LASTS_S``."""
        return self.low_per_s * LASTS_S > p99_s


def growth_of(due_s: Floats, took_s: Floats) -> Growth | None:
    """Return the growth of delays in an open loop; None if there are too few operations.

    Parameters
    ----------
    due_s
        Scheduled times of the operations, in any order.
    took_s
        Times from schedule to completion.
    """
    batches = min(_BATCHES, len(due_s) // _OF_BATCH)
    if batches < _LEAST_BATCHES:
        return None
    order = np.argsort(due_s, kind="stable")
    at = np.array([part.mean() for part in np.array_split(due_s[order], batches)])
    late = np.array([np.median(part) for part in np.array_split(took_s[order], batches)])
    away = at - at.mean()
    spread = float(away @ away)
    if not spread:
        return None
    slope = float(away @ late) / spread
    rest = late - late.mean() - slope * away
    square = float(rest @ rest)
    memory = float(rest[1:] @ rest[:-1]) / square if square else 0.0
    memory = min(max(memory, 0.0), _MOST_MEMORY)
    error = np.sqrt(square / (batches - 2) / spread * (1 + memory) / (1 - memory))
    low = slope - student_quantile(batches - 2, _SURE) * float(error)
    return Growth(per_s=slope, low_per_s=low)


_BEYOND_P99: Final = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """Allowed shares of slow and failed operations.

    Raises
    ------
    UsageError
        If neither is set.
    """

    p99_s: float | None = None
    """Maximum duration of 99 of 100 operations."""
    errors: float | None = None
    """Allowed share of operations that fail or do not start."""

    def __post_init__(self) -> None:
        if self.p99_s is not None and not self.p99_s > 0:
            raise wrong("p99", f"must be positive, got {self.p99_s}", hint="as in `p99` 50ms")
        if self.p99_s is None and self.errors is None:
            raise UsageError(
                "there is no objective to hold", hint="for example --p99 50ms --errors 0.1%"
            )

    @property
    def allowed(self) -> dict[str, float]:
        """Allowed share of bad operations, by part of the objective."""
        parts = {"p99": None if self.p99_s is None else _BEYOND_P99, "errors": self.errors}
        return {name: share for name, share in parts.items() if share is not None}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Block:
    """Operations of a run that were due after it had settled."""

    level: int
    path: Path | None
    took_s: Floats
    """Durations of successful operations, in an open loop from their scheduled start; ascending."""
    failed: int
    """Failed operations, including an estimate for failed or lost functions."""
    dropped: int
    """Dropped operations, which never started."""
    achieved_per_s: float
    """Rate of successful operations between the first and the last scheduled time that count."""
    own_s: Floats | None = None
    """Durations from the actual start, in the order of ``took_s``."""
    busy: float | None = None
    """Share of the threads' time in operations; None if it is unknown."""
    growth: Growth | None = None
    """Growth of delays within the block; None in a closed loop, which has no queue."""

    @property
    def due(self) -> int:
        """Number of all operations."""
        return len(self.took_s) + self.failed + self.dropped

    def grows(self, objective: Objective) -> bool:
        """Return whether a growing queue would break the objective in a longer run."""
        p99_s = objective.p99_s
        return p99_s is not None and self.growth is not None and self.growth.breaks(p99_s)

    def begun_late(self, p99_s: float) -> int:
        """Return the number of operations that were slow only due to a late or missing start."""
        if self.own_s is None:
            return 0
        return self.dropped + int(((self.took_s > p99_s) & (self.own_s <= p99_s)).sum())

    def bad(self, objective: Objective) -> dict[str, int]:
        """Return the number of operations that break each part of an objective.

        Operations that failed or did not start break all parts: they waited at least as long. If a
        queue grows, all operations become slow eventually.
        """
        undone = self.failed + self.dropped
        counts = {}
        if objective.p99_s is not None:
            in_time = int(np.searchsorted(self.took_s, objective.p99_s, side="right"))
            counts["p99"] = undone + len(self.took_s) - in_time
            if self.grows(objective):
                counts["p99"] = self.due
        if objective.errors is not None:
            counts["errors"] = undone
        return counts


def block_of(run: Run, level: int, settle_s: float) -> Block:
    """Return the result of a run at a level.

    Parameters
    ----------
    run
        A saved run with a duration.
    level
        Level of the run.
    settle_s
        Time after the first operation that is excluded, while connections are opened and queues
        fill.
    """
    run = aligned(run, worker_offsets(run))
    operations, counts = run.operations, counted(run)
    measured, good = measured_operations(run), good_operations(run)
    intended = operations["intended_ns"]
    due_ns = np.where(intended == ABSENT, operations["start_ns"], intended)
    scheduled = measured & (intended != ABSENT)
    never = dropped_operations(run, counts, scheduled, np.zeros_like(due_ns)).due_ns
    instants = np.concatenate((due_ns[measured], never))
    if not len(instants):
        return Block(
            level=level, path=run.path, took_s=np.zeros(0), failed=1, dropped=0, achieved_per_s=0.0
        )
    first_ns = int(instants.min()) + round(settle_s * NS_PER_S)
    if int(instants.max()) < first_ns:
        # Operations take longer than a block, so no others started.
        first_ns = int(instants.min())
    counted_in = due_ns >= first_ns
    done = good & counted_in
    took_s = np.maximum(operations["end_ns"] - due_ns, 0)[done] / NS_PER_S
    order = np.argsort(took_s, kind="stable")
    own_s = (operations["end_ns"] - operations["start_ns"])[done] / NS_PER_S
    growth = growth_of((due_ns[done & scheduled] - first_ns) / NS_PER_S, took_s[scheduled[done]])
    failed, dropped = int((measured & ~good & counted_in).sum()), int((never >= first_ns).sum())
    returned, lost = int(counts.sum()), int(is_text(run.functions["status"], "lost").sum())
    unknown = lost * max(1, (len(took_s) + failed + dropped) // max(returned, 1))
    until_ns = max(int(instants.max()), first_ns + 1)
    ends = operations["end_ns"][good]
    within = int(((ends >= first_ns) & (ends < until_ns)).sum())
    if scheduled.any():
        # Operations that were due before end in a backlog, which is no rate of the level.
        within = min(within, int(((instants >= first_ns) & (instants < until_ns)).sum()))
    return Block(
        level=level,
        path=run.path,
        took_s=took_s[order],
        own_s=own_s[order],
        failed=failed + unknown,
        dropped=dropped,
        achieved_per_s=within * NS_PER_S / (until_ns - first_ns),
        busy=_busy(run, measured),
        growth=growth,
    )


def _busy(run: Run, measured: Mask) -> float:
    """Return the share of the time of all threads, while their function measured, in operations."""
    names = ("function", "start_ns", "end_ns")
    function, start, end = (run.operations[name][measured] for name in names)
    count = len(run.functions["index"])
    spans = largest_by(function, end, count) - least_by(function, start, count)
    threads_ns = run.job.load.threads * int(spans[np.unique(function)].sum())
    return float((end - start).sum() / max(threads_ns, 1))
