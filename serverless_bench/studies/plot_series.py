"""Colours and marks of series, the same in all panels of an experiment's picture."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

from serverless_bench.palette import LIGHT
from serverless_bench.reporters.plots.style import TEXT_SIZE, color_of_workload

_HUES: Final = ("blue", "orange", "green", "pink", "sky", "purple", "brown", "grey")
_MARKERS: Final = "osD^vXP*<"
"""One more than there are colours, so that no two of 72 series are drawn alike."""


@dataclass(frozen=True, slots=True)
class SeriesStyle:
    """Colour and mark of a series, the same in all panels."""

    color: str
    marker: str


def looks_of(names: Iterable[str]) -> dict[str, SeriesStyle]:
    """Return how each series looks: a workload as everywhere, others in the palette's order."""
    return {
        name: SeriesStyle(
            color_of_workload(name) or LIGHT.hues[_HUES[number % len(_HUES)]],
            _MARKERS[number % len(_MARKERS)],
        )
        for number, name in enumerate(dict.fromkeys(names))
    }


def draw_legend(drawn: Figure, each: Sequence[Axes], *, title: str) -> None:
    """Name each colour once, beside the panels, where it covers nothing."""
    shown: dict[str, Any] = {}
    for axes in each:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            shown.setdefault(label, handle[0] if isinstance(handle, ErrorbarContainer) else handle)
    if any(shown):
        drawn.legend(
            shown.values(),
            shown.keys(),
            title=title,
            loc="outside right upper",
            frameon=False,
            fontsize=TEXT_SIZE,
            title_fontsize=TEXT_SIZE,
            labelcolor=LIGHT.ink,
        )
