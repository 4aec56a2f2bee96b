"""Charts of a page against time: all of them have one time axis, and are zoomed together."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

import numpy as np

from serverless_bench.base.units import NS_PER_S, format_count, format_seconds
from serverless_bench.features.bottleneck.part import CAUSES
from serverless_bench.features.page.activity import ActivityOverTime
from serverless_bench.features.page.charts import drawing
from serverless_bench.features.plot import palette
from serverless_bench.features.plot.charts import Chart, Row, colors
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
