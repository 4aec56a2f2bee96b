"""What several simulations of one job say together: between which values another run lies.

Where many requests are refused, a run ends when the longest wait that somebody drew is over: one
simulation is one draw, as one run is.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from serverless_bench.analysis.summary import Summary
from serverless_bench.units import format_rate, format_seconds

_FIGURES: Final[Mapping[str, Callable[[Summary], float | None]]] = {
    "whole_bytes_per_s": lambda one: one.whole_bytes_per_s,
    "peak_1s_bytes_per_s": lambda one: one.peak_1s_bytes_per_s,
    "t50_s": lambda one: one.done_s["t50"],
    "t99_s": lambda one: one.done_s["t99"],
    "span_s": lambda one: one.span_s,
    "throttled": lambda one: one.attempt_stats.throttled,
}
_FORMATS: Final[Mapping[str, Callable[[float], str]]] = {
    "whole_bytes_per_s": format_rate,
    "peak_1s_bytes_per_s": format_rate,
    "throttled": "{:.0f}".format,
}
"""Of the others: seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A figure of several runs."""

    name: str
    low: float
    median: float
    high: float

    def cells(self) -> tuple[str, str, str]:
        """Return lowest, median and highest as a reader sees them."""
        shown = _FORMATS.get(self.name, format_seconds)
        return shown(self.low), shown(self.median), shown(self.high)


def spreads(summaries: Sequence[Summary]) -> list[Spread]:
    """Return the figures that all runs have."""
    found = []
    for name, of in _FIGURES.items():
        values = [value for value in map(of, summaries) if value is not None]
        if len(values) == len(summaries):
            middle = statistics.median(values)
            found.append(Spread(name=name, low=min(values), median=middle, high=max(values)))
    return found


def chance_between(runs: int) -> float:
    """Return how likely another run of the same kind lies between the lowest and the highest."""
    return (runs - 1) / (runs + 1)
