"""All functions' throughput together, over time."""

import re
from collections.abc import Sequence
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from serverless_bench.analysis.attempt_stats import throttles_per_s
from serverless_bench.analysis.clock_offsets import aligned, worker_offsets
from serverless_bench.analysis.timeline import Timeline, clock_band, timeline_to_draw
from serverless_bench.escaping import for_picture
from serverless_bench.palette import LIGHT
from serverless_bench.reporters.plots.style import (
    TEXT_SIZE,
    UNITS,
    Style,
    dress,
    key_above,
    shortened,
    style_of,
    unit_for,
)
from serverless_bench.rundir.run import Run
from serverless_bench.units import NS_PER_S, format_seconds

_SEGMENTS: Final = 120
"""Steps of a picture at most."""
_TALLEST: Final = 2.0
"""Of the highest step, as high as the picture is for a band: the line stays readable."""
_SEEN: Final = 0.01
"""Of the highest step, a band that is wide enough to be seen."""
_DASHES: Final = ("-", "--", ":", "-.")
_IMPORTED: Final = "imported"
_SAID: Final = re.compile(r"throughput, (.*)")


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
    axes.stairs(
        series.bytes_per_s / factor,
        edges,
        facecolor=(style.color, 0.3),
        edgecolor=style.color,
        linewidth=1.2,
        label=f"{style.label}, in steps of {format_seconds(step_s)}{_assumed(on_one_clock)}",
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
    return on_one_clock, timeline_to_draw(on_one_clock, offsets, most=_SEGMENTS)


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


def _assumed(run: Run) -> str:
    """Return what is not measured: other tools do not say how an operation went on."""
    return " (assumed even within each operation)" if run.job.executor == _IMPORTED else ""
