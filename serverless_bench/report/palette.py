"""Colours of all charts as CSS variables, with different values in dark mode."""

from collections.abc import Mapping
from typing import Final

from serverless_bench.base.palette import DARK, HUES, LIGHT
from serverless_bench.job.workload import workload_of

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
