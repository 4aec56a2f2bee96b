"""Colours of all drawings of sbench, on a light and on a dark background.

They are distinguishable with each of the three types of colour blindness, have a contrast of at
least 3 to 1 with the background, and those of a picture differ in a grey print, or also have
different markers. ``tests/test_palette.py`` checks that.
In charts they are CSS variables, with different values in dark mode.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from serverless_bench.job.workload import workload_of

HUES: Final[Mapping[str, str]] = {
    # Writes are green, reads are blue.
    "put": "green",
    "get": "blue",
    "get_range": "sky",
    "head": "grey",
    "list": "orange",
    "list_all": "orange",
    "delete": "pink",
    "delete_many": "brown",
    "copy": "purple",
    "write_array": "green",
    "append_array": "orange",
    "read_array": "blue",
    "call": "pink",
    "increment": "green",
    "claim": "orange",
    "append": "purple",
    "observe": "blue",
    "scan": "sky",
    "wait": "grey",
}
"""Hue of each kind of operation, in all pictures; a workload declares a hue separately."""


@dataclass(frozen=True, slots=True)
class Palette:
    """The colours on one background, each as #rrggbb."""

    surface: str
    """The background."""
    ink: str
    """Text, and lines for all kinds together."""
    muted: str
    """Secondary text: ticks, axes, notes."""
    grid: str
    failed: str
    """Failed, throttled or lost; no other colour is red."""
    hues: Mapping[str, str]
    """Colours by the names in ``HUES``."""


LIGHT: Final = Palette(
    surface="#ffffff",
    ink="#1a1c1f",
    muted="#5c6066",
    grid="#dfe2e6",
    failed="#d53e39",
    hues={
        "green": "#1a8562",
        "blue": "#064d9c",
        "sky": "#209fb6",
        "orange": "#c98700",
        "purple": "#8757e4",
        "pink": "#8b0074",
        "brown": "#634303",
        "grey": "#373839",
    },
)
DARK: Final = Palette(
    surface="#16181d",
    ink="#eceef1",
    muted="#a3a8b0",
    grid="#33373e",
    failed="#ee6567",
    hues={
        "green": "#27f99c",
        "blue": "#1f7cf1",
        "sky": "#62c8df",
        "orange": "#e4a349",
        "purple": "#ae90f8",
        "pink": "#c66fb0",
        "brown": "#8b7214",
        "grey": "#dee5f2",
    },
)

TEXT: Final[Mapping[str, tuple[str, str]]] = {
    "text": (LIGHT.ink, DARK.ink),
    "soft": (LIGHT.muted, DARK.muted),
    "link": (LIGHT.hues["blue"], DARK.hues["sky"]),
    "good": (LIGHT.hues["green"], DARK.hues["green"]),
    # The red of charts has too little contrast for text.
    "bad": ("#b3261e", DARK.failed),
}
_GROUNDS: Final = {
    "background": (LIGHT.surface, DARK.surface),
    "line": (LIGHT.grid, DARK.grid),
    "tint": ("#f5f6f8", "#1e2127"),
}
NAMED: Final = {
    **_GROUNDS,
    **TEXT,
    "failed": (LIGHT.failed, DARK.failed),
    **{name: (light, DARK.hues[name]) for name, light in LIGHT.hues.items()},
}
_ERRORS: Final = ("failed", "orange", "purple", "sky", "brown", "grey")


def color_of(name: str) -> str:
    """Return the colour of a workload or an operation kind in charts."""
    return color(HUES.get(name) or workload_of(name).look.hue)


def nth_error(number: int) -> str:
    """Return the colour of the error kind with this index; the first is the red of failures."""
    return color(_ERRORS[number % len(_ERRORS)])


def color(name: str) -> str:
    """Return the CSS variable of a colour."""
    return f"var(--{name})"


def on_light(spec: str) -> str:
    """Return the JSON of a chart with its colours as they are on a light ground."""
    for name, (light, _) in NAMED.items():
        spec = spec.replace(f'"{color(name)}"', f'"{light}"')
    return spec.replace('"currentColor"', f'"{LIGHT.ink}"')


def shaded(color: str, shade: float) -> str:
    """Return a colour of the form #rrggbb, mixed with black (below 0) or white."""
    towards = 255 if shade > 0 else 0
    parts = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(part + (towards - part) * abs(shade)):02x}" for part in parts)
