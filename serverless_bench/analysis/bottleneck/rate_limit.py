"""Each function's bytes over time as a token bucket, and which of them share its rate. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from serverless_bench.analysis.bottleneck.slots import at_once
from serverless_bench.analysis.spreading import elapsed_before
from serverless_bench.analysis.visibility import unacknowledged
from serverless_bench.aws.lambda_network import BASE_MBPS, MOST_MBPS, function_network
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import (
    ABSENT,
    LATEST,
    Floats,
    Ints,
    Mask,
    at_percentiles,
    rows_of,
)
from serverless_bench.units import NS_PER_S

_SAMPLE: Final = 200
"""Functions whose curves are fitted; evenly spaced among all."""
_POINTS: Final = 200
_STRIDE: Final = 4
_LEAST_TAIL: Final = 0.3
"""The straight part has to be this much of a function's time."""
_STRAIGHT: Final = 0.02
"""A line may miss the curve by this share of all bytes."""
BURST_SHARE: Final = 0.05
"""A burst below this share of the bytes is the start of a connection."""
FLOW_SHARE: Final = 0.5
"""Bytes that flow for less of the time cannot be what takes the time."""
SCOPES: Final = ("connection", "function", "all")
"""Scopes that a limit of the rate of bytes may have."""
_VARIED: Final = 1.5
"""Functions at work have to vary by this factor to tell a common limit from one of each."""
_ALIKE_AFTER_BURST: Final = 0.10
_ALIKE: Final = 0.02
"""How far p95 and p5 of the slopes may be apart, by their median, without a burst."""
_LEAST_ALIKE: Final = 3
_PUBLISHED: Final = 0.05
"""How far a rate after a burst may be from what AWS says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketFit:
    """One function's bytes over time as a token bucket."""

    burst_bytes: float
    """Moved above the sustained rate: the bucket's size; 0 without a burst."""
    sustained_bytes_per_s: float
    total_bytes: float


def bucket_fits(run: Run, good: Mask, rows: Ints, sample: Ints) -> dict[int, BucketFit]:
    """Return the buckets of a sample that show one, by position in ``rows``."""
    fits = (fit_bucket(at_s, moved) for at_s, moved in _curves(run, good, rows[sample]))
    return {at: fit for at, fit in zip(sample.tolist(), fits, strict=True) if fit is not None}


def _curves(run: Run, good: Mask, rows: Ints) -> Iterator[tuple[Floats, Floats]]:
    """Yield for each function its seconds since its start and the bytes moved by then."""
    function, all_starts = (run.operations[name] for name in ("function", "start_ns"))
    for row in rows.tolist():
        of_operations = slice(*np.searchsorted(function, (row, row + 1)).tolist())
        wanted, start = good[of_operations], all_starts[of_operations]
        found = rows_of(run.steps, row, ("operation", "step_ns", "step_bytes"))
        number, length = found["operation"], found["step_ns"]
        # Steps follow one another from their operation's start.
        ends = start[number] + elapsed_before(length, number) + length
        keep = wanted[number]
        order = np.argsort(ends[keep], kind="stable")
        at_ns = ends[keep][order] - start[wanted].min(initial=LATEST)
        moved = np.cumsum(found["step_bytes"][keep][order])
        yield (
            np.concatenate(([0.0], at_ns / NS_PER_S)),
            np.concatenate(([0.0], moved.astype(np.float64))),
        )


def fit_bucket(at_s: Floats, moved: Floats) -> BucketFit | None:
    """Return the token bucket that a curve of bytes over time shows, if it shows one.

    Parameters
    ----------
    at_s, moved
        Points of the curve, ascending, from ``(0, 0)``.

    Returns
    -------
    BucketFit or None
        From the longest end of the curve that is a straight line: its slope is the
        sustained rate, and where it meets the axis is what came on top. None when no
        such end is long enough.
    """
    if len(at_s) < 6 or at_s[-1] <= 0:
        return None
    # The last stretch waits for the acknowledgement; nothing moves in it.
    stop = float(at_s[int(np.searchsorted(moved, moved[-1]))])
    if stop <= 0:
        return None
    grid = np.linspace(0, stop, _POINTS)
    curve = np.interp(grid, at_s, moved)
    for first in range(0, round(_POINTS * (1 - _LEAST_TAIL)), _STRIDE):
        slope, _, missed = _line(grid[first:], curve[first:])
        if slope > 0 and missed <= _STRAIGHT * moved[-1]:
            # The line may have begun in the bend: its first quarter does not count.
            later = first + (_POINTS - first) // 4
            slope, intercept, _ = _line(grid[later:], curve[later:])
            return BucketFit(
                burst_bytes=max(0.0, intercept),
                sustained_bytes_per_s=slope,
                total_bytes=float(moved[-1]),
            )
    return None


def _line(x: Floats, y: Floats) -> tuple[float, float, float]:
    """Return slope and intercept of the least squares line, and by how much it misses most."""
    across, up = x - x.mean(), y - y.mean()
    slope = float((across @ up) / (across @ across))
    return slope, float(y.mean() - slope * x.mean()), float(np.abs(up - slope * across).max())


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimits:
    """Functions whose rate is constant while bytes flow."""

    functions: Mapping[str, set[int]]
    """Positions of these functions: ``function_network`` where the rate is what AWS publishes for
    a function of that memory, ``rate_limit`` where it is that of the other functions."""
    scopes: tuple[str, ...]
    """Scopes that the limit of the second kind may have: each connection, each function, all."""
    fits: Sequence[BucketFit]
    """Fits of all of them."""


def limited_functions(run: Run, good: Mask, rows: Ints, flow: Floats) -> RateLimits:
    """Return which functions of a sample ran into a limit of their rate.

    Parameters
    ----------
    run
        A saved run, its workers' instants on the driver's clock.
    good
        Which operations succeeded and count.
    rows
        Functions that moved bytes.
    flow
        Share of the time in which bytes flowed, shape of ``rows``; NaN where it is not known. A
        rate says nothing of a limit of bytes where they flow for less than ``FLOW_SHARE``.
    """
    buckets = bucket_fits(run, good & ~unacknowledged(run), rows, sample_of(len(rows)))
    memory_mib = run.functions["memory_mib"][rows]
    published = {
        at
        for at, fit in buckets.items()
        if memory_mib[at] != ABSENT and _is_published(fit, int(memory_mib[at]))
    }
    beside = _functions_beside(run, rows)
    alike, shared = set[int](), set[int]()
    for memory in sorted(set(memory_mib[list(buckets)].tolist())):
        flowing = {
            at: fit
            for at, fit in buckets.items()
            if memory_mib[at] == memory and flow[at] >= FLOW_SHARE and at not in published
        }
        rates = {at: fit.sustained_bytes_per_s for at, fit in flowing.items()}
        alike |= _alike(flowing, rates)
        shared |= _alike(flowing, {at: rate * beside[at] for at, rate in rates.items()})
    least, most = at_percentiles(beside, (5, 95)) if len(beside) else (1.0, 1.0)
    scopes = ["connection", "function"] if alike else []
    if not alike or most < _VARIED * least:
        scopes.append("all")
    limited = alike or shared
    return RateLimits(
        functions={"function_network": published, "rate_limit": limited},
        scopes=tuple(scopes),
        fits=[buckets[at] for at in sorted(published | limited)],
    )


def _functions_beside(run: Run, rows: Ints) -> Floats:
    """Return the mean number of functions at work during each function, itself included."""
    start, end = (run.functions[name][rows] for name in ("start_ns", "end_ns"))
    edges = np.unique(np.concatenate((start, end)))
    at_work = at_once(edges, start, end)
    area = np.concatenate(([0.0], np.cumsum(at_work * np.diff(edges).astype(np.float64))))
    during = np.interp(end, edges, area) - np.interp(start, edges, area)
    return np.asarray(during / np.maximum(end - start, 1), dtype=np.float64)


def _is_published(bucket: BucketFit, memory_mib: int) -> bool:
    if bucket.burst_bytes <= BURST_SHARE * bucket.total_bytes:
        return False
    return any(
        abs(bucket.sustained_bytes_per_s / function_network(memory_mib, quota_mbps=quota) - 1)
        <= _PUBLISHED
        for quota in (BASE_MBPS, MOST_MBPS)
    )


def _alike(buckets: Mapping[int, BucketFit], rates: Mapping[int, float]) -> set[int]:
    """Return which of some functions have about the rate that most of them have."""
    values = np.array(list(rates.values()))
    if len(values) < _LEAST_ALIKE:
        return set()
    low, middle, high = at_percentiles(values, (5, 50, 95))
    spread = (high - low) / middle
    with_burst = (
        float(np.median([b.burst_bytes / b.total_bytes for b in buckets.values()])) > BURST_SHARE
    )
    if spread > (_ALIKE_AFTER_BURST if with_burst else _ALIKE):
        return set()
    near = _ALIKE_AFTER_BURST * middle
    return {at for at, rate in rates.items() if abs(rate - middle) <= near}


def sample_of(count: int) -> Ints:
    """Return the positions of at most ``_SAMPLE`` functions, evenly spaced among all."""
    return np.linspace(0, count - 1, min(count, _SAMPLE)).astype(np.int64)


def share_of_sample(sample: Ints, limited: set[int], of: Mask) -> float:
    """Return how many of a sample are limited; one that shows no bucket is not."""
    members = [i for i in sample.tolist() if of[i]]
    return len(limited.intersection(members)) / len(members) if members else 0.0
