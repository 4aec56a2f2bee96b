"""Charts of the page of a run; those against time have one time axis, and are zoomed together."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

import numpy as np

from serverless_bench.base.units import NS_PER_S, format_count, format_seconds
from serverless_bench.features.bottleneck.part import CAUSES
from serverless_bench.features.page.activity import ActivityOverTime
from serverless_bench.features.page.charts import drawing, filled
from serverless_bench.features.plot import palette
from serverless_bench.features.plot.charts import COUNTS, Chart, Row, colors
from serverless_bench.features.plot.run_charts import (
    FIRST_REQUEST,
    MOST_WORDS,
    length_s,
    segments,
    stacked,
    steps,
    throughput_chart,
    time_axis,
)
from serverless_bench.metrics.histogram import Histogram, middle_ns
from serverless_bench.metrics.latency import Latencies
from serverless_bench.metrics.summary import Summary
from serverless_bench.rundir.tables import Ints

OF_CAUSE: Final = {
    "answers": "blue",
    "store_or_network": "sky",
    "client": "orange",
    "own_code": "orange",
    "other_functions": "green",
    "pauses": "green",
    "function_network": "purple",
    "rate_limit": "purple",
    "retries": "failed",
    "interpreter_lock": "pink",
    "launch": "brown",
    "schedule": "green",
    "unknown": "grey",
}
_PER_OCTAVE: Final = 4
"""Bins between two powers of two in a histogram of latencies."""


def time_charts(found: ActivityOverTime, summary: Summary) -> Iterator[Chart | None]:
    """Yield throughput, functions at work and failed requests."""
    series = found.timeline
    yield throughput_chart(series, palette.color_of(summary.workload), summary)
    yield _at_work(found, length_s(series))
    if found.failed_attempts:
        step = format_seconds(series.segment_ns / NS_PER_S)
        yield Chart(
            title="Failed requests per segment",
            says=f"Requests that failed, in the {step} in which they ended, by error word.",
            spec=stacked(_top(found.failed_attempts), series.segment_ns, "requests"),
            height=110,
            end_s=length_s(series),
        )


def bounded_chart(found: ActivityOverTime) -> Chart:
    """Return the functions at work over time, by what bounded them."""
    named = {CAUSES[name]: at for name, at in found.bounded.items()}
    tints = [palette.color(OF_CAUSE[name]) for name in found.bounded]
    every = format_count(found.bounded_of, "function")
    end_s = length_s(found.timeline)
    return Chart(
        title="Bottleneck over time",
        says=f"Running functions, by what bounded each over its whole time; {every} that"
        " succeeded and transferred bytes, or of many functions an evenly spaced sample.",
        spec=stacked(named, found.timeline.segment_ns, "functions", tints),
        height=130,
        end_s=end_s,
    )


def function_map(found: ActivityOverTime) -> Chart | None:
    """Return functions against time, coloured by how fast each was; None without bytes."""
    drawn = found.functions
    groups = len(drawn.first) - 1
    rows: list[Row] = []
    columns = segments(drawn.segment_ns, drawn.bytes_per_s.shape[1])
    for group in range(groups):
        first, last = int(drawn.first[group]), int(drawn.first[group + 1])
        who = f"{first + 1}" if last == first + 1 else f"{first + 1} to {last}"
        rows += [
            {**columns[column], "y": first, "y2": last, "who": who, "rate": rate / 1e6}
            for column in np.flatnonzero(~np.isnan(drawn.bytes_per_s[group])).tolist()
            for rate in [float(drawn.bytes_per_s[group, column])]
        ]
    if not rows:
        return None
    each = "Each row is a function"
    if int(drawn.first[-1]) > groups:
        each = f"Each of the {groups} rows is a group of functions"
    return Chart(
        title="Functions against time",
        says=f"{each}, in the order in which they began; the colour is a function's throughput. A"
        " row that lasts longer than the others is a straggler; steps are batches.",
        spec=drawing("functions", rows, time=steps(FIRST_REQUEST)),
        height=300,
        end_s=length_s(found.timeline),
    )


def _at_work(found: ActivityOverTime, end_s: float) -> Chart:
    """Return functions that ran, and operations under way, over time."""
    series = found.timeline
    lines = {
        "functions": (found.at_work, palette.color("text")),
        "operations": (series.in_flight, palette.color("orange")),
    }
    begins = [at["t"] for at in segments(series.segment_ns, len(found.at_work))]
    rows = [
        {"t": at, "what": name, "n": float(value)}
        for name, (line, _) in lines.items()
        # The last value twice: its step has a width, too.
        for at, value in zip([*begins, end_s], [*line, line[-1]], strict=True)
    ]
    tints = colors({name: tint for name, (_, tint) in lines.items()}, "stroke")
    return Chart(
        title="Concurrency",
        says="Running functions and operations in flight.",
        spec=drawing("at work", rows, time=time_axis(FIRST_REQUEST), colors=tints),
        height=110,
        end_s=end_s,
    )


def _top(counts: Mapping[str, Ints]) -> dict[str, Ints]:
    """Return the most frequent errors, and the others together."""
    kept = dict(islice(counts.items(), MOST_WORDS))
    others = list(islice(counts.values(), MOST_WORDS, None))
    return kept | ({"others": np.sum(others, axis=0)} if others else {})


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
