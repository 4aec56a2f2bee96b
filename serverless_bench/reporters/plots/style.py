"""How every picture looks: names, colours, sizes, units, and keys that cover nothing.

A panel has its title above its left edge, what its colours mean in a line below that, and then
the data. It works on anybody's Axes and changes no setting of Matplotlib.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb

from serverless_bench.escaping import for_picture
from serverless_bench.job.workload import WORKLOADS, open_workload
from serverless_bench.palette import LIGHT
from serverless_bench.rundir.run import Run

TITLE_SIZE: Final = 11
TEXT_SIZE: Final = 9
"""Points, of all words but titles: readable on a page that is 11 inches of picture wide."""
_KEY_LINE: Final = 15
"""Points that a title leaves for each line of a key below it."""
_LONGEST: Final = 20
"""Characters of a name."""
_SHADES: Final = (0.0, -0.45, 0.3, -0.7, 0.55)
"""Towards black below 0, towards white above, for the runs of one workload."""
UNITS: Final = {name: (by, name) for name, by in (("kB/s", 1e3), ("MB/s", 1e6), ("GB/s", 1e9))}
"""Of rates: bytes per second, and the name again."""
_MARKERS: Final = {
    "put": "o",
    "get": "s",
    "get_range": "D",
    "head": "^",
    "list": "v",
    "delete": "X",
    "delete_many": "P",
    "copy": "p",
    "write_array": "o",
    "append_array": "^",
    "read_array": "s",
    "call": "*",
    "increment": "o",
    "claim": "^",
    "append": "D",
    "observe": "s",
}


@dataclass(frozen=True, slots=True)
class Style:
    """How a run is called and coloured."""

    label: str
    color: str


def style_of(run: Run) -> Style:
    """Return the style of a run that is drawn alone."""
    mark = "" if run.simulated is None else "simulated "
    return Style(f"{mark}{for_picture(run.job.workload)}", LIGHT.hues[run.job.declared.hue])


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
            label = f"{style.label} {for_picture(shortened(name))}"
            style = Style(label, _shaded(style.color, shade))
        found.append(style)
    return found


def color_of_workload(name: str) -> str | None:
    """Return the colour of a workload wherever it is drawn; None if the name is of none."""
    return LIGHT.hues[open_workload(name).hue] if name in WORKLOADS else None


def marker_of(kind: str) -> str:
    """Return the mark of a kind of operation: kinds of one picture differ in a grey print, too."""
    return _MARKERS.get(kind, "o")


def shortened(name: str) -> str:
    """Return a name whose middle is left out if it is long: its ends are what differs."""
    half = _LONGEST // 2
    return name if len(name) <= _LONGEST else f"{name[:half]}\u2026{name[1 - half :]}"


def dress(axes: Axes, *, title: str, x: str, y: str) -> None:
    """Give a panel its title, the names of its axes, and the look of all panels.

    Parameters
    ----------
    axes
        Where to draw.
    title
        What it shows, and of whom.
    x, y
        What the axes show, with the unit.
    """
    axes.set_facecolor(LIGHT.surface)
    _set_title(axes, title, lines=0)
    axes.set_xlabel(x, fontsize=TEXT_SIZE, color=LIGHT.ink)
    axes.set_ylabel(y, fontsize=TEXT_SIZE, color=LIGHT.ink)
    axes.tick_params(which="both", labelsize=TEXT_SIZE, color=LIGHT.muted, labelcolor=LIGHT.muted)
    axes.grid(visible=True, color=LIGHT.grid, linewidth=0.8)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side in {"left", "bottom"})
        spine.set_color(LIGHT.muted)


def key_above(axes: Axes, *others: Axes, columns: int) -> None:
    """Say what the colours mean between the title and the panel, where nothing is covered.

    Parameters
    ----------
    axes
        The panel.
    others
        Further axes on the same place, which have a scale of their own.
    columns
        As many entries stand side by side.
    """
    entries = [one.get_legend_handles_labels() for one in (axes, *others)]
    # What two runs on these axes have in common is said once.
    named = {label: handle for found in entries for handle, label in zip(*found, strict=True)}
    lines = -(-len(named) // columns)
    if not lines:
        return
    axes.legend(
        named.values(),
        named.keys(),
        ncols=columns,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        borderaxespad=0.0,
        borderpad=0.3,
        columnspacing=1.5,
        handlelength=1.6,
        frameon=False,
        fontsize=TEXT_SIZE,
        labelcolor=LIGHT.ink,
    )
    _set_title(axes, axes.get_title(loc="left"), lines=lines)


def _set_title(axes: Axes, title: str, *, lines: int) -> None:
    """Write the title above so many lines of a key."""
    axes.set_title(
        title,
        loc="left",
        fontsize=TITLE_SIZE,
        fontweight="bold",
        color=LIGHT.ink,
        pad=5 + _KEY_LINE * lines,
    )


def unit_for(bytes_per_s: float) -> tuple[float, str]:
    """Return the unit for rates of up to so much: bytes per second, and its name."""
    name = "GB/s" if bytes_per_s >= 1e10 else "MB/s" if bytes_per_s >= 1e6 else "kB/s"
    return UNITS[name]


def _short_names(runs: Sequence[Run]) -> list[str]:
    """Return the ends of the runs' paths, as long as they must be to differ, also shortened."""
    parts = [run.path.absolute().parts for run in runs]
    for length in range(1, max(map(len, parts), default=1) + 1):
        names = ["/".join(one[-length:]) for one in parts]
        if len(set(names)) == len(names):
            break
    if len({*map(shortened, names)}) == len(names):
        return names
    return [f"{number} {name}" for number, name in enumerate(names, 1)]


def _shaded(color: str, shade: float) -> str:
    towards = 1.0 if shade > 0 else 0.0
    red, green, blue = (part + (towards - part) * abs(shade) for part in to_rgb(color))
    return to_hex((red, green, blue))
