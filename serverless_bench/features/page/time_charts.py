"""Pictures of a run against time: all of them have one time axis, and are zoomed together."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

import numpy as np

from serverless_bench.base.palette import SHAPES
from serverless_bench.base.units import NS_PER_S, format_count, format_seconds
from serverless_bench.features.page import palette
from serverless_bench.features.page.activity import ActivityOverTime
from serverless_bench.features.page.charts import (
    COUNTS,
    HEIGHT,
    Chart,
    Row,
    Spec,
    colors,
    drawing,
    number,
    unit_for,
    values,
)
from serverless_bench.features.why.blocks import Blocks
from serverless_bench.features.why.interventions import BASE, CHANGES, plan_of
from serverless_bench.metrics.attempt_stats import throttles_per_s
from serverless_bench.metrics.clock_offsets import aligned, worker_offsets
from serverless_bench.metrics.latency import Latencies
from serverless_bench.metrics.timeline import Timeline, clock_band, segments_of
from serverless_bench.report.bounded_by import CAUSE_WORDS
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import ABSENT, Floats, Ints, is_text

_X: Final = "seconds since the first request"
_LINES: Final = 2000
"""Functions that did not fail, of which so many have a line at most."""
_SEGMENTS: Final = 200
"""Segments of the line of operations in flight, about."""
_WORDS: Final = 5
"""Kinds of errors that have a colour of their own."""
_BROAD: Final = 50
"""Fewer functions than this are drawn as broad lines."""
_TALLEST: Final = 2.0
"""Height of the picture at most, as a multiple of the highest step: the line stays readable."""


def time_charts(found: ActivityOverTime, workload: str) -> Iterator[Chart]:
    """Yield throughput, functions at work and failed requests."""
    series = found.timeline
    yield throughput_chart(series, palette.color_of(workload), top_of(series))
    yield _at_work(found, length_s(series))
    if found.failed_attempts:
        step = format_seconds(series.segment_ns / NS_PER_S)
        yield Chart(
            title="Failed requests per segment",
            says=f"Requests that failed, in the {step} in which they ended, by error word.",
            spec=_stacked(_top(found.failed_attempts), series.segment_ns),
            height=110,
            end_s=length_s(series),
        )


def top_of(series: Timeline) -> float:
    """Return the bytes per second that a picture of a timeline reaches up to."""
    _, high = clock_band(series)
    return min(1.05 * float(high.max()), _TALLEST * float(series.bytes_per_s.max()))


def throughput_chart(series: Timeline, color: str, top: float, *, assumed: str = "") -> Chart:
    """Return the bytes moved over time.

    Parameters
    ----------
    series
        The run's timeline.
    color
        Colour of the run.
    top
        Bytes per second that the axis ends with; they also choose the unit.
    assumed
        Added to the length of a step: what the run's records leave open.
    """
    end_s, step = length_s(series), format_seconds(series.segment_ns / NS_PER_S)
    factor, unit = unit_for(top)
    rows = [
        {**at, "rate": rate / factor, "low": least / factor, "high": most / factor}
        for at, rate, least, most in zip(
            _segments(series.segment_ns, len(series.segment_bytes)),
            series.bytes_per_s,
            *clock_band(series),
            strict=True,
        )
    ]
    return Chart(
        title=f"Throughput, {unit}",
        says=f"Bytes transferred in each {step}{assumed}. The grey band is the range of the line"
        " within the uncertainty of the clocks.",
        spec=drawing(
            "throughput",
            # The last step has a width, too.
            [*rows, {**rows[-1], "t": end_s, "u": end_s}],
            color=color,
            band=palette.color("text"),
            time=_time(_X),
            steps=_steps(_X),
            rate=number("rate", scale={"domain": [0, max(top / factor, 1e-3)], "nice": False}),
            unit=unit,
        ),
        height=190,
        end_s=end_s,
    )


def functions_chart(run: Run, color: str) -> Chart:
    """Return when each function ran, and the operations in flight (PyWren: "jobs over time").

    Functions are sorted by start. Failed ones are red; lost ones have no times and stand as a
    number in the title.
    """
    run = aligned(run, worker_offsets(run))
    start, end, status = (run.functions[name] for name in ("start_ns", "end_ns", "status"))
    began = np.flatnonzero(start != ABSENT)
    began = began[np.argsort(start[began], kind="stable")]
    origin_ns = int(start[began[0]]) if len(began) else 0
    failed = is_text(status, "failed")
    bad = format_count(int(failed.sum()), "failed function")
    rows: list[Row] = []
    step = -(-len(began) // _LINES) or 1
    for place, function in enumerate(began.tolist()):
        if place % step and not failed[function]:
            continue
        # In the middle of its own unit: so many lines reach exactly as high as their number.
        line = {"n": place + 0.5, "what": bad if failed[function] else "functions"}
        begin_s, end_s = ((int(at[function]) - origin_ns) / NS_PER_S for at in (start, end))
        # The last row ends the line.
        rows += [{**line, "t": begin_s}, {**line, "t": end_s}, {**line, "n": None, "t": end_s}]
    shown = "A line for each function" if step == 1 else f"A line for every {step} functions"
    length = max(0.001, (int(end[began].max(initial=0)) - origin_ns) / NS_PER_S)
    operations = _in_flight(run, origin_ns, length)
    most = max((row["n"] for row in operations), default=0.0)
    name = f"operations in flight, at most {most:.0f}"
    tints = {
        "functions": color,
        **({bad: palette.color("failed")} if failed.any() else {}),
        **({name: palette.color("text")} if operations else {}),
    }
    width = min(max(0.6 * HEIGHT / max(len(began), 1), 0.8), 6.0)
    lost = int(is_text(status, "lost").sum())
    top = 1.03 * max(len(began), most, 1.0)
    counts = number("n", None, scale={"domain": [0, top], "nice": False}, axis=COUNTS)
    return Chart(
        title="Functions over time" + (f", {lost} lost" if lost else ""),
        says=f"{shown}, in the order in which they began.",
        spec=drawing(
            "functions over time",
            [],
            functions=values(rows),
            operations=values([{**row, "what": name} for row in operations]),
            time=_time("seconds since the first function began"),
            number=counts,
            colors=colors(tints, "stroke"),
            widths={"domain": ["functions", bad], "range": [width, max(width, 2.0)]},
            opacities={"domain": ["functions", bad], "range": [0.7, 1]},
            halo=palette.color("background"),
            # It is seen by its edge on broad lines, and would hide thin ones.
            halo_width=4 if len(began) < _BROAD else 0,
        ),
        height=HEIGHT,
        end_s=length,
    )


def _in_flight(run: Run, origin_ns: int, length: float) -> list[dict[str, float]]:
    """Return the operations in flight over so many seconds; nothing if none succeeded."""
    segment_ns = max(1, round(length * NS_PER_S / _SEGMENTS))
    try:
        grid = segments_of(run, segment_ns)
    except ValueError:
        return []
    first = (grid.start_ns - origin_ns) / NS_PER_S
    return [
        {"t": first + place * segment_ns / NS_PER_S, "n": count}
        for place, count in enumerate(grid.in_flight().tolist())
    ]


def throttled_chart(run: Run, series: Timeline) -> Chart | None:
    """Return throttled attempts by the prefix of their keys; None if there were none.

    Parameters
    ----------
    run
        A saved run.
    series
        Its timeline.
    """
    counts = throttles_per_s(aligned(run, worker_offsets(run)), series.start_ns)
    if not counts:
        return None
    if len(counts) > _WORDS:
        counts = {f"{len(counts)} prefixes": np.sum(list(counts.values()), axis=0)}
    return Chart(
        title="Throttled attempts per second",
        says="Requests that the store throttled, by the prefix of their keys.",
        spec=_stacked({name or "(no prefix)": at for name, at in counts.items()}, NS_PER_S),
        height=110,
        end_s=length_s(series),
    )


def bounded_chart(found: ActivityOverTime) -> Chart:
    """Return the functions at work over time, by what bounded them."""
    named = {CAUSE_WORDS[name]: at for name, at in found.bounded.items()}
    tints = [palette.color(palette.OF_CAUSE[name]) for name in found.bounded]
    every = format_count(found.bounded_of, "function")
    end_s = length_s(found.timeline)
    return Chart(
        title="What bounded the functions at work",
        says=f"Running functions, by what bounded each over its whole time; {every} that"
        " succeeded and transferred bytes, or of many functions an evenly spaced sample.",
        spec=_stacked(named, found.timeline.segment_ns, tints),
        height=130,
        end_s=end_s,
    )


def blocks_chart(run: Run, series: Timeline) -> Chart | None:
    """Return the throughput of each block of a run of ``sbench why``; None for other runs.

    Parameters
    ----------
    run
        A saved run.
    series
        Its timeline.
    """
    plan = plan_of(run.job)
    blocks = None if plan is None else Blocks(run=run, plan=plan)
    if blocks is None or not blocks.numbers:
        return None
    rates, length_ns = blocks.rates.sum(axis=1), blocks.plan.block_ns
    factor, unit = 1.0, "operations/s"
    if blocks.moves_bytes:
        factor, unit = unit_for(float(rates.max()))
    names = {BASE: "no change", **CHANGES}
    rows = [
        {"t": at, "u": at + length_ns / NS_PER_S, "what": names[change], "n": rate / factor}
        for number, change, rate in zip(blocks.numbers, blocks.changes, rates, strict=True)
        for at in [(number * length_ns - series.start_ns) / NS_PER_S]
    ]
    shown = [change for change in names if change in blocks.changes]
    tints = colors({names[change]: palette.color(palette.OF_CHANGE[change]) for change in shown})
    return Chart(
        title=f"Changes, {unit}",
        says=f"Throughput in each block of {format_seconds(length_ns / NS_PER_S)} without its first"
        f" {format_seconds(blocks.guard_s)}; the colour is the change made in it.",
        spec=drawing("stacked", rows, time=_steps(_X), counts={}, colors=tints),
        height=130,
        end_s=length_s(series),
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
        says=f"{each}, in the order in which they began; the colour is a function's throughput. A"
        " row that lasts longer than the others is a straggler; steps are waves.",
        spec=drawing("functions", rows, time=_steps(_X)),
        height=300,
        end_s=length_s(found.timeline),
    )


_LATENCY_MARKS: Final[Mapping[str, Spec]] = {
    "datum.bound == '' && datum.p == 'p50'": {
        "mark": {"type": "line", "clip": True, "point": {"size": 35}}
    },
    "datum.bound == '' && datum.p == 'p99'": {
        "mark": {
            "type": "line",
            "clip": True,
            "strokeDash": [3, 3],
            "point": {"size": 40, "filled": False, "fill": palette.color("background")},
        }
    },
    "datum.bound != ''": {
        "mark": {"type": "point", "clip": True, "size": 30},
        "encoding": {"shape": {"value": "triangle-up"}},
    },
}
"""Layers by the rows that they have."""


def latency_chart(found: Latencies, end_s: float | None = None) -> Chart | None:
    """Return p50 and p99 of each kind of operation over time; None without operations.

    Parameters
    ----------
    found
        How long operations took.
    end_s
        Where the time axis ends; after the last segment without it.
    """
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
    bounds = {row["bound"] for row in rows}
    layers = [
        {"transform": [{"filter": test}], **mark}
        for test, mark in _LATENCY_MARKS.items()
        if ("" if "== ''" in test else "at least") in bounds
    ]
    first = "seconds since the first operation was due"
    spec = drawing(
        "latency over time",
        rows,
        layers=layers,
        time=_time(first),
        colors=colors(tints, "stroke"),
        shapes=colors({kind: SHAPES.get(kind, "circle") for kind in tints}, "stroke"),
    )
    return Chart(
        title=f"{time}, ms",
        says="Median (solid) and 99th percentile (dotted, hollow) of operations that began or"
        " should have begun in each segment. Triangles are lower bounds: some never began.",
        spec=spec,
        height=190,
        end_s=end_s or found.segment_s * max(len(one.count) for one in found.over_time),
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
    segment_ns: int,
    tints: Sequence[str] | None = None,
) -> Spec:
    """Return areas over time, one on the other."""
    shown = tints or [palette.nth_error(number) for number in range(len(named))]
    rows = [
        {**at, "what": name, "n": float(value)}
        for name, line in named.items()
        for at, value in zip(_segments(segment_ns, len(line)), line, strict=True)
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
