"""Detection of published values that contradict each other. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import singledispatchmethod
from itertools import combinations, pairwise
from operator import itemgetter
from statistics import median
from typing import Final

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import parse_size
from serverless_bench.features.studies.definition import (
    UNITS,
    Amount,
    Check,
    Failures,
    Grows,
    Link,
    Order,
    PublishedRow,
    Repeats,
    Study,
    Value,
    kind_of,
)

SHORTER: Final = 0.2
"""Relative decrease of a time that is too large for noise."""
FAILED: Final = 0.01
"""Fraction of failures below which a rate is almost correct."""
ROUNDING: Final = 0.02
"""Relative rounding error of a product of printed figures."""


_Finding = tuple[Sequence[PublishedRow], Sequence[str], str]
"""Rows, the metrics in doubt, and the text about the last row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """Result of a check that failed."""

    check: Check
    rows: tuple[PublishedRow, ...]
    metrics: tuple[str, ...]
    """Metrics of the values in doubt."""
    text: str


def contradictions(study: Study) -> tuple[Contradiction, ...]:
    """Return all contradictions in a study's published rows, in the order of the checks."""
    return tuple(
        Contradiction(
            check=check,
            rows=tuple(rows),
            metrics=tuple(metrics),
            text=f"{rows[-1].label}: {text}",
        )
        for check in study.checks
        for rows, metrics, text in _Finder(study, check).found(check)
    )


def is_doubted(found: Sequence[Contradiction], row: PublishedRow | None, metric: str = "") -> bool:
    """Return whether a contradiction concerns a metric of a row; any metric if it is empty."""
    about_row = [
        contradiction
        for contradiction in found
        if any(row is doubted for doubted in contradiction.rows)
    ]
    return (
        any(metric in contradiction.metrics for contradiction in about_row)
        if metric
        else bool(about_row)
    )


class _Finder:
    """Comparison of a study's published rows with one check."""

    def __init__(self, study: Study, check: Check) -> None:
        self._study = study
        self._rows = [
            row
            for row in study.published
            if all(str(row.at.get(name)) == str(value) for name, value in check.where.items())
        ]

    @singledispatchmethod
    def found(self, check: Check) -> Iterator[_Finding]:
        """Yield the findings of a check."""
        raise NotImplementedError(kind_of(check))

    @found.register
    def _amounts(self, check: Amount) -> Iterator[_Finding]:
        unit = self._unit(check.metric) * self._unit(check.time)
        amounts = [
            (row, amount)
            for row in self._rows
            if (rate := _figure(row, check.metric))
            and (took := _figure(row, check.time))
            and (amount := rate * took * unit)
        ]
        same = median(amount for _, amount in amounts) if amounts and not check.amounts else 0.0
        for row, amount in amounts:
            expected = check.amounts.get(str(row.at.get(check.along)), same)
            if expected > 0 and abs(amount / expected - 1) > ROUNDING:
                true_rate = expected / amount * (_figure(row, check.metric) or 0.0)
                yield (
                    [row],
                    [check.metric],
                    (
                        f"{self._shown(row, check.metric)} for {self._shown(row, check.time)} is"
                        f" {amount:,.6g} in all, not {expected:,.6g}:"
                        f" that would be {true_rate:,.4g}"
                    ),
                )

    @found.register
    def _failures(self, check: Failures) -> Iterator[_Finding]:
        unit = self._unit(check.failed)
        for row in self._rows:
            rate, failed = _figure(row, check.metric), _figure(row, check.failed)
            if rate is not None and failed is not None and failed * unit > FAILED:
                succeeded = rate * max(0.0, 1 - failed * unit)
                yield (
                    [row],
                    [check.metric],
                    (
                        f"{failed * unit:.1%} of {self._shown(row, check.metric)} failed:"
                        f" {succeeded:,.4g} succeeded"
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
        metric = self._study.metric(check.metric)
        unit, most = UNITS[metric.unit], check.most * UNITS[check.unit]
        for row in self._rows:
            value = _figure(row, check.metric)
            size = _size(row.at.get(check.along)) if check.along else float(check.bytes)
            rate = (value or 0.0) * unit
            if not rate or size is None:
                continue
            if metric.unit in {"s", "ms"}:
                rate = size / rate
            elif not metric.unit:
                rate *= size
            if rate > most > 0:
                yield (
                    [row],
                    [check.metric],
                    (
                        f"{self._shown(row, check.metric)} would be"
                        f" {rate / UNITS[check.unit]:,.4g} {check.unit} through a link of"
                        f" {check.most:,.6g} {check.unit}"
                    ),
                )

    @found.register
    def _order(self, check: Order) -> Iterator[_Finding]:
        for row in self._rows:
            values = [
                (name, value * self._unit(name))
                for name in check.metrics
                if (value := _figure(row, name)) is not None
            ]
            for (first, low), (second, high) in pairwise(values):
                if low > high:
                    yield (
                        [row],
                        [first, second],
                        (
                            f"{first} of {self._shown(row, first)} is above {second} of"
                            f" {self._shown(row, second)}"
                        ),
                    )

    @found.register
    def _repeats(self, check: Repeats) -> Iterator[_Finding]:
        if check.others:
            for row in self._rows:
                names = zip(check.metrics, check.others, strict=True)
                alike = [pair for pair in names if _alike(row, pair[0], row, pair[1])]
                if len(alike) == len(check.metrics):
                    figures = ", ".join(self._shown(row, name) for name, _ in alike)
                    both = [name for pair in alike for name in pair]
                    yield ([row], both, f"{figures}: all as {', '.join(check.others)}")
            return
        for line in self._lines(check.along):
            for first, second in combinations(line, 2):
                if all(_alike(first, name, second, name) for name in check.metrics):
                    figures = ", ".join(self._shown(second, name) for name in check.metrics)
                    other = first.at.get(check.along)
                    yield (
                        [first, second],
                        check.metrics,
                        f"{figures}: all as with {check.along}={other}",
                    )

    def _lines(self, along: str) -> list[list[PublishedRow]]:
        """Return the rows grouped by everything except an axis."""
        lines: dict[tuple[tuple[str, str], ...], list[PublishedRow]] = {}
        for row in self._rows:
            rest = sorted((n, str(v)) for n, v in row.at.items() if n != along)
            lines.setdefault(tuple(rest), []).append(row)
        return list(lines.values())

    def _unit(self, metric: str) -> float:
        return UNITS[self._study.metric(metric).unit]

    def _shown(self, row: PublishedRow, metric: str) -> str:
        """Return a figure with a unit, or with the header of the column."""
        about = self._study.metric(metric)
        return f"{_figure(row, metric) or 0.0:,.10g} {about.unit or about.header}"


def _figure(row: PublishedRow, metric: str) -> float | None:
    bounds = row.range(metric)
    return None if bounds is None else bounds[0]


def _alike(row: PublishedRow, metric: str, other: PublishedRow, other_metric: str) -> bool:
    value = _figure(row, metric)
    return value is not None and value == _figure(other, other_metric)


def _size(value: Value | None) -> float | None:
    """Return a number, or the bytes of a size given as text; None for anything else."""
    if value is None:
        return None
    try:
        return float(parse_size(value) if isinstance(value, str) else value)
    except (OverflowError, UsageError):
        return None
