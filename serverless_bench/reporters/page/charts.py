"""Pictures, as the data that Vega-Lite draws.

A page has each drawn already, for readers without scripts; with scripts it draws it again, so that
it can be zoomed and asked.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import isfinite
from typing import Any, Final

import vl_convert

from serverless_bench.escaping import for_terminal
from serverless_bench.reporters.page import palette
from serverless_bench.reporters.page.document import Html, tag

Row = Mapping[str, object]
Spec = dict[str, Any]

_WIDTH: Final = 900
"""Of a picture without scripts, in its own units: it is as wide as the page."""
HEIGHT: Final = 200
"""Height of charts of functions, which a picture has beside each other."""
COUNTS: Final[Spec] = {"labelExpr": "datum.value % 1 ? '' : format(datum.value, ',')"}
"""An axis of things of which there are no halves."""
_UNITS: Final = ((1e10, 1e9, "GB/s"), (1e6, 1e6, "MB/s"), (0.0, 1e3, "kB/s"))
"""Units of rates: from so many bytes per second on, bytes per second, name."""
_SIZE: Final = re.compile(r' width="\d+(?:\.\d+)?" height="\d+(?:\.\d+)?"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One picture."""

    title: str
    says: str
    """What is drawn, in a sentence or two: also for those who do not see it."""
    spec: Spec
    height: int = 160
    end_s: float | None = None
    """Of its time axis, which begins at 0; None of a chart without one."""


def figure(chart: Chart) -> Html:
    """Return a picture with its caption: drawn, and described for who can draw it."""
    spec = {**chart.spec, "config": config(), "height": chart.height, "background": None}
    if chart.end_s is not None:
        ends = {"t0": 0, "t1": chart.end_s}
        spec["params"] = [{"name": name, "value": value} for name, value in ends.items()]
    drawn = vl_convert.vegalite_to_svg({**spec, "width": _WIDTH}, allowed_base_urls=[])
    # Its size is that of the page; the view box stays.
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
    """Return the specification that ``charts.json`` has by a name.

    Parameters
    ----------
    name
        In that file.
    rows
        Data of the picture.
    parts
        Stand for ``$NAME`` in it.
    """
    return {"data": values(rows), **filled(name, **parts)}


def filled(name: str, **parts: object) -> Spec:
    """Return a part of ``charts.json``, with ``parts`` for what stands there as ``$NAME``."""

    def fill(part: object) -> object:
        if isinstance(part, dict):
            return {key: fill(value) for key, value in part.items()}
        if isinstance(part, list):
            return [fill(value) for value in part]
        if isinstance(part, str) and part.startswith("$"):
            return parts[part[1:]]
        return part

    spec: Any = fill(_specs()[name])
    return dict(spec)


@cache
def _specs() -> Mapping[str, Any]:
    path = files("serverless_bench.reporters.page") / "charts.json"
    specs: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return specs


def embedded(data: object) -> Html:
    """Return data as JSON that closes no element, whatever is in it."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return Html(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def config() -> Spec:
    """Return how all charts look."""
    return filled("config", soft=palette.color("soft"), grid=palette.color("line"))


def unit_for(bytes_per_s: float) -> tuple[float, str]:
    """Return the unit for rates of up to so much: bytes per second, and its name."""
    return next((by, name) for least, by, name in _UNITS if bytes_per_s >= least)


def values(rows: Sequence[Row]) -> Spec:
    """Return rows as the data of a chart: numbers with six digits, texts without control."""
    return {"values": [{name: _short(value) for name, value in row.items()} for row in rows]}


def colors(named: Mapping[str, str], symbol: str = "square") -> Spec:
    """Return the encoding of the field ``what`` by colour, with a legend of such symbols."""
    scale = {"domain": list(map(for_terminal, named)), "range": list(named.values())}
    legend = {"title": None, "symbolType": symbol}
    return {"field": "what", "type": "nominal", "scale": scale, "legend": legend}


def number(field: str, title: str | None = None, **more: object) -> Spec:
    """Return the encoding of a field that is a number."""
    return {"field": field, "type": "quantitative", "title": title, **more}


def _short(value: object) -> object:
    if isinstance(value, float):
        return float(f"{value:.6g}") if isfinite(value) else None
    return for_terminal(value) if isinstance(value, str) else value
