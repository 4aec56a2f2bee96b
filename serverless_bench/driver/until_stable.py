"""End a run when its rate is known well enough: ``--until-stable``.

The driver reads the live board in a thread of its own, and tells the functions to end.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, Final

import numpy as np

from serverless_bench.clock import monotonic_ns, repeated
from serverless_bench.executors.base import RunProgress
from serverless_bench.job.spec import JobSpec
from serverless_bench.rundir.tables import Floats
from serverless_bench.statistics.stability import LOOK_S, SAMPLE_S, StoppingRule
from serverless_bench.units import MIB, NS_PER_S
from serverless_bench.worker.live_layout import WARM_UP

_LARGE_BYTES: Final = MIB
"""From this mean size on, bytes are what goes on evenly; of smaller objects, operations."""


@contextmanager
def ended_when_stable(job: JobSpec, live: RunProgress, closing: dict[str, Any]) -> Iterator[None]:
    """End the job when it is stable; ``closing`` gets ``stability``, how that went."""
    if job.until_stable is None:
        yield
        return
    watch = _StabilityWatch(StoppingRule(job.until_stable), live, job.duration or 0.0)
    try:
        with repeated(watch.sample, SAMPLE_S, name="until stable"):
            yield
    finally:
        closing["stability"] = watch.report()


class _StabilityWatch:
    """Samples of what functions have done, and what they say.

    Parameters
    ----------
    stopping
        Says when to end.
    live
        Has the board.
    duration_s
        How long each function works.
    """

    def __init__(self, stopping: StoppingRule, live: RunProgress, duration_s: float) -> None:
        self._stopping = stopping
        self._live = live
        self._duration_s = duration_s
        self._looks: list[tuple[int, int, int]] = []
        """When, and how many bytes and operations there were."""
        self._looked_ns = 0
        self._reached_s: float | None = None

    def sample(self) -> None:
        """Read the board; look at it all, now and then, and end the run if it is stable."""
        totals, now_ns = self._live.totals(), monotonic_ns()
        if totals is None or self._reached_s is not None:
            return
        self._looks.append((now_ns, totals.moved - totals.bytes[WARM_UP], totals.measured))
        if now_ns - self._looked_ns < LOOK_S * NS_PER_S:
            return
        self._looked_ns = now_ns
        samples = self._samples()
        if len(samples) and self._stopping.stable(samples):
            self._reached_s = len(samples) * SAMPLE_S
            self._live.stop()

    @property
    def _counts_bytes(self) -> bool:
        _, moved, done = self._looks[-1] if self._looks else (0, 0, 0)
        return moved >= max(1, _LARGE_BYTES * done)

    def _samples(self, *, over: bool = False) -> Floats:
        """Return what each stretch of equal length had, from the first one that had anything.

        Functions that have nothing to show are stalled, as long as they are to work; what it takes
        to end them after the run is ``over`` is not theirs.
        """
        at_ns, moved, done = np.array(self._looks, dtype=np.int64).reshape(-1, 3).T
        counts = moved if self._counts_bytes else done
        busy = np.flatnonzero(np.diff(counts))
        if not len(busy):
            return np.zeros(0)
        # A thread wakes up late, so counts are read between two of its looks.
        at_s = (at_ns - at_ns[busy[0]]) / NS_PER_S
        end_s = max(at_s[busy[-1] + 1], min(at_s[-1], self._duration_s)) if over else at_s[-1]
        grid = np.arange(int(end_s / SAMPLE_S) + 1) * SAMPLE_S
        return np.asarray(np.diff(np.interp(grid, at_s, counts)), dtype=np.float64)

    def report(self) -> dict[str, Any]:
        """Return how it went; with a last look, if the run ended by itself."""
        samples = self._samples(over=True)
        if self._reached_s is None and len(samples):
            self._stopping.stable(samples)
        latest = self._stopping.latest
        known = latest is not None and latest.half_width != float("inf")
        found = asdict(latest) if known and latest is not None else {}
        return {
            "asked": self._stopping.asked,
            "reached": self._reached_s is not None,
            "after_s": self._reached_s,
            "looked_s": self._reached_s or len(samples) * SAMPLE_S,
            "of": "bytes" if self._counts_bytes else "operations",
            **{name: found.get(name) for name in ("mean_per_s", "low_per_s", "high_per_s")},
            **{name: found.get(name) for name in ("half_width", "trend", "block_s")},
            "blocks": 0 if latest is None else latest.blocks,
            "looks": self._stopping.looks,
        }
