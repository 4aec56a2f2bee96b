"""Table of a study with measured and published values side by side. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TextIO

from serverless_bench.base.escaping import columns_of, for_markdown, for_terminal
from serverless_bench.features.bottleneck.part import CAUSES
from serverless_bench.features.compare.ratio import paired_ratio
from serverless_bench.features.compare.verdict import Interval
from serverless_bench.features.studies.cells import CELL, Cell, published_row
from serverless_bench.features.studies.contradictions import contradictions, is_doubted
from serverless_bench.features.studies.definition import (
    UNITS,
    Figure,
    Metric,
    PublishedRow,
    Study,
    Value,
)
from serverless_bench.features.studies.observations import CellRuns, Estimate, median_of
from serverless_bench.report.text_table import table, wrapped

PUBLISHED: Final = "published"
ABSENT: Final = "-"
DOUBTFUL: Final = " (!)"
"""Mark of a published figure that contradicts other figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCell:
    """A metric of a cell."""

    measured: Estimate | None
    """Estimate in the unit of the metric; None if no run has it."""
    published: Figure | None
    words: str = ""
    """Text that replaces a figure, with the reason why there is none."""
    doubted: bool = False
    """Whether a check of the published rows contradicts the published figure."""


_NOTHING: Final = TableCell(measured=None, published=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """A row of the table."""

    observed: CellRuns
    row: PublishedRow | None
    entries: Mapping[str, TableCell]
    """Table cells by metric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTable:
    """A table as text."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    named: int
    """Number of columns from the left that identify a row."""


def table_rows(study: Study, observed: Sequence[CellRuns]) -> tuple[TableRow, ...]:
    """Return a row for each cell, including cells without figures."""
    rows = [published_row(study, runs.cell) for runs in observed]
    doubts = contradictions(study)
    return tuple(
        TableRow(
            observed=runs,
            row=row,
            entries={
                metric.name: TableCell(
                    measured=_measured(metric, runs, observed),
                    published=None if row is None else row.values.get(metric.name),
                    words=runs.cell.skipped,
                    doubted=is_doubted(doubts, row, metric.name),
                )
                for metric in study.metrics
            },
        )
        for runs, row in zip(observed, rows, strict=True)
    )


def grid(study: Study, lines: Sequence[TableRow]) -> TextTable:
    """Return the table in the published layout, with columns of published figures if there are any.

    Each value of the file's pivot axis becomes a column. Without a pivot, each cell becomes a row.
    """
    pivot = study.pivot
    named = any(line.observed.cell.name for line in lines)
    names = [*([CELL] if named else []), *(a.name for a in study.axes if a.name != pivot)]
    groups: dict[tuple[str, ...], dict[str, TableRow]] = {}
    for place, line in enumerate(lines):
        key = tuple(_shown(line.observed.cell.value(name)) for name in names)
        key = key if pivot else (*key, str(place))
        groups.setdefault(key, {})[_level(line, pivot)] = line
    levels = list(dict.fromkeys(_level(line, pivot) for line in lines))
    columns = list(_columns(study, lines, levels))
    header = [study.axis(n).header if n != CELL else "study" for n in names]
    for metric, level, published in columns:
        alone = not pivot or (len(levels) == 2 and metric.relative and metric.to == pivot)
        header.append(title_of(metric) if alone else f"{level} {title_of(metric)}")
        header += [f"{PUBLISHED} {header[-1]}"] * published
    rows = []
    for key, group in groups.items():
        cells = list(key[: len(names)])
        for metric, level, published in columns:
            entry = group[level].entries[metric.name] if level in group else _NOTHING
            cells.append(_measured_text(metric, entry.measured))
            text = _published_text(metric, entry.published, doubtful=entry.doubted)
            cells += [text] * published
        last = (", ".join(dict.fromkeys(map(of, group.values()))) for of in (_bottlenecks, _runs))
        rows.append((*cells, *last))
    header += ["bottleneck", "runs"]
    return TextTable(header=tuple(header), rows=tuple(rows), named=_naming(rows, len(names)))


def _level(line: TableRow, pivot: str) -> str:
    return str(line.observed.cell.at.get(pivot)) if pivot else ""


def _columns(
    study: Study, lines: Sequence[TableRow], levels: Sequence[str]
) -> Iterator[tuple[Metric, str, bool]]:
    """Yield each column: the metric, the value of the pivot, and whether any is published."""
    pivot = study.pivot
    for metric in study.metrics:
        for level in levels:
            if pivot and metric.relative and metric.to == pivot and level == levels[0]:
                continue
            here = [line for line in lines if _level(line, pivot) == level]
            published = any(line.entries[metric.name].published is not None for line in here)
            yield metric, level, published


def left_over(study: Study, lines: Sequence[TableRow]) -> TextTable:
    """Return the published rows without a corresponding cell."""
    rows_in_table = [line.row for line in lines]
    rows = [row for row in study.published if row not in rows_in_table]
    doubts = contradictions(study)
    names = [axis.name for axis in study.axes if any(axis.name in row.at for row in rows)]
    metrics = [m for m in study.metrics if any(m.name in row.values for row in rows)]
    naming = [("study", [row.cell for row in rows])] if any(row.cell for row in rows) else []
    naming += [(study.axis(n).header, [_shown(r.at.get(n)) for r in rows]) for n in names]
    columns = [
        *naming,
        *(
            (
                title_of(m),
                [
                    _published_text(m, r.values.get(m.name), doubtful=is_doubted(doubts, r, m.name))
                    for r in rows
                ],
            )
            for m in metrics
        ),
        *([("note", [row.note for row in rows])] if any(row.note for row in rows) else []),
    ]
    body = tuple(zip(*(texts for _, texts in columns), strict=True))
    header = tuple(title for title, _ in columns)
    return TextTable(header=header, rows=body, named=_naming(body, len(naming)))


def title_of(metric: Metric) -> str:
    """Return the header of a metric with the unit, unless the header contains the unit."""
    named = not metric.unit or metric.unit in metric.header
    title = metric.header if named else f"{metric.header} ({metric.unit})"
    return f"{title} for {metric.for_bytes / 1e9:.3g} GB" if metric.for_bytes else title


def number(metric: Metric, value: float) -> str:
    """Return a figure with the metric's digits."""
    if metric.digits is not None:
        return f"{value:,.{metric.digits}f}"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _naming(rows: Sequence[Sequence[str]], most: int) -> int:
    """Return the number of columns needed to distinguish the rows."""
    counts = (n for n in range(1, most) if len({tuple(row[:n]) for row in rows}) == len(rows))
    return next(counts, most)


def _bottlenecks(line: TableRow) -> str:
    causes = line.observed.bottlenecks
    return ", ".join(CAUSES.get(cause, "idle slots") for cause in causes) or ABSENT


def _runs(line: TableRow) -> str:
    runs = line.observed
    if runs.cell.skipped:
        return "skipped" if runs.cell.not_here else "unsupported"
    return (
        str(runs.counted) if runs.counted == runs.planned else f"{runs.counted} of {runs.planned}"
    )


def _measured_text(metric: Metric, estimate: Estimate | None) -> str:
    if estimate is None:
        return ABSENT
    text = number(metric, estimate.at)
    low, high = number(metric, estimate.low), number(metric, estimate.high)
    return text if low == high else f"{text} ({low} to {high})"


def _published_text(metric: Metric, value: Figure | None, *, doubtful: bool) -> str:
    mark = DOUBTFUL if doubtful else ""
    if value is None:
        return ABSENT
    if isinstance(value, str):
        return value + mark
    if isinstance(value, tuple):
        return f"{number(metric, value[0])} to {number(metric, value[1])}{mark}"
    # A figure without digits in the file is shown as it was printed.
    shown = f"{value:,.10g}" if metric.digits is None else number(metric, value)
    return shown + mark


def _shown(value: Value | None) -> str:
    return ABSENT if value in {None, ""} else str(value)


def _measured(metric: Metric, runs: CellRuns, observed: Sequence[CellRuns]) -> Estimate | None:
    unit = UNITS[metric.unit]
    if not metric.relative:
        return median_of([value / unit for value in runs.by_round(metric).values()])
    base = _base(metric, runs, observed)
    ratio = None if base is None else _ratio(metric, runs, base)
    if base is None or ratio is None:
        return None
    if metric.relative == "efficiency":
        value, first = runs.cell.at.get(metric.to), base.cell.at.get(metric.to)
        if not isinstance(value, int | float) or not isinstance(first, int | float):
            return None
        return ratio.scaled(first / value / unit) if value and first else None
    return ratio.scaled(1 / unit, less=1.0 if metric.relative == "change" else 0.0)


def _base(metric: Metric, runs: CellRuns, observed: Sequence[CellRuns]) -> CellRuns | None:
    """Return the first cell that differs only in the axis of a relation."""

    def rest(cell: Cell) -> tuple[bool, dict[str, str]]:
        return cell.control, {n: str(v) for n, v in cell.at.items() if n != metric.to}

    cells = (other for other in observed if metric.to in other.cell.at)
    return next((other for other in cells if rest(other.cell) == rest(runs.cell)), None)


def _ratio(metric: Metric, runs: CellRuns, base: CellRuns) -> Estimate | None:
    """Return a cell over its base within rounds; as a gain, unless the metric is a change."""
    ratio = paired_ratio(base.by_round(metric), runs.by_round(metric))
    if ratio is None:
        return None
    if runs is base:
        return Estimate(at=1.0, low=1.0, high=1.0, confidence=1.0)
    if metric.better == "less" and metric.relative != "change":
        ratio = ratio.inverse()
    at = ratio.ratio
    within = ratio.interval() or Interval(low=at, high=at, confidence=0.0)
    return Estimate(at=at, low=within.low, high=within.high, confidence=within.confidence)


class Writer:
    """Writer of lines and tables in Markdown or plain text."""

    def __init__(self, out: TextIO, *, markdown: bool) -> None:
        self._out = out
        self._markdown = markdown
        self._shown = for_markdown if markdown else for_terminal
        self._width = columns_of(out)

    def title(self, text: str, *, top: bool = False) -> None:
        """Write a heading."""
        shown = self._shown(text)
        if self._markdown:
            self._out.write(f"\n{'#' if top else '##'} {shown}\n\n")
        else:
            gap = "" if top else "\n"
            self._out.write(f"{gap}{self._wrapped(shown)}\n")

    def line(self, text: str, *, deep: int = 0) -> None:
        """Write a paragraph, or an item at a level of nesting."""
        shown = self._shown(text)
        if self._markdown:
            self._out.write(f"{shown}\n\n" if not deep else f"{'  ' * (deep - 1)}- {shown}\n")
        else:
            self._out.write(f"{self._wrapped('  ' * deep + shown)}\n")

    def table(self, text_table: TextTable) -> None:
        """Write a table."""
        style, align = (
            ("markdown", "") if self._markdown else ("text", "r" * len(text_table.header))
        )
        lines = table(
            text_table.header,
            text_table.rows,
            style,
            align=align,
            named=text_table.named,
            width=self._width,
        )
        self._out.writelines(f"{line}\n" for line in lines)

    def _wrapped(self, text: str) -> str:
        return "\n".join(wrapped(text, self._width))
