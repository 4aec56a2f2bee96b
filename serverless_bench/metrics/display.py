"""Results that ``print`` shows like the command line, and notebooks as tables."""

from collections.abc import Callable, Sequence
from typing import Any


class Printed:
    """Base of results whose ``str`` is multi-line text, which notebooks show unchanged."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        # IPython prefers the ``__repr__`` of a class to the method of its base.
        cls._repr_pretty_ = Printed._repr_pretty_  # type: ignore[method-assign]

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"

    def _repr_pretty_(self, pretty: Any, cycle: bool) -> None:  # noqa: ARG002, FBT001 - IPython's
        pretty.text(str(self))


class Displayed(Printed):
    """Base of results that reporters can format; the analysis itself formats nothing."""

    __slots__ = ()

    def __str__(self) -> str:
        return repr(self) if _render is None else _render(self, "text").rstrip("\n")

    def _repr_html_(self) -> str:
        return super()._repr_html_() if _render is None else _render(self, "html")


class Lined(Displayed):
    """Base of results that are the same lines in every format."""

    __slots__ = ()

    def lines(self, style: str) -> Sequence[str]:
        """Return the lines; ``style`` is text or markdown."""
        raise NotImplementedError


_render: Callable[[Any, str], str] | None = None


def register(render: Callable[[Any, str], str]) -> None:
    """Show results with ``render`` from this time.

    Parameters
    ----------
    render
        Function that returns a result in a format, ``text`` or ``html``.
    """
    global _render  # noqa: PLW0603
    _render = render
