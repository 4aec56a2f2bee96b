"""The live view of a run: as text lines, in a terminal, and below the cell of a notebook."""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, Literal

from rich.color import Color
from rich.console import Console
from rich.live import Live
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from serverless_bench.base.clock import repeated
from serverless_bench.base.escaping import is_colored
from serverless_bench.base.process import paused_by_prompts
from serverless_bench.base.units import NS_PER_S, format_per_s
from serverless_bench.features.live.text import (
    REMOTE,
    errors_text,
    functions_text,
    has_bound,
    rate_text,
    sparkline,
    total_rate,
)
from serverless_bench.features.live.view import WINDOW_NS, Look, RunView

_BARS: Final = "▁▂▃▄▅▆▇█"
_PLAIN_BARS: Final = "_.-=+*#@"
"""Characters for terminals that support only ASCII."""
_LABEL: Final = 11
_BAR_WIDTH: Final = 20
_MANY_S: Final = 120
"""Remaining time from which minutes are shown instead of seconds."""
_NOTEBOOK_WIDTH: Final = 100
_COLORS: Final = ("#ffffff", "#1a1c1f", "#d53e39", "#1a8562")
"""Background, text, failures and successes in a notebook: the light colours of pictures."""
_HTML: Final = '<pre style="line-height: 1.3; overflow-x: auto">{code}</pre>'


@contextmanager
def live_screen(
    view: RunView, console: Console | None = None, *, refresh_per_second: float
) -> Iterator[Live]:
    """Redraw the view while the block runs, except during prompts for the user."""
    # With NO_COLOR alone, rich still writes bold and dim text.
    colors: Literal["auto"] | None = "auto" if is_colored(sys.stderr) else None
    console = console or Console(stderr=True, color_system=colors)
    unicode = console.encoding.startswith("utf")
    live = Live(
        get_renderable=lambda: view_lines(view.look(), console.width, unicode=unicode),
        console=console,
        refresh_per_second=refresh_per_second,
        transient=True,
        vertical_overflow="crop",
    )

    @contextmanager
    def taken_away() -> Iterator[None]:
        live.stop()
        try:
            yield
        finally:
            live.start()

    with live, paused_by_prompts(taken_away):
        yield live


@contextmanager
def live_notebook(view: RunView, *, seconds: float) -> Iterator[None]:
    """Show the view below the cell and refresh it at an interval while the block runs."""
    handle = None
    # An error of the display (a kernel that shuts down or lacks a method) must not stop the job.
    with suppress(Exception):
        # A notebook kernel always has IPython.
        from IPython.display import HTML, display

        handle = display(HTML(_html_of(view.look())), display_id=True)

    def draw(html: str) -> None:
        with suppress(Exception):
            handle.update(HTML(html))  # type: ignore[union-attr]

    if handle is None:
        yield
        return
    try:
        with repeated(lambda: draw(_html_of(view.look())), seconds, name="progress"):
            yield
    finally:
        draw("")


def _html_of(look: Look) -> str:
    """Return the live view as HTML in colours that are readable on light and dark backgrounds."""
    console = Console(
        record=True,
        file=io.StringIO(),
        width=_NOTEBOOK_WIDTH,
        force_jupyter=False,
        force_terminal=True,
        color_system="standard",
    )
    console.print(view_lines(look, _NOTEBOOK_WIDTH))
    surface, ink, red, green = (Color.parse(name).get_truecolor() for name in _COLORS)
    # The eight colours of a terminal start with black, red and green.
    theme = TerminalTheme(surface, ink, [ink, red, green, *[ink] * 5])
    return console.export_html(theme=theme, code_format=_HTML, inline_styles=True)


def view_lines(look: Look, width: int, *, unicode: bool = True) -> Text:
    """Return the live view.

    Parameters
    ----------
    look
        Snapshot of the run.
    width
        Width of the terminal in characters; longer lines are truncated.
    unicode
        Whether the terminal supports more than ASCII.
    """
    lines = [
        _headline(look, unicode=unicode),
        *_lines(look, max(8, width - _LABEL - 22), unicode=unicode),
    ]
    if look.note:
        lines.append(_line("note", look.note))
    for line in lines:
        line.truncate(width, overflow="ellipsis" if unicode else "crop")
    return Text("\n").join(lines)


def _headline(look: Look, *, unicode: bool) -> Text:
    full = round(look.share * _BAR_WIDTH)
    done, remaining = ("━", "─") if unicode else ("#", "-")
    took_s = int(look.elapsed_s)
    line = Text(f"{look.phase:<{_LABEL}}", style="bold")
    line.append(done * full, style="green")
    line.append(remaining * (_BAR_WIDTH - full), style="dim")
    line.append(f" {took_s // 3600}:{took_s // 60 % 60:02}:{took_s % 60:02}", style="not bold")
    if look.left_s is not None:
        left_s = max(1, round(look.left_s))
        remaining = f"{look.left_s / 60:.0f} min" if look.left_s > _MANY_S else f"{left_s} s"
        line.append(f", {remaining} left", style="not bold")
    return line


def _lines(look: Look, width: int, *, unicode: bool) -> Iterator[Text]:
    yield _line(
        "functions", functions_text(look), bad=look.functions["failed"] + look.functions["lost"]
    )
    yield from _rate_lines(look, unicode=unicode)
    if look.asked_per_s is not None and look.achieved_per_s is not None:
        requested = format_per_s(look.asked_per_s)
        yield _line("rate", f"{format_per_s(look.achieved_per_s)} of {requested}")
    if look.latencies:
        window = (
            f"(last {WINDOW_NS // NS_PER_S} s)" if look.is_reporting else "(of those that ended)"
        )
        yield _line("latency", f"{'  '.join(look.latencies):<26} {window}")
    if errors := errors_text(look):
        yield _line("errors", errors, bad=1)
    bar_line = sparkline(look.timeline, width, _BARS if unicode else _PLAIN_BARS)
    if bar_line is not None:
        yield _line("history", bar_line)
    if look.cost is not None:
        yield _line("cost", look.cost.text)
    if look.is_reporting or has_bound(look):
        yield _line("bottleneck", look.bound)
    if not look.is_reporting and look.functions["running"]:
        yield _line("", REMOTE)


def _rate_lines(look: Look, *, unicode: bool) -> Iterator[Text]:
    for rate in (*look.rates, *total_rate(look.rates)):
        count = "" if rate.per_s is None else f" {rate.operations:,} so far"
        about = ("≈ " if unicode else "about ") if look.sampled else ""
        yield _line(rate.kind, f"{about + rate_text(rate):<26}{count}".rstrip())
    if look.sampled:
        yield _line("", look.sampled if unicode else look.sampled.replace("±", "+-"))


def _line(label: str, text: str, *, bad: int = 0) -> Text:
    line = Text(f"{label:<{_LABEL}}", style="dim")
    return line.append(text, style="not dim red" if bad else "not dim")
