"""Charts of a run without a time axis: distributions, requests, clocks."""

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from serverless_bench.base.units import format_count
from serverless_bench.features.page import palette
from serverless_bench.features.page.activity import ActivityOverTime
from serverless_bench.features.page.charts import (
    COUNTS,
    HEIGHT,
    Chart,
    Row,
    colors,
    drawing,
    filled,
    number,
    unit_for,
    values,
)
from serverless_bench.metrics.histogram import Histogram, middle_ns
from serverless_bench.metrics.latency import Latencies
from serverless_bench.rundir.tables import Floats, at_percentiles

_FEW: Final = 20
"""Fewer functions than this are shown as dots instead of bars."""
_BINS: Final = 40
"""Maximum number of bars in a histogram of rates."""
_PER_OCTAVE: Final = 4
"""Bins between two powers of two in a histogram of latencies."""


def rate_chart(rates: Floats, color: str) -> Chart | None:
    """Return the distribution of the functions' throughput; None if no byte was transferred.

    A few functions are shown as dots in the order of their rates. The axis begins at 0, so that
    small differences look small.
    """
    if not len(rates):
        return None
    factor, unit = unit_for(float(rates.max()))
    shown = np.sort(rates) / factor
    # The report's median of the same values; it is one of them.
    median = float(at_percentiles(shown, (50,))[0])
    x = number("rate", unit, scale={"domain": [0, 1.05 * float(shown[-1])], "nice": False})
    rows: list[Row] = [{"rate": rate, "n": n} for n, rate in enumerate(shown.tolist(), 1)]
    if len(rates) >= _FEW:
        # Equal rates share a bin, which needs a width to be visible.
        near = 0.005 * float(shown[-1])
        edges = np.linspace(shown[0] - near, shown[-1] + near, min(_BINS, len(rates) // 2) + 1)
        counts = np.histogram(shown, edges)[0].tolist()
        rows = [
            {"from": low, "to": high, "n": count}
            for low, high, count in zip(
                edges[:-1].tolist(), edges[1:].tolist(), counts, strict=True
            )
        ]
    each = filled(
        "rates of few" if len(rates) < _FEW else "rates of many",
        color=color,
        x=x,
        counts=COUNTS,
        places={"domain": [0, len(rates) + 0.5], "nice": False},
        unit=unit,
    )
    return Chart(
        title="Rate per function",
        says="Bytes over first start to last end of each function that succeeded. Median (dashed):"
        f" {median:.3g} {unit}.",
        spec=drawing(
            "rates",
            rows,
            each=each,
            median=values([{"rate": median}]),
            x=x,
            line=palette.color("text"),
            halo=palette.color("background"),
            # Dashes are visible on bars and hide no dot.
            halo_width=0 if len(rates) < _FEW else 4,
        ),
        height=HEIGHT,
    )


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
