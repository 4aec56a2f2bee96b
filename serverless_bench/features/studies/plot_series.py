"""Colours and marks of series in the panels of a study's picture."""

from collections.abc import Iterable
from itertools import cycle
from typing import Final, NamedTuple

from serverless_bench.features.plot.charts import Spec
from serverless_bench.features.plot.palette import LIGHT, shaded
from serverless_bench.job.workload import WORKLOADS, open_workload

_HUES: Final = ("blue", "orange", "green", "pink", "sky", "purple", "brown", "grey")
_SHAPES: Final = (
    *("circle", "square", "diamond", "triangle-up", "triangle-down"),
    *("cross", "triangle-left", "triangle-right", "wedge"),
)
"""Marks of series, in their order; their number is odd, so that colours and marks differ."""
_LIGHTER: Final = 0.3
"""Shade of the second round of colours."""


class SeriesStyle(NamedTuple):
    """Colour and mark of a series, the same in all panels."""

    color: str
    shape: str


def looks_of(names: Iterable[str]) -> dict[str, SeriesStyle]:
    """Return the look of each series: workloads have their colour, other series use the palette.

    With more series than colours, those of one thing, such as "wire" and "wire, whole", share its
    colour; after the colours of the palette come lighter ones.
    """
    distinct = list(dict.fromkeys(names))
    things = [name.partition(", ")[0] if len(distinct) > len(_HUES) else name for name in distinct]
    palette = [shaded(LIGHT.hues[hue], shade) for shade in (0, _LIGHTER) for hue in _HUES]
    own = dict(zip(dict.fromkeys(things), cycle(palette), strict=False))
    return {
        name: SeriesStyle(
            LIGHT.hues[open_workload(name).look.hue] if name in WORKLOADS else own[thing], shape
        )
        for name, thing, shape in zip(distinct, things, cycle(_SHAPES), strict=False)
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
    legend = {"title": title.split("\n"), "orient": "right", "columns": 1}
    legend |= {"symbolLimit": 0, "symbolOpacity": 1}
    return {
        name: {
            "field": "series",
            "type": "nominal",
            "scale": {"domain": list(looks), "range": list(look)},
            "legend": legend if any(looks) else None,
        }
        for name, look in zip(("colors", "shapes"), zip(*looks.values(), strict=True), strict=True)
    }
