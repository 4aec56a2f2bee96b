"""Pictures of a run against time: all of them have one time axis, and are zoomed together."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

import numpy as np

from serverless_bench.analysis.activity import ActivityOverTime
from serverless_bench.analysis.latency import Latencies
from serverless_bench.analysis.timeline import Timeline, clock_band
from serverless_bench.reporters.bounded_by import CAUSE_WORDS
from serverless_bench.reporters.page import palette
from serverless_bench.reporters.page.charts import COUNTS, Chart, Row, Spec, colors, drawing, number
from serverless_bench.rundir.tables import Floats, Ints
from serverless_bench.units import NS_PER_S, format_count, format_seconds

_X: Final = "seconds since the first request"
_GIGABYTES: Final = 1e10
"""Bytes per second from which on they are drawn as GB/s."""
_WORDS: Final = 5
"""Kinds of errors that have a colour of their own."""


def time_charts(found: ActivityOverTime, workload: str) -> Iterator[Chart]:
    """Yield throughput, functions at work and failed requests."""
    series = found.timeline
    end_s, step = length_s(series), format_seconds(series.segment_ns / NS_PER_S)
    low, high = clock_band(series)
    unit, name = (1e9, "GB/s") if float(high.max()) >= _GIGABYTES else (1e6, "MB/s")
    rows = [
        {**at, "rate": rate / unit, "low": least / unit, "high": most / unit}
        for at, rate, least, most in zip(
            _segments(series.segment_ns, len(low)), series.bytes_per_s, low, high, strict=True
        )
    ]
    yield Chart(
        title=f"Throughput, {name}",
        says=f"Bytes that moved in each {step}: the area is all bytes of the run. The light band"
        " is where the line would be if all clocks were as wrong as their evidence allows.",
        spec=drawing(
            "throughput",
            # The last step has a width, too.
            [*rows, {**rows[-1], "t": end_s, "u": end_s}],
            color=palette.color_of(workload),
            time=_time(None),
            steps=_steps(None),
            unit=name,
        ),
        height=190,
        end_s=end_s,
    )
    yield _at_work(found, end_s)
    if found.failed_attempts:
        yield Chart(
            title="Failed requests per segment",
            says=f"Requests that failed, in the {step} in which they ended, by error word.",
            spec=_stacked(_top(found.failed_attempts), series),
            height=110,
            end_s=end_s,
        )


def bounded_chart(found: ActivityOverTime) -> Chart:
    """Return the functions at work over time, by what bounded them."""
    named = {CAUSE_WORDS[name]: at for name, at in found.bounded.items()}
    tints = [palette.color(palette.OF_CAUSE[name]) for name in found.bounded]
    every = format_count(found.bounded_of, "function")
    end_s = length_s(found.timeline)
    return Chart(
        title="What bounded the functions at work",
        says=f"Functions that ran, by what bounded each of them over its whole time; {every}"
        " that succeeded and moved bytes, of many functions an evenly spaced sample.",
        spec=_stacked(named, found.timeline, tints),
        height=130,
        end_s=end_s,
    )


def function_map(found: ActivityOverTime) -> Chart:
    """Return functions against time, coloured by how fast each was."""
    drawn = found.functions
    groups = len(drawn.first) - 1
    rows: list[Row] = []
    segments = _segments(drawn.segment_ns, drawn.bytes_per_s.shape[1])
    for group in range(groups):
        first, last = int(drawn.first[group]), int(drawn.first[group + 1])
        who = f"{first + 1}" if last == first + 1 else f"{first + 1} to {last}"
        rows += [
            {**segments[column], "y": first, "y2": last, "who": who, "rate": rate / 1e6}
            for column in np.flatnonzero(~np.isnan(drawn.bytes_per_s[group])).tolist()
            for rate in [float(drawn.bytes_per_s[group, column])]
        ]
    each = "Each row is a function"
    if int(drawn.first[-1]) > groups:
        each = f"Each of the {groups} rows is a group of functions"
    return Chart(
        title="Functions against time",
        says=f"{each}, in the order in which they began; the colour is how fast one of them moved"
        " bytes then. A row that goes on after the others is a straggler; steps are waves.",
        spec=drawing("functions", rows, time=_steps(_X)),
        height=300,
        end_s=length_s(found.timeline),
    )


_LATENCY_MARKS: Final[Mapping[str, Spec]] = {
    "": {"type": "line", "clip": True, "point": {"size": 18}},
    "at least": {"type": "point", "clip": True, "shape": "triangle-up", "size": 30},
}
"""By what is said of a value."""


def latency_chart(found: Latencies, end_s: float) -> Chart | None:
    """Return p50 and p99 of each kind of operation over time; None without operations."""
    if found.segment_s is None or not found.over_time:
        return None
    rows = [
        {
            "t": (place + 0.5) * found.segment_s,
            "what": one.kind,
            "p": name,
            "ms": value * 1e3,
            "bound": "at least" if overdue else "",
        }
        for one in found.over_time
        for name, line in (("p50", one.p50_s), ("p99", one.p99_s))
        for place, (value, overdue) in enumerate(zip(line, one.overdue, strict=True))
        if value
    ]
    time = "Response time" if found.open_loop else "Latency"
    tints = {one.kind: palette.color_of(one.kind) for one in found.over_time}
    # A layer without data has Vega warn of an infinite extent.
    layers = [
        {"transform": [{"filter": f"datum.bound == {bound!r}"}], "mark": mark}
        for bound, mark in _LATENCY_MARKS.items()
        if any(row["bound"] == bound for row in rows)
    ]
    first = "seconds since the first operation was due"
    spec = drawing(
        "latency over time",
        rows,
        layers=layers,
        time=_time(first),
        colors=colors(tints, "stroke"),
    )
    return Chart(
        title=f"{time}, ms",
        says="Median (solid) and 99th percentile (dotted) of the operations that began, or should"
        " have begun, in each segment of time. Triangles are lower bounds: some never began.",
        spec=spec,
        height=190,
        end_s=end_s,
    )


def _at_work(found: ActivityOverTime, end_s: float) -> Chart:
    """Return functions that ran, and operations under way, over time."""
    series = found.timeline
    lines = {
        "functions": (found.at_work, palette.color("text")),
        "operations": (series.in_flight, palette.color("orange")),
    }
    begins = [at["t"] for at in _segments(series.segment_ns, len(found.at_work))]
    rows = [
        {"t": at, "what": name, "n": float(value)}
        for name, (line, _) in lines.items()
        # The last value twice: its step has a width, too.
        for at, value in zip([*begins, end_s], [*line, line[-1]], strict=True)
    ]
    tints = {name: tint for name, (_, tint) in lines.items()}
    return Chart(
        title="At work",
        says="Functions that ran, and operations that were under way.",
        spec=drawing("at work", rows, time=_time(None), colors=colors(tints, "stroke")),
        height=110,
        end_s=end_s,
    )


def _stacked(
    named: Mapping[str, Ints | Floats],
    series: Timeline,
    tints: Sequence[str] | None = None,
) -> Spec:
    """Return areas over time, one on the other."""
    shown = tints or [palette.nth_error(number) for number in range(len(named))]
    rows = [
        {**at, "what": name, "n": float(value)}
        for name, line in named.items()
        for at, value in zip(_segments(series.segment_ns, len(line)), line, strict=True)
        if value
    ]
    tinted = colors(dict(zip(named, shown, strict=True)))
    return drawing("stacked", rows, time=_steps(_X), counts=COUNTS, colors=tinted)


def _time(title: str | None) -> Spec:
    """Return the encoding of the time axis, which parameters of the chart bound."""
    scale = {"domainMin": {"expr": "t0"}, "domainMax": {"expr": "t1"}, "nice": False, "zero": False}
    return number("t", title, scale=scale)


def _steps(title: str | None) -> Spec:
    """Return the encoding of steps along the time axis."""
    return {**_time(title), "bin": "binned"}


def _segments(segment_ns: int, count: int) -> list[dict[str, float]]:
    """Return where each segment begins and ends."""
    step = segment_ns / NS_PER_S
    return [{"t": place * step, "u": (place + 1) * step} for place in range(count)]


def length_s(series: Timeline) -> float:
    """Return how long the common time axis is."""
    return len(series.segment_bytes) * series.segment_ns / NS_PER_S


def _top(counts: Mapping[str, Ints]) -> dict[str, Ints]:
    """Return the most frequent errors, and the others together."""
    kept = dict(islice(counts.items(), _WORDS))
    others = list(islice(counts.values(), _WORDS, None))
    return kept | ({"others": np.sum(others, axis=0)} if others else {})
