"""Watch the rate of a run: read the board in a separate thread, and signal the functions to end."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, Final

import numpy as np

from serverless_bench.base.clock import monotonic_ns, repeated
from serverless_bench.base.units import MIB, NS_PER_S
from serverless_bench.executors.base import RunProgress
from serverless_bench.features.compare.stability import LOOK_S, SAMPLE_S, StoppingRule
from serverless_bench.features.until_stable.options import StoppingOptions
from serverless_bench.job.spec import JobSpec
from serverless_bench.rundir.tables import Floats
from serverless_bench.worker.board import WARM_UP

_LARGE_BYTES: Final = MIB
"""Mean size from which the rate in bytes is used; for smaller objects, the rate of operations."""


@contextmanager
def ended_when_stable(job: JobSpec, live: RunProgress, closing: dict[str, Any]) -> Iterator[None]:
    """End the job when it is stable; the result is stored in ``closing["stability"]``."""
    watch = _StabilityWatch(
        StoppingRule(StoppingOptions.from_work(job).until_stable or 0.0), live, job.duration or 0.0
    )
    try:
        with repeated(watch.sample, SAMPLE_S, name="until stable"):
            yield
    finally:
        closing["stability"] = watch.report()


class _StabilityWatch:
    """Samples of the functions' progress, and the decision of the stopping rule.

    Parameters
    ----------
    stopping
        Rule that decides when to end.
    live
        Progress of the run, with the live board.
    duration_s
        Planned duration of each function in seconds.
    """

    def __init__(self, stopping: StoppingRule, live: RunProgress, duration_s: float) -> None:
        self._stopping = stopping
        self._live = live
        self._duration_s = duration_s
        self._looks: list[tuple[int, int, int]] = []
        """Time of each sample, and the number of bytes and operations until then."""
        self._looked_ns = 0
        self._reached_s: float | None = None

    def sample(self) -> None:
        """Read the board; evaluate all samples now and then, and end the run if it is stable."""
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
        """Return the progress in intervals of equal length, from the first interval with progress.

        Functions without progress during the planned duration are stalled; the time it takes to end
        them after the run is ``over`` is ignored.
        """
        at_ns, moved, done = np.array(self._looks, dtype=np.int64).reshape(-1, 3).T
        counts = moved if self._counts_bytes else done
        busy = np.flatnonzero(np.diff(counts))
        if not len(busy):
            return np.zeros(0)
        # The thread may wake up late, so counts are interpolated between two samples.
        at_s = (at_ns - at_ns[busy[0]]) / NS_PER_S
        end_s = max(at_s[busy[-1] + 1], min(at_s[-1], self._duration_s)) if over else at_s[-1]
        grid = np.arange(int(end_s / SAMPLE_S) + 1) * SAMPLE_S
        return np.asarray(np.diff(np.interp(grid, at_s, counts)), dtype=np.float64)

    def report(self) -> dict[str, Any]:
        """Return the result, with a final evaluation if the run ended by itself."""
        samples = self._samples(over=True)
        if self._reached_s is None and len(samples):
            self._stopping.stable(samples)
        latest = self._stopping.latest
        is_bounded = latest is not None and latest.half_width != float("inf")
        fields_of_latest = asdict(latest) if is_bounded and latest is not None else {}
        return {
            "asked": self._stopping.asked,
            "reached": self._reached_s is not None,
            "after_s": self._reached_s,
            "looked_s": self._reached_s or len(samples) * SAMPLE_S,
            "of": "bytes" if self._counts_bytes else "operations",
            **{
                name: fields_of_latest.get(name)
                for name in ("mean_per_s", "low_per_s", "high_per_s")
            },
            **{name: fields_of_latest.get(name) for name in ("half_width", "trend", "block_s")},
            "blocks": 0 if latest is None else latest.blocks,
            "looks": self._stopping.looks,
        }
