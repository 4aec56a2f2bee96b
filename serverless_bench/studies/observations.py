"""What the runs of each cell came to, read from the directory of an experiment."""

from bisect import bisect
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import comb
from pathlib import Path
from statistics import median

from serverless_bench.errors import SbenchError
from serverless_bench.rundir.run import Run, load_run
from serverless_bench.rundir.tables import ABSENT
from serverless_bench.statistics.verdict import Interval
from serverless_bench.studies.cells import Cell
from serverless_bench.studies.definition import Metric
from serverless_bench.studies.figures import WHY_ABSENT, figures

CELLS = "cells"
FAILURE = "failure.txt"
"""Why a run is not there, beside where it would be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRun:
    """One run of a cell."""

    path: Path
    figures: Mapping[str, float] | None
    """None if the run does not count."""
    problem: str = ""
    """Why not; of a run that counts, what keeps it from being like the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRuns:
    """A cell and its runs."""

    cell: Cell
    planned: int
    """Runs that were planned."""
    results: tuple[CellRun, ...]
    """One per planned run; empty for a cell that is skipped."""
    min_bytes: int = 0

    def by_round(self, metric: Metric) -> dict[int, float]:
        """Return what a metric is made of, of every run that has it, by round from 1."""
        return {
            number: r.figures[metric.of] * _scale(metric, r.figures)
            for number, r in enumerate(self.results, 1)
            if r.figures and metric.of in r.figures
        }

    @property
    def run_s(self) -> float:
        """How long a run was in the middle; 0 if none counts."""
        took = [
            r.figures["elapsed_s"] for r in self.results if r.figures and "elapsed_s" in r.figures
        ]
        return median(took) if took else 0.0

    @property
    def counted(self) -> int:
        """How many runs count."""
        return sum(result.figures is not None for result in self.results)

    def why_empty(self, figure: str) -> str:
        """Return why no run has a figure."""
        if self.cell.skipped:
            return f"{self.cell.label}: {self.cell.skipped}"
        if not self.counted:
            return f"{self.cell.label}: no run counts ({'; '.join(self.problems()) or 'none'})"
        return f"{self.cell.label}: no run has {figure}{WHY_ABSENT.get(figure, '')}"

    def problems(self) -> list[str]:
        """Return what is wrong with the runs, each cause once."""
        found = Counter(result.problem for result in self.results if result.problem)
        small = sum(r.figures["bytes"] < self.min_bytes for r in self.results if r.figures)
        lines = [f"{count} of {self.planned} runs: {why}" for why, count in found.items()]
        if small:
            lines.append(
                f"{small} runs moved fewer bytes than the {self.min_bytes:,} that are asked for"
            )
        return lines


def _scale(metric: Metric, found: Mapping[str, float]) -> float:
    return metric.for_bytes / found["bytes"] if metric.for_bytes and found["bytes"] else 1.0


def observe(
    root: Path, cells: Sequence[Cell], *, repeats: int, min_bytes: int
) -> tuple[CellRuns, ...]:
    """Return every cell with its runs; what is missing has a problem.

    Parameters
    ----------
    root
        Directory of an experiment.
    cells, repeats, min_bytes
        What was planned.
    """
    return tuple(
        CellRuns(
            cell=cell,
            planned=repeats,
            results=tuple(
                _result(run_path(root, cell, n))
                for n in range(1, 1 + (0 if cell.skipped else repeats))
            ),
            min_bytes=min_bytes,
        )
        for cell in cells
    )


def run_path(root: Path, cell: Cell, repeat: int) -> Path:
    """Return the directory of one run."""
    return root / CELLS / cell.slug / f"{repeat:02}"


def failure_path(path: Path) -> Path:
    """Return the file that says why a run failed."""
    return path.with_name(f"{path.name}.{FAILURE}")


def _result(path: Path) -> CellRun:
    found, problem, failure = None, "", failure_path(path)
    if failure.exists():
        problem = failure.read_text(encoding="utf-8").strip()
    elif not (path / "run.json").exists():
        problem = "not run"
    else:
        try:
            run = load_run(path, detail=False)
            found, problem = _figures(run)
        except SbenchError as exc:
            problem = str(exc)
    return CellRun(path=path, figures=found, problem=problem)


def _figures(run: Run) -> tuple[dict[str, float] | None, str]:
    """Return the figures of a run, or why it has none."""
    try:
        shared = "" if run.neighbours is None else "other commands loaded the embedded store"
        return figures(run), shared
    except SbenchError as exc:
        # The path is different each time, the cause may be the same.
        problem = str(exc).removeprefix(f"{run.path} cannot be compared: ")
        errors = {str(error) for error in run.functions["error"] if error not in {None, "", ABSENT}}
        return None, problem + (f" ({min(errors)})" if errors else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate(Interval):
    """A figure, and where the true one is."""

    at: float

    def scaled(self, factor: float, *, less: float = 0.0) -> "Estimate":
        """Return it in another unit, after something was taken off."""
        at, low, high = ((value - less) * factor for value in (self.at, self.low, self.high))
        return Estimate(at=at, low=low, high=high, confidence=self.confidence)


def median_of(values: Collection[float]) -> Estimate | None:
    """Return the median with an interval of at least 95 %, or the widest that there is.

    The k-th smallest and k-th largest of n hold the median unless fewer than k of them are
    on one side of it (Hollander, Wolfe and Chicken 2014, section 3.6).

    Parameters
    ----------
    values
        In any order; None comes of none.
    """
    if not values:
        return None
    ordered, n = sorted(values), len(values)
    outside = list(accumulate(2 * comb(n, k) / 2**n for k in range(n // 2))) or [1.0]
    cut = max(0, bisect(outside, 0.05) - 1)
    return Estimate(
        at=median(ordered), low=ordered[cut], high=ordered[-1 - cut], confidence=1 - outside[cut]
    )
