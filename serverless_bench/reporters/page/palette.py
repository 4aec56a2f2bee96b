"""Colours that tell things apart on paper, on a dark screen, and to colour-blind eyes.

The hues are Okabe and Ito's (Color Universal Design, 2008); each has a shade for a light and one
for a dark background, with a contrast of 3:1 or more against it (WCAG 2.2, 1.4.11). Writes are
green and reads blue, as in all pictures.
"""

from collections.abc import Mapping
from typing import Final

BACKGROUND: Final = ("#ffffff", "#14171c")
"""Light and dark."""
TEXT: Final[Mapping[str, tuple[str, str]]] = {
    "text": ("#1b1f24", "#e6e9ed"),
    "soft": ("#57606a", "#a3adb8"),
    "link": ("#0059a8", "#7cc0f5"),
    "good": ("#00694e", "#3ccb9e"),
    "bad": ("#a83a00", "#ff9a5c"),
}
SERIES: Final[Mapping[str, tuple[str, str]]] = {
    "green": ("#00875f", "#2fbf95"),
    "blue": ("#0072b2", "#56b4e9"),
    "orange": ("#b87400", "#e69f00"),
    "vermillion": ("#d55e00", "#f28a4b"),
    "purple": ("#a94f86", "#dd8fbd"),
    "yellow": ("#8a7a00", "#f0e442"),
    "gray": ("#6a737d", "#9aa4af"),
}
_OTHERS: Final = ("vermillion", "purple", "orange", "blue", "green", "yellow", "gray")
_OF_WORKLOAD: Final = {"write": "green", "read": "blue"}
_OF_KIND: Final = {
    "put": "green",
    "write_array": "green",
    "append_array": "yellow",
    "get": "blue",
    "read_array": "blue",
    "get_range": "purple",
    "head": "orange",
    "list": "gray",
    "delete": "vermillion",
    "copy": "yellow",
}
OF_CAUSE: Final = {
    "store": "blue",
    "client": "orange",
    "function_network": "purple",
    "interpreter_lock": "vermillion",
    "launch": "yellow",
    "schedule": "green",
    "unknown": "gray",
}


def workload_color(workload: str) -> str:
    """Return the colour of a workload, for a chart."""
    return color(_OF_WORKLOAD.get(workload, "purple"))


def kind_color(kind: str) -> str:
    """Return the colour of a kind of operation, for a chart."""
    return color(_OF_KIND.get(kind, "orange"))


def nth_color(number: int) -> str:
    """Return the colour of one of several things that have none of their own."""
    return color(_OTHERS[number % len(_OTHERS)])


def color(name: str) -> str:
    """Return a colour by its name as the page's style knows it: another one on a dark screen."""
    return f"var(--{name})"


def variables() -> str:
    """Return the declarations of all colours for the page's style."""
    named = {"background": BACKGROUND, **TEXT, **SERIES}
    return "".join(f"--{name}:light-dark({light},{dark});" for name, (light, dark) in named.items())
