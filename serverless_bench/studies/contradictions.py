"""Published figures that cannot all be true: found in the rows themselves. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import singledispatchmethod
from itertools import combinations, pairwise
from operator import itemgetter
from statistics import median
from typing import Final

from serverless_bench.errors import UsageError
from serverless_bench.studies.definition import (
    UNITS,
    Amount,
    Check,
    Experiment,
    Failures,
    Grows,
    Link,
    Order,
    PublishedRow,
    Repeats,
    Value,
    kind_of,
)
from serverless_bench.units import parse_size

SHORTER: Final = 0.2
"""From this share on a time that falls is no noise."""
FAILED: Final = 0.01
"""Up to this share of failures a rate is little off."""
ROUNDING: Final = 0.02
"""Of figures that were printed, multiplied with each other."""
_TIMES: Final = frozenset({"s", "ms"})


_Finding = tuple[Sequence[PublishedRow], Sequence[str], str]
"""Rows, the metrics in doubt, and what is wrong with the last row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """What a check found."""

    check: Check
    rows: tuple[PublishedRow, ...]
    metrics: tuple[str, ...]
    """The figures in doubt."""
    text: str


def contradictions(experiment: Experiment) -> tuple[Contradiction, ...]:
    """Return all that the checks of an experiment find in its published rows, in their order."""
    return tuple(
        Contradiction(
            check=check,
            rows=tuple(rows),
            metrics=tuple(metrics),
            text=f"{rows[-1].label}: {text}",
        )
        for check in experiment.checks
        for rows, metrics, text in _Finder(experiment, check).found(check)
    )


def is_doubted(found: Sequence[Contradiction], row: PublishedRow | None, metric: str = "") -> bool:
    """Tell whether one of these is about a row's figure, or without a metric about any of it."""
    about = [one for one in found if any(row is each for each in one.rows)]
    return any(metric in one.metrics for one in about) if metric else bool(about)


class _Finder:
    """Holds the published rows of an experiment against one check."""

    def __init__(self, experiment: Experiment, check: Check) -> None:
        self._experiment = experiment
        self._rows = [
            row
            for row in experiment.published
            if all(str(row.at.get(name)) == str(value) for name, value in check.where.items())
        ]

    @singledispatchmethod
    def found(self, check: Check) -> Iterator[_Finding]:
        """Yield what a check finds."""
        raise NotImplementedError(kind_of(check))

    @found.register
    def _amounts(self, check: Amount) -> Iterator[_Finding]:
        unit = self._unit(check.metric) * self._unit(check.time)
        known = [
            (one, amount)
            for one in self._rows
            if (rate := _figure(one, check.metric))
            and (took := _figure(one, check.time))
            and (amount := rate * took * unit)
        ]
        same = median(amount for _, amount in known) if known and not check.amounts else 0.0
        for one, amount in known:
            expected = check.amounts.get(str(one.at.get(check.along)), same)
            if expected > 0 and abs(amount / expected - 1) > ROUNDING:
                true_rate = expected / amount * (_figure(one, check.metric) or 0.0)
                yield (
                    [one],
                    [check.metric],
                    (
                        f"{self._shown(one, check.metric)} for {self._shown(one, check.time)} is"
                        f" {amount:,.6g} in all, not {expected:,.6g}:"
                        f" that would be {true_rate:,.4g}"
                    ),
                )

    @found.register
    def _failures(self, check: Failures) -> Iterator[_Finding]:
        unit = self._unit(check.failed)
        for one in self._rows:
            rate, failed = _figure(one, check.metric), _figure(one, check.failed)
            if rate is not None and failed is not None and failed * unit > FAILED:
                left = rate * max(0.0, 1 - failed * unit)
                yield (
                    [one],
                    [check.metric],
                    (
                        f"{failed * unit:.1%} of {self._shown(one, check.metric)} failed:"
                        f" {left:,.4g} succeeded"
                    ),
                )

    @found.register
    def _grows(self, check: Grows) -> Iterator[_Finding]:
        for line in self._lines(check.along):
            points = [
                (size, value, row)
                for row in line
                if (size := _size(row.at.get(check.along))) is not None
                and (value := _figure(row, check.metric)) is not None
            ]
            longest: tuple[float, PublishedRow] | None = None
            for _, value, row in sorted(points, key=itemgetter(0)):
                if longest is not None and value < longest[0] * (1 - SHORTER):
                    yield (
                        [row],
                        [check.metric],
                        (
                            f"{self._shown(row, check.metric)}, and"
                            f" {self._shown(longest[1], check.metric)}"
                            f" with {check.along}={longest[1].at.get(check.along)}"
                        ),
                    )
                elif longest is None or value > longest[0]:
                    longest = value, row

    @found.register
    def _link(self, check: Link) -> Iterator[_Finding]:
        metric = self._experiment.metric(check.metric)
        unit, most = UNITS[metric.unit], check.most * UNITS[check.unit]
        for one in self._rows:
            value = _figure(one, check.metric)
            size = _size(one.at.get(check.along)) if check.along else float(check.bytes)
            rate = (value or 0.0) * unit
            if not rate or size is None:
                continue
            if metric.unit in _TIMES:
                rate = size / rate
            elif not metric.unit:
                rate *= size
            if rate > most > 0:
                yield (
                    [one],
                    [check.metric],
                    (
                        f"{self._shown(one, check.metric)} would be"
                        f" {rate / UNITS[check.unit]:,.4g} {check.unit} through a link of"
                        f" {check.most:,.6g} {check.unit}"
                    ),
                )

    @found.register
    def _order(self, check: Order) -> Iterator[_Finding]:
        for one in self._rows:
            known = [
                (name, value * self._unit(name))
                for name in check.metrics
                if (value := _figure(one, name)) is not None
            ]
            for (first, low), (second, high) in pairwise(known):
                if low > high:
                    yield (
                        [one],
                        [first, second],
                        (
                            f"{first} of {self._shown(one, first)} is above {second} of"
                            f" {self._shown(one, second)}"
                        ),
                    )

    @found.register
    def _repeats(self, check: Repeats) -> Iterator[_Finding]:
        if check.others:
            for one in self._rows:
                names = zip(check.metrics, check.others, strict=True)
                alike = [pair for pair in names if _alike(one, pair[0], one, pair[1])]
                if len(alike) == len(check.metrics):
                    shown = ", ".join(self._shown(one, name) for name, _ in alike)
                    both = [name for pair in alike for name in pair]
                    yield ([one], both, f"{shown}: all as {', '.join(check.others)}")
            return
        for line in self._lines(check.along):
            for first, second in combinations(line, 2):
                if all(_alike(first, name, second, name) for name in check.metrics):
                    shown = ", ".join(self._shown(second, name) for name in check.metrics)
                    other = first.at.get(check.along)
                    yield (
                        [first, second],
                        check.metrics,
                        f"{shown}: all as with {check.along}={other}",
                    )

    def _lines(self, along: str) -> list[list[PublishedRow]]:
        """Return the rows by everything but an axis."""
        lines: dict[tuple[tuple[str, str], ...], list[PublishedRow]] = {}
        for row in self._rows:
            rest = sorted((n, str(v)) for n, v in row.at.items() if n != along)
            lines.setdefault(tuple(rest), []).append(row)
        return list(lines.values())

    def _unit(self, metric: str) -> float:
        return UNITS[self._experiment.metric(metric).unit]

    def _shown(self, one: PublishedRow, metric: str) -> str:
        """Return a figure with its unit, or with what its column is called."""
        about = self._experiment.metric(metric)
        return f"{_figure(one, metric) or 0.0:,.10g} {about.unit or about.header}"


def _figure(one: PublishedRow, metric: str) -> float | None:
    found = one.range(metric)
    return None if found is None else found[0]


def _alike(one: PublishedRow, metric: str, other: PublishedRow, its: str) -> bool:
    value = _figure(one, metric)
    return value is not None and value == _figure(other, its)


def _size(value: Value | None) -> float | None:
    """Return a number, or how many bytes a text names; None of anything else."""
    if value is None:
        return None
    try:
        return float(parse_size(value) if isinstance(value, str) else value)
    except (OverflowError, UsageError):
        return None
