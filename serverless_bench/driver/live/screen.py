"""The live view of a run, as lines, and on a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.live import Live
from rich.text import Text

from serverless_bench.driver.live.text import (
    REMOTE,
    duration_text,
    errors_text,
    functions_text,
    has_bound,
    name_text,
    rate_text,
    sparkline,
)
from serverless_bench.driver.live.view import WINDOW_NS, Look, RunView
from serverless_bench.process import paused_by_prompts
from serverless_bench.units import NS_PER_S, format_per_s

_BARS: Final = "▁▂▃▄▅▆▇█"
_PLAIN_BARS: Final = "_.-=+*#@"
"""For terminals that have ASCII alone."""
_LABEL: Final = 11
_BAR_WIDTH: Final = 20
_MANY_S: Final = 120
"""From here on minutes are told, not seconds."""


@contextmanager
def live_screen(
    view: RunView, console: Console | None = None, *, refresh_per_second: float
) -> Iterator[Live]:
    """Draw the view again and again while the block lasts, but for when the user is asked."""
    console = console or Console(stderr=True)
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


def view_lines(look: Look, width: int, *, unicode: bool = True) -> Text:
    """Return the live view.

    Parameters
    ----------
    look
        At the run.
    width
        Of the terminal, in characters; lines are cut there.
    unicode
        Whether the terminal has more than ASCII.
    """
    bars = _BARS if unicode else _PLAIN_BARS
    lines = [_headline(look, unicode=unicode), *_lines(look, max(8, width - _LABEL - 22), bars)]
    for line in lines:
        line.truncate(width, overflow="ellipsis" if unicode else "crop")
    return Text("\n").join(lines)


def _headline(look: Look, *, unicode: bool) -> Text:
    full = round(look.share * _BAR_WIDTH)
    done, left = ("━", "─") if unicode else ("#", "-")
    took_s = int(look.elapsed_s)
    line = Text(f"{look.phase:<{_LABEL}}", style="bold")
    line.append(done * full, style="green")
    line.append(left * (_BAR_WIDTH - full), style="dim")
    line.append(f" {took_s // 3600}:{took_s // 60 % 60:02}:{took_s % 60:02}", style="not bold")
    if look.left_s is not None:
        left_s = max(1, round(look.left_s))
        left = f"{look.left_s / 60:.0f} min" if look.left_s > _MANY_S else f"{left_s} s"
        line.append(f", {left} left", style="not bold")
    return line


def _lines(look: Look, width: int, bars: str) -> Iterator[Text]:
    yield _line(
        "functions", functions_text(look), bad=look.functions["failed"] + look.functions["lost"]
    )
    for one in look.rates:
        so_far = "" if one.per_s is None else f" {one.operations:,} so far"
        yield _line(name_text(one.kind), f"{rate_text(one):<26}{so_far}".rstrip())
    if look.asked_per_s is not None and look.achieved_per_s is not None:
        asked = format_per_s(look.asked_per_s)
        yield _line("rate", f"{format_per_s(look.achieved_per_s)} of {asked} asked for")
    if look.p50_ns is not None and look.p99_ns is not None:
        window = f"(last {WINDOW_NS // NS_PER_S} s)" if look.told else "(of those that ended)"
        times = f"p50 {duration_text(look.p50_ns)}  p99 {duration_text(look.p99_ns)}"
        yield _line("latency", f"{times:<26} {window}")
    if errors := errors_text(look):
        yield _line("errors", errors, bad=1)
    shown = sparkline(look.timeline, width, bars)
    if shown is not None:
        yield _line("so far", shown)
    if look.cost is not None:
        yield _line("cost", look.cost.text)
    if look.told or has_bound(look):
        yield _line("bound by", look.bound)
    if not look.told and look.functions["running"]:
        yield _line("", REMOTE)


def _line(label: str, text: str, *, bad: int = 0) -> Text:
    line = Text(f"{label:<{_LABEL}}", style="dim")
    return line.append(text, style="not dim red" if bad else "not dim")
