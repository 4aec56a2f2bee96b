"""Results that ``print`` shows as the command does, and notebooks as tables."""

from collections.abc import Callable
from typing import Any


class Printed:
    """Base of results whose ``str`` is text of several lines, which notebooks keep as it is."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        from html import escape  # noqa: PLC0415 - only notebooks need it

        return f"<pre>{escape(str(self))}</pre>"

    def _repr_pretty_(self, pretty: Any, cycle: bool) -> None:  # noqa: ANN401, ARG002, FBT001 - IPython's
        pretty.text(str(self))


class Displayed(Printed):
    """Base of results that reporters know how to show; the analysis itself formats nothing."""

    __slots__ = ()

    def __str__(self) -> str:
        return repr(self) if _render is None else _render(self, "text").rstrip("\n")

    def _repr_html_(self) -> str:
        return super()._repr_html_() if _render is None else _render(self, "html")


_render: Callable[[Any, str], str] | None = None


def register(render: Callable[[Any, str], str]) -> None:
    """Show results by ``render`` from now on.

    Parameters
    ----------
    render
        Takes a result and ``text`` or ``html``, and returns it in that format.
    """
    global _render  # noqa: PLW0603
    _render = render
