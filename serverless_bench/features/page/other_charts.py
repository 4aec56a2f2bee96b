"""Charts of a run without a time axis: distributions, requests, clocks."""

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from serverless_bench.base.units import format_count
from serverless_bench.features.page.activity import ActivityOverTime
from serverless_bench.features.page.charts import drawing, filled
from serverless_bench.features.plot import palette
from serverless_bench.features.plot.charts import COUNTS, Chart, Row, colors
from serverless_bench.metrics.histogram import Histogram, middle_ns
from serverless_bench.metrics.latency import Latencies

_PER_OCTAVE: Final = 4
"""Bins between two powers of two in a histogram of latencies."""


def latency_distribution(found: Latencies) -> Chart | None:
    """Return the distribution of durations by kind; None without operations."""
    named = {
        row.kind: times.histogram
        for row in found.of_kinds
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
        says="Operations that succeeded; the axis is logarithmic, four bars per doubling.",
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
    """Return the number of requests by status."""
    rows: list[Row] = [{"status": status, "n": count} for status, count in counts.items()]
    good, failed = palette.color("blue"), palette.color("failed")
    return Chart(
        title="Requests by status",
        says="All HTTP requests of measured operations, retries included, on a logarithmic axis.",
        spec=drawing("statuses", rows, good=good, failed=failed),
        height=max(60, 26 * len(rows)),
    )


def clock_chart(found: ActivityOverTime) -> Chart | None:
    """Return the interval of each worker's clock offset; None without evidence."""
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
        f" {format_count(found.clocks_of, 'function')}; the line is the correction of its"
        " timestamps.",
        spec=drawing("clocks", rows, interval=interval, line=line, functions=x),
    )
