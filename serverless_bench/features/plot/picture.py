"""Pictures of runs with the same charts as their pages, and their files.

The colours are those of the PyWren article of 2016: writes green, reads blue.
"""

import json
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap
from typing import Final

import vl_convert

from serverless_bench.base.errors import ArchiveError, UsageError
from serverless_bench.base.escaping import for_terminal
from serverless_bench.features.plot import palette
from serverless_bench.features.plot.charts import Chart, Spec, config
from serverless_bench.features.plot.drawn_timeline import timeline_to_draw
from serverless_bench.features.plot.palette import LIGHT
from serverless_bench.features.plot.run_charts import (
    added_charts,
    functions_chart,
    latency_charts,
    rate_chart,
    throttled_chart,
    throughput_chart,
)
from serverless_bench.metrics.clock_offsets import aligned, worker_offsets
from serverless_bench.metrics.summary import Summary, summarize
from serverless_bench.metrics.timeline import function_spans
from serverless_bench.rundir.files import replacing
from serverless_bench.rundir.run import AnyRun, Run, as_run

_WIDTH: Final = 1040
"""Width of the axes of a panel, in units of ``_SCALE`` pixels in a PNG."""
_BESIDE: Final = (250, 425, 180)
"""Widths of the panels of a row."""
_SCALE: Final = 1.2
_LINE: Final = 110
"""Maximum number of characters in a line of the title."""
_LETTER: Final = 5.5
"""Mean width of a character of the subtitle."""
_BOLD: Final = 7.3
"""The same of the title."""
_LONGEST: Final = 20
"""Maximum number of characters of a name."""
_SHADES: Final = (0.0, -0.45, 0.3, -0.7, 0.55)
"""Shades for runs of the same workload: below 0 towards black, above 0 towards white."""
_APART: Final[Spec] = {
    "resolve": {
        "scale": dict.fromkeys(
            ("color", "shape", "strokeDash", "strokeOpacity", "strokeWidth"), "independent"
        )
    }
}
"""Each panel has its own colours and legends."""
_FONT: Final = "Liberation Sans, Arial, Helvetica, sans-serif"
"""The first font comes with the library, so pictures look the same on every machine."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture, which shows itself in a notebook.

    Parameters
    ----------
    spec
        Specification of Vega-Lite, including the data.

    Examples
    --------
    >>> drawn = sbench.plot(written)
    >>> sbench.Picture({**drawn.spec, "vconcat": drawn.spec["vconcat"][1:]}).save("throughput.svg")
    """

    spec: Spec = field(repr=False)

    def save(self, path: Path | str) -> None:
        """Write the picture as PNG, SVG or PDF, according to the suffix of the file.

        An existing file is replaced; links are not followed.

        Raises
        ------
        ArchiveError
            If the suffix is unknown, or the file cannot be written.
        """
        path = Path(path)
        form = path.suffix.removeprefix(".").lower() or "png"
        if form == "svg":
            data = vl_convert.vegalite_to_svg(self.spec, allowed_base_urls=[]).encode()
        elif form == "pdf":
            data = vl_convert.vegalite_to_pdf(self.spec, allowed_base_urls=[])
        elif form == "png":
            data = self._repr_png_()
        else:
            raise ArchiveError(
                f"cannot write {path}: a picture is a .png, .svg or .pdf file",
                hint="choose another name",
            )
        try:
            with replacing(path) as file:
                file.write(data)
        except OSError as exc:
            raise ArchiveError(f"cannot write {path}: {exc}", hint="choose another name") from exc

    def _repr_png_(self) -> bytes:
        return _packed(vl_convert.vegalite_to_png(self.spec, scale=_SCALE, allowed_base_urls=[]))


def plot(*runs: AnyRun, latency: bool = False, title: str = "") -> Picture:
    """Plot runs into a single picture, like ``sbench plot``.

    Each run has a row of panels with its functions and their rates, and its throughput below;
    runs with several kinds or sizes, or with an open loop, also have panels with latencies.

    Parameters
    ----------
    *runs
        Runs, their names or their directories: usually a write and the read of its objects.
    latency
        Whether to plot the latencies of all runs.
    title
        Text above all panels; simulated runs are marked in it.

    Returns
    -------
    Picture
        Shows itself in a notebook; ``save`` writes it.

    Examples
    --------
    >>> sbench.plot(written, read, title="First run").save("plot.png")
    """
    if not runs:
        raise UsageError("no run to plot", hint="sbench.plot(write, read)")
    return figure(
        [as_run(run) for run in runs],
        [getattr(run, "summary", None) for run in runs],
        latency=latency,
        title=title,
    )


def figure(
    runs: Sequence[Run],
    summaries: Sequence[Summary | None] = (),
    *,
    latency: bool = False,
    title: str = "",
) -> Picture:
    """Return a picture with a row per run: its functions, its throughput, and their rates.

    Each panel has scales of its own, because a read may be ten times faster than its write. A
    workload may have a chart of its own instead of the throughput and the rates.

    Runs with several kinds or sizes, or with an open loop, also have panels with latencies.

    Parameters
    ----------
    runs
        Usually a write and the read of its objects.
    summaries
        Their figures, as far as a result has computed them.
    latency
        Whether to draw the latencies of all runs.
    title
        Text above all panels; simulated runs are marked in it.

    Returns
    -------
    Picture
        Save it, display it in a notebook, or take its specification.
    """
    panels = list[Spec]()
    for run, known, (label, color) in zip(
        runs, summaries or [None] * len(runs), _styles(runs), strict=True
    ):
        summary, offsets = known or summarize(run), worker_offsets(run)
        on_one_clock = aligned(run, offsets)
        series = timeline_to_draw(on_one_clock, offsets)
        beside, below = list[Chart | None]([functions_chart(run, color)]), list[Chart | None]()
        if series is not None:
            # Imported runs have no progress of operations.
            is_even = run.job.executor == "imported"
            assumed = " (assumed even within each operation)" if is_even else ""
            rates = function_spans(on_one_clock).bytes_per_s
            beside += added_charts(run, series, summary, [run.job.workload]) or [
                throughput_chart(series, color, summary, assumed=assumed),
                rate_chart(rates, color),
            ]
            below = [throttled_chart(run, series)]
            below += added_charts(run, series, summary, run.job.options)
        if latency or summary.latencies.notable:
            below += latency_charts(summary.latencies)
        panels.append(_row([chart for chart in beside if chart is not None], label))
        panels += [panel(chart, label) for chart in below if chart is not None]
    models = dict.fromkeys(run.simulated for run in runs if run.simulated is not None)
    names = ", ".join(map(for_terminal, models))
    mark = f"SIMULATED (model {names}); not a measurement" if models else ""
    return column(panels, "; ".join(filter(None, (title, mark))))


def _row(charts: Sequence[Chart], label: str) -> Spec:
    """Return charts beside each other, with their titles at one height."""
    panels = [panel(chart, label, w) for chart, w in zip(charts, _BESIDE, strict=False)]
    most = max(len(one["title"]["subtitle"]) for one in panels)
    for one in panels:
        one["title"]["subtitle"] += [""] * (most - len(one["title"]["subtitle"]))
    return {"hconcat": panels, **_APART}


def column(panels: Sequence[Spec], title: str) -> Picture:
    """Return panels in a column, with an optional title above them."""
    look = {**config(), "font": _FONT, "background": LIGHT.surface, "concat": {"spacing": 26}}
    look["legend"] = {**look["legend"], "columns": 0}
    look["axisX"] = {"tickCount": 8}
    spec = {"vconcat": panels, "config": look, "padding": 14, **_APART}
    if title:
        lines = wrap(for_terminal(title), _LINE)
        spec["title"] = {"text": lines, "fontSize": 17, "fontWeight": "normal", "offset": 16}
    drawn: Spec = json.loads(palette.on_light(json.dumps(spec, allow_nan=False)))
    return Picture(drawn)


def panel(chart: Chart, label: str, width: int = _WIDTH) -> Spec:
    """Return a chart as a panel of a picture, without zooming.

    Parameters
    ----------
    chart
        The chart.
    label
        Name of the run.
    width
        Width of its axes.
    """
    title = f"{label}: {chart.title[0].lower()}{chart.title[1:]}" if label else chart.title
    lines, words = wrap(title, int(width / _BOLD)), wrap(chart.says, round(width / _LETTER))
    text = json.dumps(chart.spec, allow_nan=False)
    for name, at in (("t0", 0), ("t1", chart.end_s)):
        text = text.replace(json.dumps({"expr": name}), str(at))
    spec: Spec = json.loads(text)
    if "layer" in spec:
        spec["layer"] = [layer for layer in spec["layer"] if layer.get("name") != "hover"]
    return {
        **spec,
        "title": {"text": lines if len(lines) > 1 else title, "subtitle": words},
        "width": width,
        "height": chart.height,
    }


def _packed(png: bytes) -> bytes:
    """Return a PNG with stronger compression: a third of the size that the library writes."""
    chunks, at = list[tuple[bytes, bytes]](), 8
    while at < len(png):
        end = at + 8 + int.from_bytes(png[at : at + 4])
        chunks.append((png[at + 4 : at + 8], png[at + 8 : end]))
        at = end + 4
    pixels = zlib.decompress(b"".join(data for kind, data in chunks if kind == b"IDAT"))
    kept = [chunk for chunk in chunks[:-1] if chunk[0] != b"IDAT"]
    packed = [*kept, (b"IDAT", zlib.compress(pixels)), chunks[-1]]
    return png[:8] + b"".join(
        len(data).to_bytes(4) + kind + data + zlib.crc32(kind + data).to_bytes(4)
        for kind, data in packed
    )


def _styles(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """Return the name and the colour of each run, distinct within a workload."""
    of_workload = Counter(run.job.workload for run in runs)
    seen, styles = Counter[str](), list[tuple[str, str]]()
    for run, name in zip(runs, _short_names(runs), strict=True):
        workload, mark = run.job.workload, "" if run.simulated is None else "simulated "
        label, color = f"{mark}{workload}", LIGHT.hues[run.job.declared.look.hue]
        if of_workload[workload] > 1:
            label = f"{label} {_shortened(name)}"
            color = palette.shaded(color, _SHADES[seen[workload] % len(_SHADES)])
            seen[workload] += 1
        styles.append((for_terminal(label), color))
    return styles


def _shortened(name: str) -> str:
    """Return a name without its middle if it is long, because names differ at their ends."""
    half = _LONGEST // 2
    return name if len(name) <= _LONGEST else f"{name[:half]}\u2026{name[1 - half :]}"


def _short_names(runs: Sequence[Run]) -> list[str]:
    """Return the shortest ends of the runs' paths that are distinct, even when shortened."""
    parts = [run.path.absolute().parts for run in runs]
    for length in range(1, max(map(len, parts), default=1) + 1):
        names = ["/".join(one[-length:]) for one in parts]
        if len(set(names)) == len(names):
            break
    if len({*map(_shortened, names)}) == len(names):
        return names
    return [f"{number} {name}" for number, name in enumerate(names, 1)]
