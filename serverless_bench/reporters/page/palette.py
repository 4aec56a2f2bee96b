"""The colours of all pictures, as variables of a page's style: each is another one in the dark."""

from collections.abc import Mapping
from typing import Final

from serverless_bench.job.workload import workload_of
from serverless_bench.palette import DARK, HUES, LIGHT

TEXT: Final[Mapping[str, tuple[str, str]]] = {
    "text": (LIGHT.ink, DARK.ink),
    "soft": (LIGHT.muted, DARK.muted),
    "link": (LIGHT.hues["blue"], DARK.hues["sky"]),
    "good": (LIGHT.hues["green"], DARK.hues["green"]),
    # The red of pictures has too little contrast for words.
    "bad": ("#b3261e", DARK.failed),
}
_GROUNDS: Final = {
    "background": (LIGHT.surface, DARK.surface),
    "line": (LIGHT.grid, DARK.grid),
    "tint": ("#f5f6f8", "#1e2127"),
}
_NAMED: Final = {
    **_GROUNDS,
    **TEXT,
    "failed": (LIGHT.failed, DARK.failed),
    **{name: (light, DARK.hues[name]) for name, light in LIGHT.hues.items()},
}
_ERRORS: Final = ("failed", "orange", "purple", "sky", "brown", "grey")
OF_CAUSE: Final = {
    "answers": "blue",
    "store_or_network": "sky",
    "client": "orange",
    "own_code": "orange",
    "function_network": "purple",
    "rate_limit": "purple",
    "retries": "failed",
    "interpreter_lock": "pink",
    "launch": "brown",
    "schedule": "green",
    "unknown": "grey",
}


def color_of(name: str) -> str:
    """Return the colour of a workload or of a kind of operation, for a chart."""
    return color(HUES.get(name) or workload_of(name).hue)


def nth_error(number: int) -> str:
    """Return the colour of one of several kinds of errors; the first is the red of failures."""
    return color(_ERRORS[number % len(_ERRORS)])


def color(name: str) -> str:
    """Return a colour by its name as the page's style knows it."""
    return f"var(--{name})"


def variables() -> str:
    """Return the declarations of all colours for the page's style."""
    return "".join(
        f"--{name}:light-dark({light},{dark});" for name, (light, dark) in _NAMED.items()
    )


def on_light(spec: str) -> str:
    """Return the JSON of a chart with its colours as they are on a light ground."""
    for name, (light, _) in _NAMED.items():
        spec = spec.replace(f'"{color(name)}"', f'"{light}"')
    return spec.replace('"currentColor"', f'"{LIGHT.ink}"')
