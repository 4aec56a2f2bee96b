"""A look at a run as text: the lines of the live view, and the line of a log."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from rich.text import Text

from serverless_bench.aws.cost.usage import format_money
from serverless_bench.driver.run_view import WINDOW_NS, Look, Rate
from serverless_bench.units import (
    NS_PER_S,
    bytes_per_second,
    format_per_s,
    format_rate,
    format_seconds,
)
from serverless_bench.worker.live_layout import WARM_UP

_BARS: Final = "▁▂▃▄▅▆▇█"
_PLAIN_BARS: Final = "_.-=+*#@"
"""For terminals that have ASCII alone."""
_LABEL: Final = 11
_BAR_WIDTH: Final = 20
_MANY_S: Final = 120
"""From here on minutes are told, not seconds."""
_NAMES: Final = {WARM_UP: "preparing"}


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


def log_line(look: Look) -> str:
    """Return the same in a line for a log."""
    parts = [f"{look.elapsed_s:.0f} s: {look.phase}, {_functions(look)}"]
    parts += [f"{_name(one.kind)} {_rate(one)}" for one in look.rates]
    if look.p50_ns is not None and look.p99_ns is not None:
        parts.append(f"p50 {_duration(look.p50_ns)}, p99 {_duration(look.p99_ns)}")
    if errors := _errors(look):
        parts.append(f"errors {errors}")
    if look.cost is not None:
        parts.append(format_money(look.cost, look.currency))
    if look.told and look.functions["running"]:
        parts.append(f"bound by: {look.bound}")
    return "; ".join(parts)


def _headline(look: Look, *, unicode: bool) -> Text:
    full = round(look.share * _BAR_WIDTH)
    done, left = ("━", "─") if unicode else ("#", "-")
    took_s = int(look.elapsed_s)
    line = Text(f"{look.phase:<{_LABEL}}", style="bold")
    line.append(done * full, style="green")
    line.append(left * (_BAR_WIDTH - full), style="dim")
    line.append(f" {took_s // 3600}:{took_s // 60 % 60:02}:{took_s % 60:02}", style="not bold")
    if look.left_s is not None:
        line.append(f", {_roughly(look.left_s)} left", style="not bold")
    return line


def _lines(look: Look, width: int, bars: str) -> Iterator[Text]:
    yield _line(
        "functions", _functions(look), bad=look.functions["failed"] + look.functions["lost"]
    )
    for one in look.rates:
        text = f"{_rate(one):<26} {one.operations:,} so far"
        yield _line(_name(one.kind), text)
    if look.asked_per_s is not None:
        asked = format_per_s(look.asked_per_s)
        yield _line("rate", f"{format_per_s(look.achieved_per_s)} of {asked} asked for")
    if look.p50_ns is not None and look.p99_ns is not None:
        window = f"(last {WINDOW_NS // NS_PER_S} s)"
        times = f"p50 {_duration(look.p50_ns)}  p99 {_duration(look.p99_ns)}"
        yield _line("latency", f"{times:<26} {window}")
    if errors := _errors(look):
        yield _line("errors", errors, bad=1)
    shown = sparkline(look.timeline, width, bars)
    if shown is not None:
        yield _line("so far", shown)
    if look.cost is not None:
        yield _line("cost", format_money(look.cost, look.currency))
    if look.told:
        yield _line("bound by", look.bound)
    elif look.functions["running"]:
        yield _line("", "remote functions tell what they did when they end")


def _line(label: str, text: str, *, bad: int = 0) -> Text:
    line = Text(f"{label:<{_LABEL}}", style="dim")
    return line.append(text, style="not dim red" if bad else "not dim")


def _name(kind: str) -> str:
    return _NAMES.get(kind, kind)


def _functions(look: Look) -> str:
    """Return functions by state; what nobody has to know is left out."""
    states = look.functions
    total = sum(states.values())
    there = [f"{count:,} {state}" for state, count in states.items() if count or state == "done"]
    return f"{', '.join(there)} of {total:,}"


def _errors(look: Look) -> str:
    found = {name: count for name, count in look.totals.failures.items() if count}
    if look.totals.retries:
        found["retries"] = look.totals.retries
    return ", ".join(f"{name} {count:,}" for name, count in found.items())


def _rate(one: Rate) -> str:
    moved = "" if one.bytes_per_s is None else f", {format_rate(one.bytes_per_s)}"
    return f"{format_per_s(one.per_s)}{moved}"


def _duration(ns: int) -> str:
    return format_seconds(ns / NS_PER_S)


def _roughly(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds > _MANY_S else f"{max(1, round(seconds))} s"


def sparkline(timeline: Sequence[tuple[int, int, int]], width: int, bars: str) -> str | None:
    """Return the rate since the beginning as bars, with the highest; None before there is one.

    Parameters
    ----------
    timeline
        As in ``Look``: bytes, or operations where no bytes move.
    width
        Most bars.
    bars
        Characters from the lowest to the highest.
    """
    if len(timeline) <= 1:
        return None
    end_ns, moved, operations = timeline[-1]
    column = 1 if moved else 2
    if not (moved or operations):
        return None
    count = min(width, len(timeline) - 1)
    edges = [end_ns * n // count for n in range(count + 1)]
    reached = _values_at(timeline, edges, column)
    rates = [
        bytes_per_second(after - before, later - sooner)
        for (before, after), (sooner, later) in zip(pairwise(reached), pairwise(edges), strict=True)
    ]
    top = max(rates)
    high = [
        bars[min(len(bars) - 1, int(rate / top * len(bars)))] if rate else " " for rate in rates
    ]
    most = format_rate(top) if column == 1 else format_per_s(top)
    return f"{''.join(high)} up to {most}"


def _values_at(
    timeline: Sequence[tuple[int, int, int]], instants: Sequence[int], column: int
) -> list[int]:
    """Return what was reached at ascending instants, on straight lines between the points."""
    found, point = [], 0
    for instant in instants:
        while point + 2 < len(timeline) and timeline[point + 1][0] < instant:
            point += 1
        begin, end = timeline[point], timeline[point + 1]
        share = (instant - begin[0]) / max(1, end[0] - begin[0])
        found.append(round(begin[column] + (end[column] - begin[column]) * min(1.0, share)))
    return found
