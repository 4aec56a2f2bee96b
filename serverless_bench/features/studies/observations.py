"""Figures of the runs of each cell, loaded from the directory of a study."""

from bisect import bisect
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import comb
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

from serverless_bench.base.errors import SbenchError
from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.bottleneck.part import MOSTLY_IDLE, idle_share
from serverless_bench.features.bottleneck.rate_limit import BURST_SHARE, bucket_fits, sample_of
from serverless_bench.features.compare.samples import CELLS, flattened, measured_run
from serverless_bench.features.compare.verdict import Interval
from serverless_bench.features.studies.cells import Cell
from serverless_bench.features.studies.definition import Metric
from serverless_bench.features.studies.settings import inner
from serverless_bench.metrics.attempt_stats import measured_cpu_s
from serverless_bench.metrics.timeline import counted, function_spans, good_operations
from serverless_bench.rundir.run import Run, load_run
from serverless_bench.rundir.tables import (
    ABSENT,
    Floats,
    Mask,
    Table,
    at_percentiles,
    is_text,
)

IDLE: Final = "idle"
"""Cause of runs with slots that were idle for most of the time."""
_OF_THE_STORE: Final = frozenset({"answers", "rate_limit", "retries", "store_or_network"})
"""Causes that leave the client idle."""
FAILURE = "failure.txt"
"""Name of the file with the reason for a missing run, next to the run's directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRun:
    """One run of a cell."""

    path: Path
    figures: Mapping[str, float] | None
    """Results by name; None if the run does not count."""
    problem: str = ""
    """Reason for not counting; for a counted run, a difference from the other runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRuns:
    """A cell and its runs."""

    cell: Cell
    planned: int
    """Runs that were planned."""
    results: tuple[CellRun, ...]
    """Results of the planned runs; empty for a cell that is skipped."""
    min_bytes: int = 0

    def by_round(self, metric: Metric) -> dict[int, float]:
        """Return the figure of a metric for each run that has it, by round from 1."""
        return {
            number: r.figures[metric.of] * _scale(metric, r.figures)
            for number, r in enumerate(self.results, 1)
            if r.figures and metric.of in r.figures
        }

    @property
    def run_s(self) -> float:
        """Median duration of a run; 0 if no run counts."""
        took = [
            r.figures["elapsed_s"] for r in self.results if r.figures and "elapsed_s" in r.figures
        ]
        return median(took) if took else 0.0

    @property
    def bottlenecks(self) -> tuple[str, ...]:
        """Causes that bounded the most functions, of ``CAUSES``, or ``IDLE``."""
        counts = Counter[str]()
        for figures_of in (r.figures for r in self.results if r.figures):
            causes = {n: round(v) for n, v in inner(figures_of, "bottleneck.functions").items()}
            is_idle = idle_share(inner(figures_of, "bottleneck.slots")) >= MOSTLY_IDLE
            counts.update({IDLE: sum(causes.values())} if is_idle else causes)
        most = max(counts.values(), default=0)
        return tuple(sorted(cause for cause, count in counts.items() if count == most))

    @property
    def store_bound(self) -> bool:
        """Whether the runs spent most of their time waiting for the store, or the network to it."""
        return bool(self.bottlenecks) and _OF_THE_STORE.issuperset(self.bottlenecks)

    @property
    def counted(self) -> int:
        """Number of counted runs."""
        return sum(result.figures is not None for result in self.results)

    def why_empty(self, figure: str) -> str:
        """Return why no run has a figure."""
        if self.cell.skipped:
            return f"{self.cell.label}: {self.cell.skipped}"
        if not self.counted:
            return f"{self.cell.label}: no run counts ({'; '.join(self.problems()) or 'none'})"
        return f"{self.cell.label}: no run has {figure}{WHY_ABSENT.get(figure, '')}"

    def problems(self) -> list[str]:
        """Return the problems of the runs, without repetition."""
        runs_by_problem = Counter(result.problem for result in self.results if result.problem)
        small = sum(r.figures["bytes"] < self.min_bytes for r in self.results if r.figures)
        lines = [
            f"{count} of {self.planned} runs: {problem}"
            for problem, count in runs_by_problem.items()
        ]
        if small:
            lines.append(
                f"{small} runs moved fewer bytes than the {self.min_bytes:,} that are asked for"
            )
        return lines


def _scale(metric: Metric, figures_of_run: Mapping[str, float]) -> float:
    return (
        metric.for_bytes / figures_of_run["bytes"]
        if metric.for_bytes and figures_of_run["bytes"]
        else 1.0
    )


def observe(
    root: Path, cells: Sequence[Cell], *, repeats: int, min_bytes: int
) -> tuple[CellRuns, ...]:
    """Return all cells with their runs; missing runs have a problem.

    Parameters
    ----------
    root
        Directory of a study.
    cells, repeats, min_bytes
        Plan of the study.
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
    """Return the directory of a run."""
    return root / CELLS / cell.slug / f"{repeat:02}"


def failure_path(path: Path) -> Path:
    """Return the file with the reason of a failed run."""
    return path.with_name(f"{path.name}.{FAILURE}")


def _result(path: Path) -> CellRun:
    figures_of_run, problem, failure = None, "", failure_path(path)
    if failure.exists():
        problem = failure.read_text(encoding="utf-8").strip()
    elif not (path / "run.json").exists():
        problem = "not run"
    else:
        try:
            figures_of_run, problem = _figures(load_run(path, detail=False))
        except SbenchError as exc:
            problem = str(exc)
    return CellRun(path=path, figures=figures_of_run, problem=problem)


def _figures(run: Run) -> tuple[dict[str, float] | None, str]:
    """Return the results of a run, or the reason why there are none."""
    try:
        shared = "" if run.neighbours is None else "other commands loaded the embedded store"
        return figures(run), shared
    except SbenchError as exc:
        # The path is different each time, but the cause may be the same.
        problem = str(exc).removeprefix(f"{run.path} cannot be compared: ")
        errors = {str(error) for error in run.functions["error"] if error not in {None, "", ABSENT}}
        return None, problem + (f" ({min(errors)})" if errors else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate(Interval):
    """A figure with an interval."""

    at: float

    def scaled(self, factor: float, *, less: float = 0.0) -> "Estimate":
        """Return the estimate minus ``less``, times ``factor``."""
        at, low, high = ((value - less) * factor for value in (self.at, self.low, self.high))
        return Estimate(at=at, low=low, high=high, confidence=self.confidence)


def median_of(values: Collection[float]) -> Estimate | None:
    """Return the median with an interval of at least 95 %, or the widest possible interval.

    The k-th smallest and k-th largest of n enclose the median unless fewer than k of them are
    on one side of it (Hollander, Wolfe and Chicken 2014, section 3.6).

    Parameters
    ----------
    values
        Values in any order; the result is None if there are none.
    """
    if not values:
        return None
    ordered, n = sorted(values), len(values)
    outside = list(accumulate(2 * comb(n, k) / 2**n for k in range(n // 2))) or [1.0]
    cut = max(0, bisect(outside, 0.05) - 1)
    return Estimate(
        at=median(ordered), low=ordered[cut], high=ordered[-1 - cut], confidence=1 - outside[cut]
    )


_SPREAD: Final = (5, 50, 95)
WHY_ABSENT: Final = {
    "network.sustained_bytes_per_s": ": no curve of bytes over time has a bend, so that the burst"
    " hides the rate (or the client is slower than it); let functions move more"
}
"""Explanations for results that no run has."""


def figures(run: Run) -> dict[str, float]:
    """Return all numbers that a metric can use; README.md lists them.

    Parameters
    ----------
    run
        A saved run.

    Raises
    ------
    UsageError
        If its figures are not representative of its cell: functions or the end are missing, data
        is corrupt, or the headline is withheld.
    """
    summary = measured_run(run).summary
    summary_json = summary.to_json()
    report = flattened(summary_json)
    numbers = {
        n: float(v) for n, v in report if isinstance(v, int | float) and not isinstance(v, bool)
    }
    good = good_operations(run)
    return {
        **numbers,
        **_processor(run, summary.elapsed_s),
        **_operations(run, good, summary.elapsed_s),
        **_heads(run.operations),
        **_watched(run, good),
        **_network(run, good),
        **_attempts(numbers),
        **_kinds(summary_json["latencies"]["by_kind"]),
    }


def _processor(run: Run, elapsed_s: float | None) -> dict[str, float]:
    functions, is_counted = run.functions, counted(run)
    figures_of = (("user_cpu_s", "cpu_user_s"), ("sys_cpu_s", "cpu_sys_s"))
    numbers = {name: float(functions[column][is_counted].sum()) for name, column in figures_of}
    if elapsed_s:
        numbers["elapsed_s"] = elapsed_s
        measured_s = measured_cpu_s(run)
        if measured_s is not None:
            numbers["cpu_share"] = measured_s / elapsed_s
    return numbers


def _operations(run: Run, good: Mask, elapsed_s: float | None) -> dict[str, float]:
    operations = run.operations
    numbers: dict[str, float] = {}
    if elapsed_s:
        numbers["ops_per_s"] = float(good.sum()) / elapsed_s
    # First operation of each function, by start.
    rows = np.flatnonzero(good)
    rows = rows[np.argsort(operations["start_ns"][rows], kind="stable")]
    firsts = rows[np.unique(operations["function"][rows], return_index=True)[1]]
    if len(firsts):
        numbers["start_spread_s"] = float(np.ptp(operations["start_ns"][firsts])) / NS_PER_S
    for name, some in (("first", firsts), ("later", np.setdiff1d(rows, firsts))):
        if len(some):
            moved = float(operations["bytes"][some].sum())
            numbers[f"{name}_bytes_per_s"] = moved * NS_PER_S / max(_span_ns(operations, some), 1)
    if len(rows):
        spans = (operations["end_ns"] - operations["start_ns"])[rows]
        numbers["mean_op_s"] = float(spans.mean()) / NS_PER_S
    rates = operation_rates(run)
    if len(rates):
        numbers["mean_op_bytes_per_s"] = float(rates.mean())
        named = zip(_SPREAD, at_percentiles(rates, _SPREAD).tolist(), strict=True)
        numbers |= {f"op_bytes_per_s.p{p}": rate for p, rate in named}
    if len(rates) > 1:
        half = len(rates) // 2
        numbers["later_half_ratio"] = float(rates[-half:].mean() / rates[:half].mean())
    return numbers


def operation_rates(run: Run) -> Floats:
    """Return bytes per second of all successful operations, in the order of the starts."""
    return operation_sizes(run)[1]


def operation_sizes(run: Run) -> tuple[Floats, Floats]:
    """Return bytes, and bytes per second, of operations in the order of ``operation_rates``."""
    operations, good = run.operations, good_operations(run)
    rows = np.flatnonzero(good & (operations["bytes"] > 0))
    rows = rows[np.argsort(operations["start_ns"][rows], kind="stable")]
    spans = (operations["end_ns"] - operations["start_ns"])[rows]
    moved = np.asarray(operations["bytes"][rows], np.float64)
    return moved, moved * NS_PER_S / np.maximum(spans, 1)


def _span_ns(operations: Table, some: Any) -> int:
    return int(operations["end_ns"][some].max() - operations["start_ns"][some].min())


def _heads(operations: Table) -> dict[str, float]:
    """Return the longest duration of a function's HEAD requests before the gets."""
    heads = is_text(operations["kind"], "head") & (operations["warmup"] > 0)
    columns = {name: operations[name][heads] for name in ("function", "start_ns", "end_ns")}
    functions = np.unique(columns["function"])
    spans = [_span_ns(columns, columns["function"] == row) for row in functions]
    return {"stat_s": max(spans) / NS_PER_S} if spans else {}


def _attempts(report: Mapping[str, float]) -> dict[str, float]:
    """Return the results of a tool that includes all attempts, even failed ones."""
    attempts, elapsed_s = report.get("attempts"), report.get("elapsed_s")
    if not attempts or not elapsed_s:
        return {}
    return {
        "attempts_per_s": attempts / elapsed_s,
        "failed_attempts_share": report.get("failed_attempts", 0.0) / attempts,
    }


def _kinds(by_kind: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return rates and latencies of each kind of operation, the only one also as ``op``."""
    numbers: dict[str, float] = {}
    kinds = [
        entry
        for entry in by_kind
        if entry["size_class"] is None and entry["latency"] and entry["operations_per_s"]
    ]
    if len(kinds) == 1:
        kinds.append({**kinds[0], "kind": "op"})
    for entry in kinds:
        latency = entry["latency"]
        figures_of = {
            "ops_per_s": entry["operations_per_s"],
            "min_s": latency["histogram"]["min_ns"] / NS_PER_S,
            "mean_s": latency["mean_s"],
            **{f"{name}_s": value for name, value in latency["percentiles_s"].items()},
        }
        numbers |= {f"{entry['kind']}.{name}": float(value) for name, value in figures_of.items()}
    return numbers


def _network(run: Run, good: Mask) -> dict[str, float]:
    """Return the burst of a function's network, and the rate afterwards.

    Only functions whose curve of bytes over time has a bend are included: before the bend, a curve
    shows nothing except the burst.
    """
    rows = function_spans(run).rows
    fits = bucket_fits(run, good, rows, sample_of(len(rows))).values() if len(rows) else ()
    bent = [fit for fit in fits if fit.burst_bytes > BURST_SHARE * fit.total_bytes]
    if not bent:
        return {}
    return {
        "network.sustained_bytes_per_s": float(np.median([b.sustained_bytes_per_s for b in bent])),
        "network.burst_bytes": float(np.median([b.burst_bytes for b in bent])),
    }


def _watched(run: Run, good: Mask) -> dict[str, float]:
    """Return the resource usage of libraries, in the operations in which it was sampled."""
    usages, operations = run.usages, run.operations
    if not usages:
        return {}
    pairs = zip(operations["function"], operations["index"], strict=True)
    keys = {pair: row for row, pair in enumerate(pairs)}
    watched = zip(usages["function"], usages["operation"], strict=True)
    rows = np.array([keys.get(pair, -1) for pair in watched], dtype=np.int64)
    is_good = (rows >= 0) & good[rows]
    if not is_good.any():
        return {}
    rows = rows[is_good]
    usage = {name: column[is_good] for name, column in usages.items()}
    elapsed_s = (operations["end_ns"] - operations["start_ns"])[rows] / NS_PER_S
    user, system = float(usage["cpu_user_s"].sum()), float(usage["cpu_sys_s"].sum())
    numbers = {"work_user_cpu_s": user, "work_cpu_share": (user + system) / float(elapsed_s.sum())}
    for name in ("threads_peak", "rss_peak_bytes"):
        is_known = usage[name] != ABSENT
        if is_known.any():
            numbers[name] = float(usage[name][is_known].max())
    moved, before, peak = (
        operations["bytes"][rows],
        usage["rss_before_bytes"],
        usage["rss_peak_bytes"],
    )
    is_known = (peak != ABSENT) & (before != ABSENT) & (moved > 0)
    if is_known.any():
        numbers["rss_ratio"] = float(np.median((peak - before)[is_known] / moved[is_known]))
    return numbers
