"""Panels of runs: functions over time, the distribution of their rates, latencies, throughput."""

import re
from collections.abc import Sequence
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from serverless_bench.analysis.attempt_stats import throttles_per_s
from serverless_bench.analysis.clock_offsets import aligned, worker_offsets
from serverless_bench.analysis.latency import Latencies, latencies
from serverless_bench.analysis.timeline import (
    Timeline,
    clock_band,
    function_spans,
    good_operations,
    segments_of,
    timeline_to_draw,
)
from serverless_bench.escaping import for_picture
from serverless_bench.palette import LIGHT
from serverless_bench.reporters.plots.style import (
    TEXT_SIZE,
    UNITS,
    Style,
    dress,
    key_above,
    marker_of,
    shortened,
    style_of,
    unit_for,
)
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import ABSENT, is_text
from serverless_bench.units import NS_PER_S, format_count, format_seconds

_BROAD: Final = 50
"""Fewer functions than this are broad lines."""
_SEGMENTS: Final = 200
"""Of the line of operations in flight, about."""
_FEW: Final = 20
"""Functions that are dots, one by one: bars of so few say less."""
_MS_PER_S: Final = 1000
_SUBDIVISIONS: Final = ((1e4, (1,)), (10, (1, 2, 5)), (3, (1, 2, 3, 5, 7)), (0, range(1, 10)))
"""Where the axis has a tick in each decade, by how many times its end is its begin."""
_STEPS: Final = 120
"""Steps of a picture at most."""
_TALLEST: Final = 2.0
"""Of the highest step, as high as the picture is for a band: the line stays readable."""
_SEEN: Final = 0.01
"""Of the highest step, a band that is wide enough to be seen."""
_DASHES: Final = ("-", "--", ":", "-.")
_IMPORTED: Final = "imported"
_SAID: Final = re.compile(r"throughput, (.*)")


def draw_jobs(run: Run, axes: Axes, *, style: Style | None = None) -> None:
    """Draw when each function ran (PyWren: "jobs over time").

    Functions are sorted by start. Failed ones are red; lost ones have no times and stand
    as a number in the title. The black line counts the operations in flight.

    Parameters
    ----------
    run
        A saved run.
    axes
        Where to draw.
    style
        Name and colour; the workload's without it.
    """
    style = style or style_of(run)
    run = aligned(run, worker_offsets(run))
    functions = run.functions
    there = np.flatnonzero(functions["start_ns"] != ABSENT)
    there = there[np.argsort(functions["start_ns"][there], kind="stable")]
    lost = int(is_text(functions["status"], "lost").sum())
    title = f"{style.label}: functions over time" + (f", {lost} lost" if lost else "")
    dress(axes, title=title, x="seconds since the first function began", y="functions, operations")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set(xlim=(0, 1), ylim=(0, 1))
    if not len(there):
        return
    origin = functions["start_ns"][there[0]]
    begin = (functions["start_ns"][there] - origin) / NS_PER_S
    end = (functions["end_ns"][there] - origin) / NS_PER_S
    failed = is_text(functions["status"], "failed")[there]
    # Each in the middle of its own unit: so many lines reach exactly as high as their number.
    height = np.arange(len(there)) + 0.5
    lines = np.stack([np.stack([begin, height], 1), np.stack([end, height], 1)], 1)
    # A rectangle a function high would vanish for thousands: a line keeps a width.
    each = axes.bbox.height / axes.figure.dpi * 72 / len(there)
    width = min(max(0.6 * each, 0.8), 6.0)
    bad = format_count(int(failed.sum()), "failed function")
    for drawn, color, label, least, alpha in (
        (lines[~failed], style.color, "function", 0.8, 0.65),
        (lines[failed], LIGHT.failed, bad, 2.0, 1),
    ):
        if len(drawn):
            shown = LineCollection(
                list(drawn),
                colors=color,
                linewidths=max(width, least),
                alpha=alpha,
                capstyle="butt",
                label=label,
            )
            axes.add_collection(shown)
    axes.set(xlim=(0, max(float(end.max()), 1e-3)), ylim=(0, 1.03 * len(there)))
    _draw_in_flight(run, axes, int(origin), float(end.max()), len(there))
    key_above(axes, columns=3)


def _draw_in_flight(run: Run, axes: Axes, origin_ns: int, width_s: float, functions: int) -> None:
    """Draw the operations in flight over so many functions, if there were any."""
    segment_ns = max(1, round(width_s * NS_PER_S / _SEGMENTS))
    try:
        grid = segments_of(run, segment_ns)
    except ValueError:
        return
    in_flight = grid.in_flight()
    most = float(in_flight.max())
    # On broad lines of functions it is seen by its edge, which would hide thin ones.
    few = functions < _BROAD
    # Threads may have more operations under way than there are functions.
    axes.set_ylim(0, 1.03 * max(functions, most))
    axes.step(
        (np.arange(len(in_flight)) * segment_ns + (grid.start_ns - origin_ns)) / NS_PER_S,
        in_flight,
        where="post",
        color=LIGHT.ink,
        label=f"operations in flight, at most {most:.0f}",
        path_effects=[withStroke(linewidth=3.5, foreground=LIGHT.surface)] if few else None,
    )


def draw_rates(run: Run, axes: Axes, *, style: Style | None = None) -> None:
    """Draw a histogram of each function's bytes over its first start to last end.

    Few functions are a dot each, in the order of their rates. Rates begin at 0, so that
    functions that are nearly alike look alike.

    Parameters
    ----------
    run
        A saved run.
    axes
        Where to draw.
    style
        Name and colour; the workload's without it.
    """
    style = style or style_of(run)
    rates = function_spans(run).bytes_per_s
    factor, unit = unit_for(float(rates.max(initial=0)))
    few = len(rates) < _FEW
    dress(
        axes,
        title=f"{style.label}: rates",
        x=f"rate of each function, {unit}",
        y="functions, by their rate" if few else "functions",
    )
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set(xlim=(0, 1), ylim=(0, 1))
    if not len(rates):
        return
    shown = np.sort(rates) / factor
    if few:
        axes.plot(shown, np.arange(1, len(shown) + 1), "o", color=style.color, zorder=3)
        axes.set_ylim(0, len(shown) + 0.5)
    else:
        axes.hist(shown, bins="auto", color=style.color, edgecolor=LIGHT.surface, linewidth=0.5)
        axes.autoscale(axis="y")
    axes.set_xlim(0, max(1.05 * float(shown[-1]), 1e-3))
    middle = float(np.median(shown))
    axes.axvline(
        middle,
        color=LIGHT.ink,
        linewidth=1.5,
        linestyle="--",
        label=f"median {middle:.1f} {unit}",
        # On bars it is seen by its edge.
        path_effects=[withStroke(linewidth=3.5, foreground=LIGHT.surface)],
    )
    key_above(axes, columns=1)


def draw_latency(run: Run, axes: Axes, *, style: Style | None = None) -> None:
    """Draw p50 (line) and p99 (marks) of each kind of operation in each segment of time.

    In an open loop they are of the response time, which counts from the intended start.

    Parameters
    ----------
    run
        A saved run.
    axes
        Where to draw; its vertical axis becomes logarithmic.
    style
        Name; the workload's without it. Kinds of operations have colours of their own.
    """
    style = style or style_of(run)
    found = latencies_of(run)
    time = "response time" if found.open_loop else "latency"
    dress(
        axes,
        title=f"{style.label}: {time}, p50 as lines and p99 as marks",
        x="seconds since the first operation was due",
        y=f"{time}, ms",
    )
    if found.segment_s is None:
        axes.set(xlim=(0, 1), ylim=(0, 1))
        return
    axes.set_yscale("log")
    for one in found.over_time:
        at = (np.arange(len(one.count)) + 0.5) * found.segment_s
        color, marker = LIGHT.of(one.kind), marker_of(one.kind)
        # A latency of nothing, on a clock that is coarse, has no logarithm.
        p50, p99 = (
            np.array([value or np.nan for value in values], dtype=np.float64) * _MS_PER_S
            for values in (one.p50_s, one.p99_s)
        )
        # Where some never began, both are lower bounds: triangles that no line leads to.
        bound = np.array(one.overdue) > 0
        measured = np.where(bound, np.nan, p50)
        axes.plot(at, measured, "-", color=color, label=one.kind, marker=marker, markersize=2)
        axes.plot(at[~bound], p99[~bound], marker, color=color, markersize=5, fillstyle="none")
        for values in (p50, p99) if bound.any() else ():
            axes.plot(at[bound], values[bound], "^", color=color, markersize=4, fillstyle="none")
    axes.set_xlim(0, found.segment_s * max(len(one.count) for one in found.over_time))
    _plain_numbers(axes)
    key_above(axes, columns=8)


def _plain_numbers(axes: Axes) -> None:
    """Write 6 for what a logarithmic axis would call 6 x 10^0, also over a part of a decade."""
    low, high = axes.dataLim.intervaly
    # Values that are all the same stand in the middle.
    low, high = min(0.85 * low, 0.7 * high), max(1.2 * high, 1.4 * low)
    axes.set_ylim(low, high)
    inside = next(parts for above, parts in _SUBDIVISIONS if high > above * low)
    axes.yaxis.set_major_locator(LogLocator(subs=inside))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axes.yaxis.set_minor_locator(NullLocator())


def latencies_of(run: Run) -> Latencies:
    """Return how long the operations of a run took, its clocks corrected."""
    run = aligned(run, worker_offsets(run))
    return latencies(run, good_operations(run))


def draw_throughput(run: Run, axes: Axes, *, style: Style | None = None) -> None:
    """Draw bytes moved in each segment of time, from the progress inside each object.

    The area below the line is the bytes of the run. The grey band is where the line would
    be if all workers' clocks were as far behind, or ahead, as their evidence allows;
    throttled attempts are drawn in red, on an axis of their own.

    Parameters
    ----------
    run
        A saved run.
    axes
        Where to draw; another run may be there already.
    style
        Name and colour; the workload's without it.
    """
    on_one_clock, series = timeline_of(run)
    draw_timeline(on_one_clock, series, axes, style or style_of(run), unit_for(peak_of(series)))


def draw_timeline(
    on_one_clock: Run, series: Timeline | None, axes: Axes, style: Style, unit: tuple[float, str]
) -> None:
    """Draw what ``timeline_of`` returned, in a unit that other pictures may share."""
    before = _SAID.fullmatch(axes.get_ylabel())
    # What is there already has its unit.
    factor, name = UNITS[before[1]] if before else unit
    whose = "" if before else f"{style.label}: "
    dress(
        axes,
        title=f"{whose}throughput of all functions together",
        x="seconds since the first request",
        y=f"throughput, {name}",
    )
    if series is None:
        if not before:
            axes.set(xlim=(0, 1), ylim=(0, 1))
        return
    # By hand: the second run on these axes, or on their scale, may reach further than the first.
    width = 0.0 if axes.get_autoscalex_on() else axes.get_xlim()[1]
    height = 0.0 if axes.get_autoscaley_on() else axes.get_ylim()[1]
    step_s = series.segment_ns / NS_PER_S
    edges = [*series.seconds, series.seconds[-1] + step_s]
    # Other tools do not say how an operation went on.
    is_even = on_one_clock.job.executor == _IMPORTED
    assumed = " (assumed even within each operation)" if is_even else ""
    axes.stairs(
        series.bytes_per_s / factor,
        edges,
        facecolor=(style.color, 0.3),
        edgecolor=style.color,
        linewidth=1.2,
        label=f"{style.label}, in steps of {format_seconds(step_s)}{assumed}",
        fill=True,
    )
    top = _draw_band(series, axes, edges, factor)
    axes.set(xlim=(0, max(width, edges[-1])), ylim=(0, max(height, top, 1e-3)))
    beside = _draw_throttles(on_one_clock, axes, series.start_ns)
    key_above(axes, *beside, columns=3)


def timeline_of(run: Run) -> tuple[Run, Timeline | None]:
    """Return a run on the driver's clock, and its timeline, if it has one."""
    offsets = worker_offsets(run)
    on_one_clock = aligned(run, offsets)
    return on_one_clock, timeline_to_draw(on_one_clock, offsets, most=_STEPS)


def peak_of(series: Timeline | None) -> float:
    """Return the highest bytes per second of a timeline."""
    return 0.0 if series is None else float(series.bytes_per_s.max())


def _draw_band(series: Timeline, axes: Axes, edges: Sequence[float], factor: float) -> float:
    """Draw where the line may be if it can be seen, and return how high the picture has to be."""
    # How far single segments can be off (``at_most``) would hide the line where clocks are unknown.
    low, high = (rates / factor for rates in clock_band(series))
    peak = peak_of(series) / factor
    if float((high - low).max()) > _SEEN * peak:
        axes.stairs(
            high,
            edges,
            baseline=low,
            facecolor=(LIGHT.ink, 0.2),
            edgecolor="none",
            fill=True,
            label="within the uncertainty of the clocks",
        )
    return min(1.05 * float(high.max()), _TALLEST * peak)


def _draw_throttles(run: Run, axes: Axes, start_ns: int) -> Sequence[Axes]:
    """Draw throttled attempts per second on a scale of their own, which is returned."""
    found = throttles_per_s(run, start_ns)
    if not found:
        return ()
    whose = f"throttled {id(axes)}"
    beside = next((one for one in axes.figure.axes if one.get_label() == whose), None)
    if beside is None:
        beside = axes.twinx()
        beside.set_label(whose)
        beside.set_ylabel("throttled attempts per s", fontsize=TEXT_SIZE, color=LIGHT.failed)
        beside.yaxis.set_major_locator(MaxNLocator(integer=True))
        beside.tick_params(labelsize=TEXT_SIZE, color=LIGHT.failed, labelcolor=LIGHT.failed)
        beside.spines[["left", "top", "bottom"]].set_visible(False)
        beside.spines["right"].set_color(LIGHT.failed)
    if len(found) > len(_DASHES):
        found = {f"{len(found)} prefixes": np.sum(list(found.values()), axis=0)}
    for dash, (prefix, counts) in zip(_DASHES, found.items(), strict=False):
        label = f"throttled attempts, {for_picture(shortened(prefix))}"
        beside.stairs(counts, label=label, color=LIGHT.failed, linestyle=dash, linewidth=1.5)
        beside.set_ylim(0, max(beside.get_ylim()[1], 1.05 * float(counts.max())))
    # Whole seconds may reach beyond the last step.
    beside.set_xlim(axes.get_xlim())
    return (beside,)
