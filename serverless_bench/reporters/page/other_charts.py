"""Pictures of a run that have no time axis: distributions, requests, clocks."""

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from serverless_bench.analysis.activity import ActivityOverTime
from serverless_bench.analysis.histogram import Histogram, middle_ns
from serverless_bench.analysis.latency import Latencies
from serverless_bench.reporters.page import palette
from serverless_bench.reporters.page.charts import COUNTS, Chart, Row, colors, drawing, filled
from serverless_bench.units import format_count

_PER_OCTAVE: Final = 4
"""Bins of a drawn histogram of latencies between two powers of two."""


def rate_chart(found: ActivityOverTime, workload: str) -> Chart | None:
    """Return how the functions' rates are distributed; None if none moved a byte."""
    counts, edges = found.rates
    if not counts.sum():
        return None
    # Equal rates have one bin, which needs a width to be seen.
    width = 0.0 if edges[-1] > edges[0] else 0.005 * float(edges[0])
    rows = [
        {"from": (low - width) / 1e6, "to": (high + width) / 1e6, "n": int(count)}
        for count, low, high in zip(
            counts.tolist(), edges[:-1].tolist(), edges[1:].tolist(), strict=True
        )
    ]
    return Chart(
        title="Rate per function",
        says="Functions that succeeded, by their bytes over their first start to last end.",
        spec=drawing("rates", rows, color=palette.color_of(workload), counts=COUNTS),
    )


def latency_distribution(found: Latencies) -> Chart | None:
    """Return how long operations took, by kind; None without operations."""
    whole = [row for row in found.by_kind if row.size_class is None]
    named = {
        row.kind: times.histogram
        for row in whole
        if (times := row.response if found.open_loop else row.latency) is not None
    }
    rows = [
        {"what": kind, **bin_} for kind, histogram in named.items() for bin_ in _bins(histogram)
    ]
    if not rows:
        return None
    time = "response time" if found.open_loop else "latency"
    tints = {kind: palette.color_of(kind) for kind in named}
    return Chart(
        title=f"Operations by {time}",
        says="Operations that succeeded; the axis is logarithmic, a quarter of an octave per bar.",
        spec=drawing("latencies", rows, colors=colors(tints), counts=COUNTS),
    )


def _bins(histogram: Histogram) -> Iterator[dict[str, float]]:
    """Yield a histogram's counts in wider bins, in milliseconds."""
    middles = np.maximum([middle_ns(bucket) for bucket in histogram.buckets], 1.0)
    places = np.floor(np.log2(middles) * _PER_OCTAVE).astype(int)
    for place in np.unique(places).tolist():
        count = int(np.asarray(histogram.counts)[places == place].sum())
        low, high = (2 ** ((place + more) / _PER_OCTAVE) / 1e6 for more in (0, 1))
        yield {"from": low, "to": high, "n": count}


def status_chart(counts: Mapping[str, int]) -> Chart:
    """Return how many requests had which status."""
    rows: list[Row] = [{"status": status, "n": count} for status, count in counts.items()]
    good, failed = palette.color("blue"), palette.color("failed")
    return Chart(
        title="Requests by status",
        says="All HTTP requests of measured operations, retries included, on a logarithmic axis.",
        spec=drawing("statuses", rows, good=good, failed=failed),
        height=max(60, 26 * len(rows)),
    )


def clock_chart(found: ActivityOverTime) -> Chart | None:
    """Return where each worker's clock may be; None without evidence."""
    if not found.clocks_of:
        return None
    rows = [
        {"at": place, "to": place + 1, "low": low * 1e3, "high": high * 1e3, "best": best * 1e3}
        for place, (low, high, best) in enumerate(found.clocks_s.tolist())
    ]
    x = filled("functions of clocks")
    interval, line = palette.color("blue"), palette.color("text")
    return Chart(
        title="Workers' clocks against the driver's, ms",
        says=f"Each bar is the interval in which a worker's clock lies, of {len(rows)} of"
        f" {format_count(found.clocks_of, 'function')}; the line is what its instants were"
        " corrected by.",
        spec=drawing("clocks", rows, interval=interval, line=line, functions=x),
    )
