"""Charts of a run: throughput, functions, latencies and throttled requests over time, and rates.

All charts against time have one time axis, and a page zooms them together.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from serverless_bench.base.plugins import Registry
from serverless_bench.base.units import NS_PER_S, format_count, format_rate, format_seconds
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
    log_axis,
    number,
    unit_for,
    values,
)
from serverless_bench.features.plot.drawn_timeline import clock_band
from serverless_bench.job.abilities import tally_of
from serverless_bench.metrics.attempt_stats import throttles_per_s
from serverless_bench.metrics.clock_offsets import aligned, worker_offsets
from serverless_bench.metrics.latency import Latencies
from serverless_bench.metrics.summary import Summary
from serverless_bench.metrics.timeline import Timeline, segments_of
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import ABSENT, Floats, Ints, at_percentiles, is_text

CHARTS: Final = Registry[Callable[[Run, Timeline, Summary], Chart | None]]("charts", {})
"""Charts over time by the name of a workload, or of a setting that a job has switched on."""
FIRST_REQUEST: Final = "seconds since the first request"
"""Title of the time axis."""
_MARKS: Final = {"average": "Dashed", "steady": "dotted"}
_ALIKE: Final = "functions"
"""Name of functions that all do the same."""
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
_FEWEST_SEGMENTS: Final = 3
"""A line of fewer points over time is no line."""
_FEW: Final = 20
"""Fewer functions than this are shown as dots instead of bars."""
_BINS: Final = 40
"""Maximum number of bars in a histogram of rates."""


def added_charts(run: Run, series: Timeline, summary: Summary, names: Iterable[str]) -> list[Chart]:
    """Return the charts of these workloads and settings."""
    on = [CHARTS.load(name) for name in names if name in CHARTS]
    return [chart for draw in on if (chart := draw(run, series, summary)) is not None]


def throughput_chart(
    series: Timeline, color: str, summary: Summary, *, assumed: str = ""
) -> Chart | None:
    """Return the bytes moved over time; None without any.

    Parameters
    ----------
    series
        The run's timeline.
    color
        Colour of the run.
    summary
        Its totals: the average and the steady throughput are lines.
    assumed
        Added to the length of a step: what the run's records leave open.
    """
    if not series.segment_bytes.any():
        return None
    end_s, step = length_s(series), format_seconds(series.segment_ns / NS_PER_S)
    _, high = clock_band(series)
    top = min(1.05 * float(high.max()), _TALLEST * float(series.bytes_per_s.max()))
    factor, unit = unit_for(top)
    levels = {
        "average": summary.throughput_bytes_per_s,
        "steady": summary.steady_bytes_per_s,
    }
    result = {name: rate for name, rate in levels.items() if rate}
    marked = ", ".join(f"{mark}: {name}" for name, mark in _MARKS.items() if name in result)
    rows = [
        {**at, "rate": rate / factor, "low": least / factor, "high": most / factor}
        for at, rate, least, most in zip(
            segments(series.segment_ns, len(series.segment_bytes)),
            series.bytes_per_s,
            *clock_band(series),
            strict=True,
        )
    ]
    scale = {"domain": [0, max(top / factor, 1e-3)], "nice": False}
    return Chart(
        title=", ".join(
            ("Throughput", *(f"{name} {format_rate(rate)}" for name, rate in result.items()))
        ),
        says=f"Bytes transferred in each {step}{assumed}. {marked}{'; g' if marked else 'G'}rey:"
        " range within the uncertainty of the clocks.",
        spec=drawing(
            "throughput",
            # The last step has a width, too.
            [*rows, {**rows[-1], "t": end_s, "u": end_s}],
            color=color,
            band=palette.color("text"),
            time=time_axis(FIRST_REQUEST),
            steps=steps(FIRST_REQUEST),
            **{
                field: number(field, f"throughput ({unit})", scale=scale)
                for field in ("rate", "high", "level")
            },
            levels=values(
                [{"what": name, "level": rate / factor} for name, rate in result.items()]
            ),
            unit=unit,
        ),
        height=HEIGHT,
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
    lost = f", {count} lost" if (count := int(is_text(status, "lost").sum())) else ""
    names, tints = roles(run)
    tints = tints or {_ALIKE: color}
    rows: list[Row] = []
    step = -(-len(began) // _LINES) or 1
    for place, function in enumerate(began.tolist()):
        if place % step and not failed[function]:
            continue
        # In the middle of its own unit: so many lines reach exactly as high as their number.
        name = names[run.functions["index"][function]] if names else _ALIKE
        line = {"n": place + 0.5, "what": bad if failed[function] else name}
        begin_s, end_s = ((int(at[function]) - origin_ns) / NS_PER_S for at in (start, end))
        # The last row ends the line.
        rows += [{**line, "t": begin_s}, {**line, "t": end_s}, {**line, "n": None, "t": end_s}]
    length = max(0.001, (int(end[began].max(initial=0)) - origin_ns) / NS_PER_S)
    operations = _in_flight(run, origin_ns, length)
    most = max((row["n"] for row in operations), default=0.0)
    kinds, used = [*tints], {row["what"] for row in rows}
    tints[bad] = palette.color("failed")
    shown = colors({kind: tint for kind, tint in tints.items() if kind in used}, "stroke")
    if used <= {_ALIKE}:
        shown["legend"] = None
    if not rows:
        return Chart(
            title="Functions over time" + lost,
            says="No function delivered a record.",
            spec={"data": values([{}]), "mark": {"type": "text", "text": "nothing to draw"}},
            height=HEIGHT,
        )
    width = min(max(0.6 * HEIGHT / max(len(began), 1), 0.8), 6.0)
    top = 1.03 * max(len(began), most, 1.0)
    y = "functions, operations"
    counts = number("n", y, scale={"domain": [0, top], "nice": False}, axis=COUNTS)
    each = "A bar for each function" if step == 1 else f"A bar for every {step} functions"
    flights = f"; line: operations in flight, at most {most:.0f}" if operations else ""
    return Chart(
        title="Functions over time" + lost,
        says=f"{each}, in order of start{flights}.",
        spec=drawing(
            "functions over time",
            [],
            functions=values(rows),
            operations=values(operations),
            time=time_axis("seconds since the first function began"),
            number=counts,
            colors=shown,
            line=palette.color("text"),
            widths={"domain": [*kinds, bad], "range": [*[width] * len(kinds), max(width, 2.0)]},
            opacities={"domain": [*kinds, bad], "range": [*[0.7] * len(kinds), 1]},
            halo=palette.color("background"),
            # It is seen by its edge on broad lines, and would hide thin ones.
            halo_width=4 if len(began) < _BROAD else 0,
        ),
        height=HEIGHT,
        end_s=length,
    )


def roles(run: Run) -> tuple[list[str], dict[str, str]]:
    """Return the phase of each function, by its index, and the colour of each phase, if any."""
    tally = tally_of(run.job.declared, run.job.load)
    phases = [] if tally is None else tally.phases
    # Functions of a phase follow those of the one before; their colour is that of what they move.
    names = [name for phase in phases for name in [phase.name] * phase.functions]
    moving = {phase.name: max(phase.rows, key=lambda row: row[2])[0] for phase in phases}
    return names, {name: palette.color_of(kind) for name, kind in moving.items()}


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
        spec=stacked(
            {name or "(no prefix)": at for name, at in counts.items()}, NS_PER_S, "attempts/s"
        ),
        height=110,
        end_s=length_s(series),
    )


def latency_charts(found: Latencies, end_s: float | None = None) -> Iterator[Chart]:
    """Yield the latency over time of each kind of operation; nothing for less than a line.

    Parameters
    ----------
    found
        How long operations took.
    end_s
        Where the time axis ends; after the last segment without it.
    """
    segments_drawn = max((len(one.count) for one in found.over_time), default=0)
    if found.segment_s is None or segments_drawn < _FEWEST_SEGMENTS:
        return
    time, first, began = "Latency", FIRST_REQUEST, "began"
    if found.open_loop:
        time, began = "Response time", "should have begun"
        first = "seconds since the first operation was due"
    rows = {
        one.kind: [
            {"t": (place + 0.5) * found.segment_s, "p50": p50 * 1e3, "p99": p99 * 1e3, "dropped": n}
            for place, (p50, p99, n) in enumerate(
                zip(one.p50_s, one.p99_s, one.dropped, strict=True)
            )
            if p50 and p99
        ]
        for one in found.over_time
    }
    says = f"Median (line) and 99th percentile (top of the band) of operations that {began} then."
    if any(row["dropped"] for of_kind in rows.values() for row in of_kind):
        says += " Triangles are lower bounds: some never began."
    several = len(rows) > 1
    # One scale, so that kinds can be compared.
    low = 0.9 * min(row["p50"] for of_kind in rows.values() for row in of_kind)
    high = 1.1 * max(row["p99"] for of_kind in rows.values() for row in of_kind)
    for kind, of_kind in rows.items():
        spec = drawing(
            "latency over time",
            of_kind,
            time=time_axis(first),
            scale={"type": "log", "nice": False, "domain": [low, high]},
            title=f"{time.lower()} (ms)",
            axis=log_axis(low, high),
            color=palette.color_of(kind),
        )
        yield Chart(
            title=f"{time} of {kind}" if several else time,
            says=says,
            spec=spec,
            height=110 if several else 190,
            end_s=end_s or found.segment_s * segments_drawn,
        )
        says = ""


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
    x = number(
        "rate",
        f"throughput ({unit})",
        scale={"domain": [0, 1.05 * float(shown[-1])], "nice": False},
    )
    rows: list[Row] = [{"rate": rate, "n": n} for n, rate in enumerate(shown.tolist(), 1)]
    if len(rates) >= _FEW:
        low, high = float(shown[0]), float(shown[-1])
        # Equal rates share a bin, which is visible on an axis from 0.
        width = max((high - low) / min(_BINS, len(rates) // 2), high / _BINS)
        bins = 1 + int((high - low) / width)
        first = max(0.0, (low + high - bins * width) / 2)
        edges = first + width * np.arange(bins + 1)
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
        says=f"Functions that succeeded. Median (dashed): {median:.3g} {unit}.",
        spec=drawing(
            "rates",
            rows,
            each=each,
            median=values([{"rate": median}]),
            x=x,
            line=palette.color("text"),
        ),
        height=HEIGHT,
    )


def stacked(
    named: Mapping[str, Ints | Floats],
    segment_ns: int,
    title: str,
    tints: Sequence[str] | None = None,
) -> Spec:
    """Return areas over time, one on the other, with a title of their axis."""
    shown = tints or [palette.nth_error(number) for number in range(len(named))]
    rows = [
        {**at, "what": name, "n": float(value)}
        for name, line in named.items()
        for at, value in zip(segments(segment_ns, len(line)), line, strict=True)
        if value
    ]
    tinted = colors(dict(zip(named, shown, strict=True)))
    count = number("n", title, stack="zero", axis=COUNTS)
    return drawing("stacked", rows, time=steps(FIRST_REQUEST), count=count, colors=tinted)


def time_axis(title: str) -> Spec:
    """Return the encoding of the time axis, which parameters of the chart bound."""
    scale = {"domainMin": {"expr": "t0"}, "domainMax": {"expr": "t1"}, "nice": False, "zero": False}
    return number("t", title, scale=scale)


def steps(title: str) -> Spec:
    """Return the encoding of steps along the time axis."""
    return {**time_axis(title), "bin": "binned"}


def segments(segment_ns: int, count: int) -> list[dict[str, float]]:
    """Return where each segment begins and ends."""
    step = segment_ns / NS_PER_S
    return [{"t": place * step, "u": (place + 1) * step} for place in range(count)]


def length_s(series: Timeline) -> float:
    """Return how long the common time axis is."""
    return len(series.segment_bytes) * series.segment_ns / NS_PER_S
