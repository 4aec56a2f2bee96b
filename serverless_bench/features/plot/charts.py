"""Charts as specifications of Vega-Lite, for pictures and for pages."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import ceil, floor, isfinite, log10
from typing import Any, Final

from serverless_bench.base.escaping import for_terminal
from serverless_bench.features.plot import palette

Row = Mapping[str, object]
Spec = dict[str, Any]

HEIGHT: Final = 150
"""Height of the charts that a picture shows side by side."""
COUNTS: Final[Spec] = {"labelExpr": "datum.value % 1 ? '' : format(datum.value, ',')"}
"""An axis of counts: no labels at fractions."""
_FEWEST_TICKS: Final = 3
_UNITS: Final = ((1e10, 1e9, "GB/s"), (1e6, 1e6, "MB/s"), (0.0, 1e3, "kB/s"))
"""Units of rates: minimum rate, bytes per second of the unit, name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart with its description."""

    title: str
    says: str
    """Description in a sentence or two, also for readers who cannot see the chart."""
    spec: Spec
    height: int = 160
    end_s: float | None = None
    """End of the time axis, which begins at 0; None without a time axis."""


def drawing(name: str, rows: Sequence[Row], **parts: object) -> Spec:
    """Return a specification of ``charts.json``.

    Parameters
    ----------
    name
        Name in that file.
    rows
        Data of the chart.
    parts
        Values for ``$NAME`` in it.
    """
    return {"data": values(rows), **filled(name, **parts)}


def filled(name: str, **parts: object) -> Spec:
    """Return a part of ``charts.json`` with its ``$NAME`` replaced by ``parts``."""
    return with_parts(specs("serverless_bench.features.plot")[name], parts)


def with_parts(spec: Spec, parts: Mapping[str, object]) -> Spec:
    """Return a specification with its ``$NAME`` replaced by ``parts``."""

    def fill(part: object) -> object:
        if isinstance(part, dict):
            return {key: fill(value) for key, value in part.items()}
        if isinstance(part, list):
            return [fill(value) for value in part]
        if isinstance(part, str) and part.startswith("$"):
            return parts[part[1:]]
        return part

    return {key: fill(value) for key, value in spec.items()}


@cache
def specs(package: str) -> Mapping[str, Spec]:
    """Return the specifications in the ``charts.json`` of a package."""
    path = files(package) / "charts.json"
    found: Mapping[str, Spec] = json.loads(path.read_text(encoding="utf-8"))
    return found


def config() -> Spec:
    """Return the style of all charts."""
    return filled("config", soft=palette.color("soft"), grid=palette.color("line"))


def unit_for(bytes_per_s: float) -> tuple[float, str]:
    """Return the unit for rates up to a maximum: bytes per second, and the name."""
    return next((by, name) for least, by, name in _UNITS if bytes_per_s >= least)


def values(rows: Sequence[Row]) -> Spec:
    """Return rows as data: numbers with six digits, texts without control characters."""
    return {"values": [{name: _short(value) for name, value in row.items()} for row in rows]}


def colors(named: Mapping[str, str], symbol: str = "square") -> Spec:
    """Return the encoding of the field ``what`` by colour, with a legend of these symbols."""
    scale = {"domain": list(map(for_terminal, named)), "range": list(named.values())}
    legend = {"title": None, "symbolType": symbol}
    return {"field": "what", "type": "nominal", "scale": scale, "legend": legend}


def number(field: str, title: str | None = None, **more: object) -> Spec:
    """Return the encoding of a numeric field."""
    return {"field": field, "type": "quantitative", "title": title, **more}


def log_axis(low: float, high: float) -> Spec:
    """Return a logarithmic axis with ticks at powers of ten, or at more values if these are few."""
    powers = [10.0**n for n in range(floor(log10(low)), ceil(log10(high)) + 1)]
    ticks: list[float] = []
    for factors in ((1,), (1, 2, 5), range(1, 10)):
        if len(ticks) < _FEWEST_TICKS:
            every = (factor * power for power in powers for factor in factors)
            ticks = [tick for tick in every if low <= tick <= high]
    return {"values": ticks, "format": ",~g"}


def _short(value: object) -> object:
    if isinstance(value, float):
        return float(f"{value:.6g}") if isfinite(value) else None
    return for_terminal(value) if isinstance(value, str) else value
