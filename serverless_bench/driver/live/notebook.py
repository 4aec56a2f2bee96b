"""The live view in a notebook: an output of the cell that is replaced while the run goes on."""

import io
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from rich.color import Color
from rich.console import Console
from rich.terminal_theme import TerminalTheme

from serverless_bench.clock import repeated
from serverless_bench.driver.live.screen import view_lines
from serverless_bench.driver.live.view import Look, RunView
from serverless_bench.palette import LIGHT

_WIDTH: Final = 100
_HTML: Final = '<pre style="line-height: 1.3; overflow-x: auto">{code}</pre>'


@contextmanager
def live_notebook(view: RunView, *, seconds: float) -> Iterator[None]:
    """Show the view below the cell, anew every so many seconds, as long as the block lasts."""
    handle = None
    # Whoever cannot show it (a kernel on its way out, or one of another make) runs the job.
    with suppress(Exception):
        # Where there is a kernel there is IPython.
        from IPython.display import HTML, display  # noqa: PLC0415

        handle = display(HTML(html_of(view.look())), display_id=True)  # type: ignore[no-untyped-call]

    def draw(html: str) -> None:
        with suppress(Exception):
            handle.update(HTML(html))  # type: ignore[union-attr,no-untyped-call]

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
    names = (LIGHT.surface, LIGHT.ink, LIGHT.failed, LIGHT.hues["green"])
    surface, ink, red, green = (Color.parse(name).get_truecolor() for name in names)
    # The eight colours of a terminal begin with black, red and green.
    return TerminalTheme(surface, ink, [ink, red, green, *[ink] * 5])
