"""Colours and marks of series in the panels of an experiment's picture."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from serverless_bench.features.plot.charts import Spec
from serverless_bench.features.plot.palette import LIGHT
from serverless_bench.job.workload import WORKLOADS, open_workload

_HUES: Final = ("blue", "orange", "green", "pink", "sky", "purple", "brown", "grey")
_SHAPES: Final = (
    *("circle", "square", "diamond", "triangle-up", "triangle-down"),
    *("cross", "triangle-left", "triangle-right", "wedge"),
)
"""More shapes than colours, so that up to 72 series are distinct."""


class SeriesStyle(NamedTuple):
    """Colour and mark of a series, the same in all panels."""

    color: str
    shape: str


def looks_of(names: Iterable[str]) -> dict[str, SeriesStyle]:
    """Return the look of each series: workloads have their colour, other series use the palette."""
    return {
        name: SeriesStyle(
            LIGHT.hues[
                open_workload(name).look.hue if name in WORKLOADS else _HUES[number % len(_HUES)]
            ],
            _SHAPES[number % len(_SHAPES)],
        )
        for number, name in enumerate(dict.fromkeys(names))
    }


def series_encodings(looks: dict[str, SeriesStyle], title: str) -> dict[str, Spec]:
    """Return the encodings of the field ``series``, with a legend beside all panels.

    Parameters
    ----------
    looks
        Look of each series.
    title
        Lines above the legend.
    """
    legend = {"title": title.split("\n"), "orient": "right", "columns": 1, "symbolLimit": 0}
    return {
        name: {
            "field": "series",
            "type": "nominal",
            "scale": {"domain": list(looks), "range": list(look)},
            "legend": legend if any(looks) else None,
        }
        for name, look in zip(("colors", "shapes"), zip(*looks.values(), strict=True), strict=True)
    }
