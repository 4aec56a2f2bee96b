"""``sbench compare`` of sweeps and studies: each cell with the same cell of another one.

A cell's runs are a sample, as the runs of a directory are, and so are the geometric means of all
cells by round. All comparisons are one family of tests.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from math import exp
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec import Struct, to_builtins

from serverless_bench.base.errors import SbenchError, UsageError
from serverless_bench.base.escaping import for_markdown, for_terminal
from serverless_bench.features.answers.answer import Answer, Drawing
from serverless_bench.features.compare.report import (
    format_metric,
    format_ratio,
    question_text,
    ratio_drawing,
    remark_texts,
)
from serverless_bench.features.compare.run_comparison import (
    LABELS,
    SAMPLES,
    ComparedMetric,
    Comparison,
    check_sides,
    judged,
)
from serverless_bench.features.compare.samples import (
    Sample,
    check_comparable,
    first_of,
    interleaved,
    measured_run,
    more_is_better,
    sample_of,
    what_differs,
)
from serverless_bench.features.compare.verdict import MIN_BLOCKS, Verdict
from serverless_bench.features.studies.cells import Cell
from serverless_bench.features.studies.observations import run_path
from serverless_bench.features.studies.plan import Plan, load_plan
from serverless_bench.report.text_table import table
from serverless_bench.rundir.run import load_run
from serverless_bench.rundir.tables import Floats

_TOGETHER: Final = "all, geometric mean"
_LENGTHS: Final = frozenset({"duration", "bytes"})
"""Settings that follow from the time for a series, and do not change a rate."""
_ROUNDS = Mapping[int, float]
"""Values of a metric by round."""


class ComparedCell(Struct, frozen=True, kw_only=True):
    """A cell of a series compared with that of the baseline, or all cells together."""

    cell: str
    other: str
    """Label of the other series."""
    values: tuple[tuple[float, ...], tuple[float, ...]]
    """Values of the baseline's runs, and of the other's."""
    result: Comparison

    @property
    def medians(self) -> tuple[float, float]:
        """Medians of the values."""
        baseline, other = (float(np.median(values)) for values in self.values)
        return baseline, other


class SeriesComparison(ComparedMetric, frozen=True, kw_only=True):
    """Comparisons of the cells that series have in common.

    Parameters
    ----------
    metric, more_is_better, threshold
        Same as those of ``RunComparison``.
    roots
        Directories by label, the baseline first.
    cells
        The comparisons; those of all cells together come last.
    left_out
        Reasons why cells are not compared.
    differing
        Settings in which series differ, with the values of each.
    in_turns
        Whether the series ran at the same time.
    """

    roots: Mapping[str, str]
    cells: tuple[ComparedCell, ...]
    left_out: tuple[str, ...]
    differing: Mapping[str, Sequence[Any]]
    in_turns: bool

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts of all comparisons."""
        return tuple(cell.result.verdict for cell in self.cells)

    @property
    def _are_many(self) -> bool:
        return len(self.roots) > 2

    @property
    def headline(self) -> str:
        """The numbers of verdicts, in a few words."""
        counts = {verdict: self.verdicts.count(verdict) for verdict in Verdict}
        return ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document of ``sbench compare``; README.md lists its fields."""
        return {
            **self._terms(SAMPLES),
            "sides": [{"label": name, "directory": path} for name, path in self.roots.items()],
            "differing": self.differing,
            "interleaved": self.in_turns,
            "cells": [
                {
                    "cell": cell.cell,
                    "baseline": "A",
                    "other": cell.other,
                    "values": cell.values,
                    **to_builtins(cell.result),
                }
                for cell in self.cells
            ],
            "left_out": self.left_out,
        }

    def answer(self, width: int) -> Answer:
        """Return the answer of ``sbench compare``, for a terminal of so many columns."""
        return Answer(
            command="compare",
            headline=self.headline,
            text=tuple(self.lines("text", width)),
            markdown=tuple(self.lines("markdown", width)),
            result=self.to_json(),
            drawings=self.drawings(),
        )

    def lines(self, style: str, width: int) -> Iterator[str]:
        """Yield the lines of the report as text or Markdown."""
        document, is_text = self.to_json(), style == "text"
        escaped, bullet = (for_terminal, "") if is_text else (for_markdown, "- ")
        yield question_text(document)
        if not is_text:
            yield ""
        yield from table(("series", "directory"), [*self.roots.items()], style)
        sides, align = (["series", "A", "other"], "ll") if self._are_many else (["A", "B"], "l")
        header = ("cell", *sides, "ratio", "95% interval", "runs", "verdict")
        rows = [self._row(cell) for cell in self.cells]
        yield from table(header, rows, style, align=f"{align}rrrrrl", width=width)
        if Verdict.NOT_ENOUGH_RUNS in self.verdicts:
            yield (
                f"{bullet}not enough runs: a verdict needs {MIN_BLOCKS} rounds of each, for which"
                " a sweep needs a longer --budget"
            )
        for text in (*self.left_out, *remark_texts(document)):
            yield bullet + escaped(text)

    def _row(self, cell: ComparedCell) -> tuple[str, ...]:
        evidence = cell.result.evidence
        within = "-"
        if evidence is not None:
            ends = (evidence.interval.low, evidence.interval.high)
            within = " to ".join(map(format_ratio, ends))
        return (
            cell.cell,
            *[cell.other] * self._are_many,
            *(format_metric(self.metric, median) for median in cell.medians),
            format_ratio(cell.result.ratio),
            within,
            " + ".join(str(len(values)) for values in cell.values),
            cell.result.verdict,
        )

    def drawings(self) -> tuple[Drawing, ...]:
        """Return the ratio of each cell."""
        named = (
            (cell.cell + f" ({cell.other})" * self._are_many, cell.result) for cell in self.cells
        )
        return (ratio_drawing(named, at="cells", threshold=self.threshold),)


def compare_series(
    roots: Sequence[Path], *, metric: str, threshold: float, allow: Collection[str]
) -> SeriesComparison:
    """Compare the cells that sweeps or studies have in common.

    Parameters
    ----------
    roots
        Directories of the series, the baseline first.
    metric, threshold, allow
        Same as those of ``compare``.

    Raises
    ------
    ArchiveError
        If a directory is not that of a sweep or study.
    UsageError
        If the metric is unknown, no cell can be compared, or cells did different work.
    """
    better = more_is_better(metric)
    check_sides(roots, threshold)
    labels = LABELS[: len(roots)]
    plans = [load_plan(root) for root in roots]
    samples, left_out = _samples(roots, plans, labels)
    compared = dict[str, list[_ROUNDS]]()
    for cell, sides in samples.items():
        check_comparable(sides, allowed={*allow, *_LENGTHS})
        try:
            compared[cell] = [_by_round(side, metric) for side in sides]
        except UsageError as exc:
            left_out.append(f"{cell}: {exc}")
    if not compared:
        raise UsageError("no cell can be compared", hint=first_of(left_out, "; "))
    if len(compared) > 1:
        compared[_TOGETHER] = _together(compared)
    pairs = [
        (name, label, rounds[0], other)
        for name, rounds in compared.items()
        for label, other in zip(labels[1:], rounds[1:], strict=True)
        # All cells together may have no round in common.
        if rounds[0] and other
    ]
    results = judged(
        [(_logs(first), _logs(other)) for _, _, first, other in pairs],
        threshold=threshold,
        more_is_better=better,
    )
    return SeriesComparison(
        metric=metric,
        more_is_better=better,
        threshold=threshold,
        roots=dict(zip(labels, map(str, roots), strict=True)),
        cells=tuple(
            ComparedCell(
                cell=name,
                other=label,
                values=(tuple(first.values()), tuple(other.values())),
                result=result,
            )
            for (name, label, first, other), result in zip(pairs, results, strict=True)
        ),
        left_out=tuple(left_out),
        differing={
            name: values
            for sides in samples.values()
            for name, values in what_differs(sides).items()
            if name != "target.endpoint_url" or any(plan.target for plan in plans)
        },
        in_turns=all(map(interleaved, samples.values())),
    )


def _samples(
    roots: Sequence[Path], plans: Sequence[Plan], labels: str
) -> tuple[dict[str, list[Sample]], list[str]]:
    """Return the runs of the cells that all series have, and why others are left out."""
    series = [{cell.label: cell for cell in plan.cells()} for plan in plans]
    samples, left_out = dict[str, list[Sample]](), list[str]()
    for name in dict.fromkeys(name for cells in series for name in cells):
        if lacking := [at for at, cells in zip(labels, series, strict=True) if name not in cells]:
            left_out.append(f"{name}: not in {', '.join(lacking)}")
            continue
        sides = [
            _sample(root, cells[name], label)
            for root, cells, label in zip(roots, series, labels, strict=True)
        ]
        if empty := [side.label for side in sides if not side.runs]:
            left_out.append(f"{name}: no run of {', '.join(empty)} counts")
        else:
            samples[name] = sides
    return samples, left_out


def _sample(root: Path, cell: Cell, label: str) -> Sample:
    directory, runs = run_path(root, cell, 1).parent, []
    for header in directory.glob("*/run.json"):
        # The report of the series says why a run does not count.
        with suppress(SbenchError):
            runs.append(measured_run(load_run(header.parent, detail=False)))
    return sample_of(runs, label=label, directory=directory)


def _by_round(side: Sample, metric: str) -> dict[int, float]:
    return {int(run.path.name): run.metric(metric) for run in side.runs}


def _together(compared: Mapping[str, Sequence[_ROUNDS]]) -> list[_ROUNDS]:
    """Return the geometric means of all cells, by the rounds in which each has a run."""
    return [
        {
            number: exp(float(np.mean([np.log(values[number]) for values in cells])))
            for number in sorted(set.intersection(*map(set, cells)))
        }
        for cells in zip(*compared.values(), strict=True)
    ]


def _logs(values: _ROUNDS) -> Floats:
    return np.asarray(np.log([*values.values()]))
