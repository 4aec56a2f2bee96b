"""What tells runs apart in a picture: names, colours, and legends that cover nothing."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb

from serverless_bench.escaping import for_picture
from serverless_bench.rundir.run import Run

_COLORS: Final = {
    "write": "tab:green",
    "read": "tab:blue",
    "mixed": "tab:purple",
    "contend": "tab:red",
    "array": "tab:olive",
    "call": "tab:brown",
}
_OTHER: Final = "tab:orange"
_SHADES: Final = (0.0, -0.45, 0.5, -0.7, 0.75)
"""Towards black below 0, towards white above, for the runs of one workload."""


@dataclass(frozen=True, slots=True)
class Style:
    """How a run is called and coloured."""

    label: str
    color: str


def style_of(run: Run) -> Style:
    """Return the style of a run that is drawn alone."""
    mark = "" if run.simulated is None else "simulated "
    return Style(f"{mark}{for_picture(run.job.workload)}", _COLORS.get(run.job.workload, _OTHER))


def styles_of(runs: Sequence[Run]) -> list[Style]:
    """Return a style for each run: those of one workload have their directories' names."""
    alike = Counter(run.job.workload for run in runs)
    names, seen = _short_names(runs), Counter[str]()
    found = []
    for run, name in zip(runs, names, strict=True):
        style = style_of(run)
        workload = run.job.workload
        if alike[workload] > 1:
            shade = _SHADES[seen[workload] % len(_SHADES)]
            seen[workload] += 1
            style = Style(f"{style.label} {for_picture(name)}", _shaded(style.color, shade))
        found.append(style)
    return found


def color_of_phase(name: str) -> str | None:
    """Return the colour of a workload wherever it is drawn; None if the name is of none."""
    return _COLORS.get(name)


def legend_beside(axes: Axes) -> None:
    """Put a legend to the right of the axes: whatever they show is not covered."""
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def _short_names(runs: Sequence[Run]) -> list[str]:
    """Return the ends of the runs' paths, as long as they must be to differ."""
    parts = [run.path.absolute().parts for run in runs]
    for length in range(1, max(map(len, parts), default=1) + 1):
        names = ["/".join(one[-length:]) for one in parts]
        if len(set(names)) == len(names):
            break
    return names if runs else []


def _shaded(color: str, shade: float) -> str:
    towards = 1.0 if shade > 0 else 0.0
    red, green, blue = (part + (towards - part) * abs(shade) for part in to_rgb(color))
    return to_hex((red, green, blue))
