"""Pictures of a run that have no time axis: distributions, requests, clocks."""

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from serverless_bench.analysis.activity import ActivityOverTime
from serverless_bench.analysis.histogram import Histogram, middle_ns
from serverless_bench.analysis.latency import Latencies
from serverless_bench.reporters.page import palette
from serverless_bench.reporters.page.charts import COUNTS, Chart, Row, colors, number, values
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
        spec={
            "data": values(rows),
            "mark": {"type": "bar", "color": palette.color_of(workload)},
            "encoding": {
                "x": number("from", "MB/s", bin="binned", scale={"zero": False, "nice": False}),
                "x2": {"field": "to"},
                "y": number("n", "functions", axis=COUNTS),
                "tooltip": [
                    number("from", "from, MB/s", format=".4~g"),
                    number("to", "to, MB/s", format=".4~g"),
                    number("n", "functions"),
                ],
            },
        },
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
    return Chart(
        title=f"Operations by {time}",
        says="Operations that succeeded; the axis is logarithmic, a quarter of an octave per bar.",
        spec={
            "data": values(rows),
            "mark": {"type": "bar", "opacity": 0.75, "binSpacing": 0},
            "encoding": {
                "x": number(
                    "from", "ms", bin="binned", scale={"type": "log"}, axis={"grid": False}
                ),
                "x2": {"field": "to"},
                "y": number("n", "operations", axis=COUNTS),
                "color": colors({kind: palette.color_of(kind) for kind in named}),
                "tooltip": [
                    {"field": "what", "title": "operation"},
                    number("from", "from, ms", format=".4~g"),
                    number("to", "to, ms", format=".4~g"),
                    number("n", "operations"),
                ],
            },
        },
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
    good = {"domain": [True, False], "range": [palette.color("blue"), palette.color("failed")]}
    return Chart(
        title="Requests by status",
        says="All HTTP requests of measured operations, retries included, on a logarithmic axis.",
        spec={
            "data": values(rows),
            "transform": [{"calculate": "datum.status < '400'", "as": "good"}],
            "mark": {"type": "bar", "height": {"band": 0.7}},
            "encoding": {
                "y": {"field": "status", "type": "nominal", "title": None, "sort": None},
                "x": number("n", "requests", scale={"type": "symlog"}, axis={"format": "~s"}),
                "color": {"field": "good", "type": "nominal", "scale": good, "legend": None},
                "tooltip": [
                    {"field": "status", "title": "status"},
                    number("n", "requests", format=","),
                ],
            },
        },
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
    x = number("at", "functions, by the middle of their interval", bin="binned")
    x["axis"] = {"labels": False, "ticks": False, "grid": False}
    return Chart(
        title="Workers' clocks against the driver's, ms",
        says=f"Each bar is the interval in which a worker's clock lies, of {len(rows)} of"
        f" {format_count(found.clocks_of, 'function')}; the line is what its instants were"
        " corrected by.",
        spec={
            "data": values(rows),
            "layer": [
                {
                    "mark": {"type": "bar", "color": palette.color("blue"), "opacity": 0.5},
                    "encoding": {
                        "x": x,
                        "x2": {"field": "to"},
                        "y": number("low"),
                        "y2": {"field": "high"},
                        "tooltip": [
                            number("low", "at least, ms", format=".4~g"),
                            number("high", "at most, ms", format=".4~g"),
                            number("best", "corrected by, ms", format=".4~g"),
                        ],
                    },
                },
                {
                    "mark": {"type": "rule", "color": palette.color("text")},
                    "encoding": {"x": x, "x2": {"field": "to"}, "y": number("best")},
                },
            ],
        },
    )
