"""The live view of a run, on a terminal or in a notebook."""

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live

from serverless_bench.driver.live_text import view_lines
from serverless_bench.driver.run_view import RunView


class LiveScreen:
    """Draws how a run stands each time that it is asked to."""

    def __init__(self, view: RunView) -> None:
        self._view = view

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield view_lines(
            self._view.look(), options.max_width, unicode=options.encoding.startswith("utf")
        )


def live_screen(
    view: RunView, console: Console | None = None, *, refresh_per_second: float
) -> Live:
    """Return the view, which stands as long as it is entered."""
    return Live(
        LiveScreen(view),
        console=console or Console(stderr=True),
        refresh_per_second=refresh_per_second,
        transient=True,
        vertical_overflow="crop",
    )
