"""The live view in a notebook: an output of the cell that is replaced while the run goes on."""

import io
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from rich.color import Color
from rich.console import Console
from rich.terminal_theme import TerminalTheme

from serverless_bench.driver.live.repeated import repeated
from serverless_bench.driver.live.screen import view_lines
from serverless_bench.driver.live.view import Look, RunView
from serverless_bench.palette import LIGHT

_WIDTH: Final = 100
_HTML: Final = '<pre style="line-height: 1.3; overflow-x: auto">{code}</pre>'
_RED, _GREEN = 1, 2


@contextmanager
def live_notebook(view: RunView, *, seconds: float) -> Iterator[None]:
    """Show the view below the cell, anew every so many seconds, as long as the block lasts."""
    handle = None
    # Whoever cannot show it (a kernel on its way out, or one of another make) runs the job.
    with suppress(Exception):
        handle = _display(html_of(view.look()))

    def draw(html: str) -> None:
        with suppress(Exception):
            handle.update(_html(html))  # type: ignore[union-attr]

    if handle is None:
        yield
        return
    try:
        with repeated(lambda: draw(html_of(view.look())), seconds, name="progress"):
            yield
    finally:
        draw("")


def html_of(look: Look) -> str:
    """Return the live view as HTML, whose colours are told apart on light and on dark."""
    console = Console(
        record=True,
        file=io.StringIO(),
        width=_WIDTH,
        force_jupyter=False,
        force_terminal=True,
        color_system="standard",
    )
    console.print(view_lines(look, _WIDTH))
    return console.export_html(theme=_theme(), code_format=_HTML, inline_styles=True)


def _theme() -> TerminalTheme:
    ink = _rgb(LIGHT.ink)
    colours = [ink] * 8
    colours[_RED], colours[_GREEN] = _rgb(LIGHT.failed), _rgb(LIGHT.hues["green"])
    return TerminalTheme(_rgb(LIGHT.surface), ink, colours)


def _rgb(colour: str) -> tuple[int, int, int]:
    red, green, blue = Color.parse(colour).get_truecolor()
    return red, green, blue


def _display(html: str) -> Any:  # noqa: ANN401 - IPython's own
    from IPython.display import display  # noqa: PLC0415 - where there is a kernel there is IPython

    return display(_html(html), display_id=True)  # type: ignore[no-untyped-call]


def _html(html: str) -> Any:  # noqa: ANN401
    from IPython.display import HTML  # noqa: PLC0415

    return HTML(html)  # type: ignore[no-untyped-call]
