"""Rate limits of functions, and the time of their slots. Pure functions.

Token buckets are fitted to the bytes of functions over time, to find shared rate limits.

A slot has capacity for a function; a run has as many slots as its planned concurrency. The records
contain the times at which functions were submitted, started, ended and were collected. Slots
without a running function are idle at a given time, for the first matching reason:

delivery
    A function has ended, and its record has not been collected.
cold start, launch
    A function has been submitted, and is loading its code, or has not started to.
unfilled
    Functions remain, and the driver has not submitted them.
tail
    No functions remain, but some are still running.

A function that waits in a queue while all slots are busy does not cause idle time.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from serverless_bench.base.plugins import Registry
from serverless_bench.base.units import NS_PER_S
from serverless_bench.metrics.attempt_stats import unacknowledged
from serverless_bench.metrics.spreading import elapsed_before
from serverless_bench.metrics.throughput import elapsed
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import (
    ABSENT,
    LATEST,
    Floats,
    Ints,
    Mask,
    at_percentiles,
    distinct,
    rows_of,
)

SLOT_STATES: Final = ("work", "lost", "delivery", "cold_start", "launch", "unfilled", "tail")


def slot_shares(run: Run) -> Mapping[str, float] | None:
    """Return the shares of a run's slot time, from the first submission to the last collection.

    Parameters
    ----------
    run
        A saved run with worker timestamps on the driver's clock.

    Returns
    -------
    Mapping or None
        Shares of the slots' time by ``SLOT_STATES``; they add up to 1. None if the submission
        times are unknown.
    """
    table = run.functions
    submitted, collected = table["submitted_ns"], table["collected_ns"]
    is_submitted = submitted != ABSENT
    if not is_submitted.any():
        return None
    began = is_submitted & (table["start_ns"] != ABSENT)
    lost = is_submitted & ~began
    start = np.maximum(table["start_ns"], submitted)[began]
    end = np.maximum(table["end_ns"][began], start)
    loading = np.maximum(start - np.maximum(table["import_ns"][began], 0), submitted[began])
    instants = (submitted[is_submitted], collected[is_submitted], start, end, loading)
    time = elapsed(run)
    edges = distinct(np.concatenate((*instants, time.begins, time.ends)))
    within = (edges >= submitted[is_submitted].min()) & (edges <= collected[is_submitted].max())
    edges = edges[within]
    length = time.between_each_ns(edges[:-1], edges[1:])
    idle = np.full(len(length), run.job.max_concurrency)
    first_launch = submitted[is_submitted & (table["launch"] == 0)]
    remaining = run.job.number - _count(edges, first_launch)
    demand = {
        "work": overlapping(edges, start, end),
        "lost": overlapping(edges, submitted[lost], collected[lost]),
        "delivery": overlapping(edges, end, np.maximum(collected[began], end)),
        "cold_start": overlapping(edges, loading, start),
        "launch": overlapping(edges, submitted[began], loading),
        "unfilled": np.maximum(remaining, 0),
        "tail": idle,
    }
    shares = {}
    for state, wanted in demand.items():
        taken = np.minimum(idle, wanted)
        idle = idle - taken
        shares[state] = float(taken @ length)
    total = sum(shares.values())
    return {state: share / total for state, share in shares.items()} if total else None


def overlapping(edges: Ints, begin: Ints, end: Ints) -> Ints:
    """Return the number of intervals that cover each segment between edges."""
    return _count(edges, begin) - _count(edges, end)


def _count(edges: Ints, instants: Ints) -> Ints:
    """Return the number of timestamps before each segment between edges."""
    return np.searchsorted(np.sort(instants), edges[:-1], side="right").astype(np.int64)


_SAMPLE: Final = 200
"""Maximum number of functions with fitted curves, evenly spaced."""
_POINTS: Final = 200
_STRIDE: Final = 4
_LEAST_TAIL: Final = 0.3
"""Minimum length of the straight part as a share of a function's time."""
_STRAIGHT: Final = 0.02
"""Maximum deviation of the curve from the line as a share of all bytes."""
BURST_SHARE: Final = 0.05
"""Smaller bursts, as a share of the bytes, result from connection setup."""
FLOW_SHARE: Final = 0.5
"""Minimum share of the time with bytes flowing for a rate limit to be the bottleneck."""
SCOPES: Final = ("connection", "function", "all")
"""Possible scopes of a limit on the byte rate."""
_VARIED: Final = 1.5
"""Minimum variation of concurrency for distinguishing a common limit from a limit per function."""
_ALIKE_AFTER_BURST: Final = 0.10
_ALIKE: Final = 0.02
"""Maximum spread between p5 and p95 of the slopes relative to the median, without a burst."""
_LEAST_ALIKE: Final = 3
_PUBLISHED: Final = 0.05
"""Maximum deviation of a rate after a burst from a published rate."""
NETWORKS: Final = Registry[Callable[[int], Iterable[float]]]("networks", {})
"""Published rates of functions with a memory size, in bytes per second, by provider."""


class BucketFit(Struct, frozen=True, kw_only=True):
    """Token bucket fitted to a function's bytes over time."""

    burst_bytes: float
    """Bytes transferred above the sustained rate: the size of the bucket; 0 without a burst."""
    sustained_bytes_per_s: float
    total_bytes: float


def bucket_fits(run: Run, good: Mask, rows: Ints, sample: Ints) -> dict[int, BucketFit]:
    """Return the token buckets that fit functions of a sample, by position in ``rows``."""
    fits = (fit_bucket(at_s, moved) for at_s, moved in _curves(run, good, rows[sample]))
    return {at: fit for at, fit in zip(sample.tolist(), fits, strict=True) if fit is not None}


def _curves(run: Run, good: Mask, rows: Ints) -> Iterator[tuple[Floats, Floats]]:
    """Yield the seconds since its start and the cumulative bytes of each function."""
    function, all_starts = (run.operations[name] for name in ("function", "start_ns"))
    for row in rows.tolist():
        of_operations = slice(*np.searchsorted(function, (row, row + 1)).tolist())
        wanted, start = good[of_operations], all_starts[of_operations]
        steps = rows_of(run.steps, row, ("operation", "step_ns", "step_bytes"))
        number, length = steps["operation"], steps["step_ns"]
        # The steps of an operation are contiguous from its start.
        ends = start[number] + elapsed_before(length, number) + length
        keep = wanted[number]
        order = np.argsort(ends[keep], kind="stable")
        at_ns = ends[keep][order] - start[wanted].min(initial=LATEST)
        moved = np.cumsum(steps["step_bytes"][keep][order])
        yield (
            np.concatenate(([0.0], at_ns / NS_PER_S)),
            np.concatenate(([0.0], moved.astype(np.float64))),
        )


def fit_bucket(at_s: Floats, moved: Floats) -> BucketFit | None:
    """Fit a token bucket to a curve of bytes over time, if possible.

    Parameters
    ----------
    at_s, moved
        Points of the curve, ascending, starting at ``(0, 0)``.

    Returns
    -------
    BucketFit or None
        Fit to the longest straight end of the curve: the slope is the sustained rate, and the
        intercept is the burst. None if this part is too short.
    """
    if len(at_s) < 6 or at_s[-1] <= 0:
        return None
    # The last interval waits for the acknowledgement without transferring bytes.
    stop = float(at_s[int(np.searchsorted(moved, moved[-1]))])
    if stop <= 0:
        return None
    grid = np.linspace(0, stop, _POINTS)
    curve = np.interp(grid, at_s, moved)
    for first in range(0, round(_POINTS * (1 - _LEAST_TAIL)), _STRIDE):
        slope, _, missed = _line(grid[first:], curve[first:])
        if slope > 0 and missed <= _STRAIGHT * moved[-1]:
            # The line may start within the bend, so skip its first quarter.
            later = first + (_POINTS - first) // 4
            slope, intercept, _ = _line(grid[later:], curve[later:])
            return BucketFit(
                burst_bytes=max(0.0, intercept),
                sustained_bytes_per_s=slope,
                total_bytes=float(moved[-1]),
            )
    return None


def _line(x: Floats, y: Floats) -> tuple[float, float, float]:
    """Return slope, intercept and maximum deviation of the least-squares line."""
    across, up = x - x.mean(), y - y.mean()
    slope = float((across @ up) / (across @ across))
    return slope, float(y.mean() - slope * x.mean()), float(np.abs(up - slope * across).max())


class RateLimits(Struct, frozen=True, kw_only=True):
    """Functions with a constant rate while bytes flow."""

    functions: Mapping[str, set[int]]
    """Positions of the functions: ``function_network`` if the rate is one that is published
    for this memory size, ``rate_limit`` if it equals the rate of the other functions."""
    scopes: tuple[str, ...]
    """Possible scopes of the second kind of limit: each connection, each function, all."""
    fits: Sequence[BucketFit]
    """Fits of all these functions."""


def limited_functions(run: Run, good: Mask, rows: Ints, flow: Floats) -> RateLimits:
    """Return the functions of a sample that reached a rate limit.

    Parameters
    ----------
    run
        A saved run with worker timestamps on the driver's clock.
    good
        Mask of successful operations that count.
    rows
        Functions that transferred bytes.
    flow
        Share of the time with bytes flowing, with the shape of ``rows``; NaN if unknown. Rates are
        not attributed to a limit on bytes below ``FLOW_SHARE``.
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
    """Return the mean number of functions running during each function, including itself."""
    start, end = (run.functions[name][rows] for name in ("start_ns", "end_ns"))
    edges = distinct(np.concatenate((start, end)))
    at_work = overlapping(edges, start, end)
    area = np.concatenate(([0.0], np.cumsum(at_work * np.diff(edges).astype(np.float64))))
    during = np.interp(end, edges, area) - np.interp(start, edges, area)
    return np.asarray(during / np.maximum(end - start, 1), dtype=np.float64)


def _is_published(bucket: BucketFit, memory_mib: int) -> bool:
    return bucket.burst_bytes > BURST_SHARE * bucket.total_bytes and any(
        abs(bucket.sustained_bytes_per_s / rate - 1) <= _PUBLISHED
        for name in NETWORKS
        for rate in NETWORKS.load(name)(memory_mib)
    )


def _alike(buckets: Mapping[int, BucketFit], rates: Mapping[int, float]) -> set[int]:
    """Return the functions with a rate close to the median, if most rates are."""
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
    """Return the positions of at most ``_SAMPLE`` evenly spaced functions."""
    return np.linspace(0, count - 1, min(count, _SAMPLE)).astype(np.int64)


def share_of_sample(sample: Ints, limited: set[int], of: Mask) -> float:
    """Return the share of limited functions in a sample; functions without a fit are unlimited."""
    members = [i for i in sample.tolist() if of[i]]
    return len(limited.intersection(members)) / len(members) if members else 0.0
