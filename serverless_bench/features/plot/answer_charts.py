"""Charts of the answer of a series, for pictures and for pages."""

from itertools import cycle
from math import sqrt
from typing import Final

from serverless_bench.base.errors import ArchiveError
from serverless_bench.features.answers.answer import Answer, Drawing
from serverless_bench.features.plot import palette
from serverless_bench.features.plot.charts import COUNTS, Chart, Row, Spec, colors, number, values
from serverless_bench.features.plot.picture import Picture, column, panel

_HUES: Final = ("blue", "orange", "green", "purple", "pink", "sky", "brown", "grey")
"""Colours of groups, in their order."""
_ROW: Final = 34
"""Height of the row of a name."""


def answer_picture(answer: Answer, title: str) -> Picture:
    """Return the charts of an answer below each other.

    Raises
    ------
    ArchiveError
        If it has none.
    """
    charts = answer_charts(answer)
    if not charts:
        raise ArchiveError(
            f"there is nothing to draw: {title} has no result with values",
            hint="plot its runs by name",
        )
    return column(
        [panel(chart, "") for chart in charts], f"{answer.command} {title}: {answer.headline}"
    )


def answer_charts(answer: Answer) -> list[Chart]:
    """Return the charts of an answer that have a value."""
    drawn = [answer_chart(drawing) for drawing in answer.drawings if drawing.marks]
    return drawn + [_heat_map(drawing) for drawing in answer.drawings if drawing.tiles]


def _heat_map(drawing: Drawing) -> Chart:
    """Return a chart of tiles, with the value in each; colours are logarithmic."""
    rows: list[Row] = [
        {"row": tile.row, "at": tile.at, "value": tile.value} for tile in drawing.tiles
    ]
    middle = sqrt(max(t.value for t in drawing.tiles) * min(t.value for t in drawing.tiles))
    level = {"labelAngle": 0}
    place = {
        "x": {"field": "at", "type": "nominal", "title": drawing.at, "sort": None, "axis": level},
        "y": {"field": "row", "type": "nominal", "title": None, "sort": None},
    }
    scale = {"type": "log", "scheme": "viridis"}
    heat = number("value", drawing.value, scale=scale, legend={"format": ",~r"})
    dark = {"condition": {"test": f"datum.value < {middle}", "value": "white"}, "value": "black"}
    layers: list[Spec] = [
        {"mark": "rect", "encoding": {"color": heat}},
        {
            "mark": {"type": "text", "fontSize": 12},
            "encoding": {"text": number("value", format=",.3~r"), "color": dark},
        },
    ]
    return Chart(
        title=drawing.title,
        says=drawing.says,
        spec={"data": values(rows), "encoding": place, "layer": layers},
        height=_ROW * len({tile.row for tile in drawing.tiles}),
    )


def answer_chart(drawing: Drawing) -> Chart:
    """Return a chart of values by place, with places that have names one below the other."""
    named = any(isinstance(mark.at, str) for mark in drawing.marks)
    across, along = ("y", "x") if named else ("x", "y")
    names = {"field": "at", "type": "nominal", "title": None, "sort": None}
    place = names if named else _numbers(drawing)
    groups = [mark.group for mark in drawing.marks] + [curve.group for curve in drawing.curves]
    hues = zip(dict.fromkeys(groups), cycle(_HUES), strict=False)
    tints = {group: palette.color(hue) for group, hue in hues}
    points: list[Row] = [
        {"at": mark.at, "value": mark.value, "what": mark.group} for mark in drawing.marks
    ]
    intervals: list[Row] = [
        {"at": mark.at, "low": mark.low, "high": mark.high, "what": mark.group}
        for mark in drawing.marks
        if mark.low is not None and mark.high is not None
    ]
    lines: list[Row] = [
        {"at": at, "value": value, "what": curve.group}
        for curve in drawing.curves
        for at, value in curve.points
    ]
    # Ratios and runs differ by little; values over numbers are seen from zero.
    scale = {"zero": not named, "nice": True}
    value, low = (number(field, drawing.value, scale=scale) for field in ("value", "low"))
    tint = colors(tints, "circle")
    if not any(tints):
        tint["legend"] = None
    point = {"type": "point", "filled": True, "size": 60, "opacity": 1}
    kind = "nominal" if named else "quantitative"
    tooltip = [
        {"field": "at", "type": kind, "title": drawing.at},
        {"field": "value", "type": "quantitative", "title": drawing.value, "format": ".5~g"},
    ]
    layers: tuple[tuple[list[Row], Spec, Spec], ...] = (
        (lines, {"type": "line", "strokeWidth": 1.5}, {along: value}),
        (
            intervals,
            {"type": "rule", "strokeWidth": 2},
            {along: low, f"{along}2": {"field": "high"}},
        ),
        (points, point, {along: value, "tooltip": tooltip}),
    )
    shown: list[Spec] = [
        {"data": values(rows), "mark": mark, "encoding": {**encoding, across: place, "color": tint}}
        for rows, mark, encoding in layers
        if rows
    ]
    if drawing.limits:
        limits = [{"value": limit} for limit in drawing.limits]
        dashed = {"type": "rule", "strokeDash": [6, 4], "color": palette.color("text")}
        shown.append({"data": values(limits), "mark": dashed, "encoding": {along: value}})
    return Chart(
        title=drawing.title,
        says=drawing.says,
        spec={"layer": shown},
        height=_ROW * len({mark.at for mark in drawing.marks}) if named else 220,
    )


def _numbers(drawing: Drawing) -> Spec:
    """Return the axis of places: logarithmic if they span more than a factor of ten."""
    places = [mark.at for mark in drawing.marks if not isinstance(mark.at, str)]
    wide = bool(places) and 0 < 10 * min(places) < max(places)
    scale = {"type": "log"} if wide else {"zero": False}
    axis = {"tickCount": 6, **({} if wide else COUNTS)}
    return number("at", drawing.at, scale={**scale, "nice": False, "padding": 12}, axis=axis)
