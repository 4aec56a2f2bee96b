"""Charts of a run: throughput, functions, latencies and throttled requests over time, and rates.

All charts against time have one time axis, and a page zooms them together.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from serverless_bench.base.plugins import Registry
from serverless_bench.base.units import NS_PER_S, format_count, format_seconds
from serverless_bench.features.plot import palette
from serverless_bench.features.plot.charts import (
    COUNTS,
    HEIGHT,
    Chart,
    Row,
    Spec,
    colors,
    drawing,
    filled,
    number,
    unit_for,
    values,
)
from serverless_bench.features.plot.drawn_timeline import clock_band
from serverless_bench.features.plot.palette import SHAPES
from serverless_bench.metrics.attempt_stats import throttles_per_s
from serverless_bench.metrics.clock_offsets import aligned, worker_offsets
from serverless_bench.metrics.latency import Latencies
from serverless_bench.metrics.timeline import Timeline, segments_of
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import ABSENT, Floats, Ints, at_percentiles, is_text

CHARTS: Final = Registry[Callable[[Run, Timeline], Chart | None]]("charts", {})
"""Charts over time of what a job has switched on, by the name of its setting."""
FIRST_REQUEST: Final = "seconds since the first request"
"""Title of the time axis."""
_LINES: Final = 2000
"""Functions that did not fail, of which so many have a line at most."""
_SEGMENTS: Final = 200
"""Segments of the line of operations in flight, about."""
MOST_WORDS: Final = 5
"""Kinds of errors that have a colour of their own."""
_BROAD: Final = 50
"""Fewer functions than this are drawn as broad lines."""
_TALLEST: Final = 2.0
"""Height of the picture at most, as a multiple of the highest step: the line stays readable."""
_FEW: Final = 20
"""Fewer functions than this are shown as dots instead of bars."""
_BINS: Final = 40
"""Maximum number of bars in a histogram of rates."""


def added_charts(run: Run, series: Timeline) -> list[Chart]:
    """Return the charts of what the job of a run has switched on."""
    on = [CHARTS.load(name) for name in CHARTS if name in run.job.options]
    return [chart for draw in on if (chart := draw(run, series)) is not None]


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
            segments(series.segment_ns, len(series.segment_bytes)),
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
            time=time_axis(FIRST_REQUEST),
            steps=steps(FIRST_REQUEST),
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
            time=time_axis("seconds since the first function began"),
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
    if len(counts) > MOST_WORDS:
        counts = {f"{len(counts)} prefixes": np.sum(list(counts.values()), axis=0)}
    return Chart(
        title="Throttled attempts per second",
        says="Requests that the store throttled, by the prefix of their keys.",
        spec=stacked({name or "(no prefix)": at for name, at in counts.items()}, NS_PER_S),
        height=110,
        end_s=length_s(series),
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
            "bound": "at least" if dropped else "",
        }
        for one in found.over_time
        for name, line in (("p50", one.p50_s), ("p99", one.p99_s))
        for place, (value, dropped) in enumerate(zip(line, one.dropped, strict=True))
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
        time=time_axis(first),
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


def stacked(
    named: Mapping[str, Ints | Floats],
    segment_ns: int,
    tints: Sequence[str] | None = None,
) -> Spec:
    """Return areas over time, one on the other."""
    shown = tints or [palette.nth_error(number) for number in range(len(named))]
    rows = [
        {**at, "what": name, "n": float(value)}
        for name, line in named.items()
        for at, value in zip(segments(segment_ns, len(line)), line, strict=True)
        if value
    ]
    tinted = colors(dict(zip(named, shown, strict=True)))
    return drawing("stacked", rows, time=steps(FIRST_REQUEST), counts=COUNTS, colors=tinted)


def time_axis(title: str | None) -> Spec:
    """Return the encoding of the time axis, which parameters of the chart bound."""
    scale = {"domainMin": {"expr": "t0"}, "domainMax": {"expr": "t1"}, "nice": False, "zero": False}
    return number("t", title, scale=scale)


def steps(title: str | None) -> Spec:
    """Return the encoding of steps along the time axis."""
    return {**time_axis(title), "bin": "binned"}


def segments(segment_ns: int, count: int) -> list[dict[str, float]]:
    """Return where each segment begins and ends."""
    step = segment_ns / NS_PER_S
    return [{"t": place * step, "u": (place + 1) * step} for place in range(count)]


def length_s(series: Timeline) -> float:
    """Return how long the common time axis is."""
    return len(series.segment_bytes) * series.segment_ns / NS_PER_S
