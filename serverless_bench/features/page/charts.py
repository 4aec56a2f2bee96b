"""Charts in a page, which readers can zoom.

A page contains each chart as SVG for readers without scripts; with scripts it draws the chart
again, so that readers can zoom in and see values.
"""

import json
import re
from collections.abc import Sequence
from typing import Final

import vl_convert

from serverless_bench.features.page.document import Html, tag
from serverless_bench.features.plot.charts import (
    Chart,
    Row,
    Spec,
    config,
    specs,
    values,
    with_parts,
)

_WIDTH: Final = 900
"""Width of a chart without scripts, in units of its view box; it fills the page."""
_SIZE: Final = re.compile(r' width="\d+(?:\.\d+)?" height="\d+(?:\.\d+)?"')


def figure(chart: Chart) -> Html:
    """Return a chart as SVG with a caption, and with its specification for scripts."""
    spec = {**chart.spec, "config": config(), "height": chart.height, "background": None}
    if chart.end_s is not None:
        ends = {"t0": 0, "t1": chart.end_s}
        spec["params"] = [{"name": name, "value": value} for name, value in ends.items()]
    drawn = vl_convert.vegalite_to_svg({**spec, "width": _WIDTH}, allowed_base_urls=[])
    # The chart takes the width of the page, so only the view box is kept.
    picture = Html(_SIZE.sub("", drawn, count=1))
    spec |= {"width": "container", "autosize": {"type": "fit-x", "contains": "padding"}}
    return tag(
        "figure",
        tag("figcaption", tag("h3", chart.title), tag("p", chart.says)),
        tag("div", picture, class_="picture", role="img", aria_label=chart.title),
        tag("script", embedded(spec), type="application/json"),
        class_="chart",
        data_end=None if chart.end_s is None else str(chart.end_s),
    )


def drawing(name: str, rows: Sequence[Row], **parts: object) -> Spec:
    """Return a specification of the ``charts.json`` of pages, as ``report.charts.drawing``."""
    return {"data": values(rows), **filled(name, **parts)}


def filled(name: str, **parts: object) -> Spec:
    """Return a part of the ``charts.json`` of pages with its ``$NAME`` replaced by ``parts``."""
    return with_parts(specs("serverless_bench.features.page")[name], parts)


def embedded(data: object) -> Html:
    """Return data as JSON that cannot close an HTML element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return Html(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))
