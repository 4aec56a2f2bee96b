"""From a saved run to the numbers that metrics are made of. Pure."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from serverless_bench.analysis.cpu_cost import measured_cpu_s
from serverless_bench.analysis.samples import measured_run
from serverless_bench.analysis.timeline import counted, good_operations
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import ABSENT, Floats, Mask, Table, flattened, is_text
from serverless_bench.units import NS_PER_S

_SPREAD: Final = (5, 50, 95)


def figures(run: Run) -> dict[str, float]:
    """Return every number that a metric can be made of; docs/experiments/README.md has them.

    Parameters
    ----------
    run
        A saved run.

    Raises
    ------
    UsageError
        If its figures cannot stand for its cell: functions or the end are missing, data
        is corrupt, or the headline is withheld.
    """
    summary = measured_run(run).summary
    report = flattened(summary.to_json())
    found = {
        n: float(v) for n, v in report if isinstance(v, int | float) and not isinstance(v, bool)
    }
    good = good_operations(run)
    return {
        **found,
        **_processor(run, summary.span_s),
        **_operations(run, good, summary.span_s),
        **_starts(run, good),
        **_watched(run, good),
    }


def _processor(run: Run, span_s: float | None) -> dict[str, float]:
    functions, there = run.functions, counted(run)
    user = float(functions["cpu_user_s"][there].sum())
    system = float(functions["cpu_sys_s"][there].sum())
    found = {"user_cpu_s": user, "sys_cpu_s": system}
    if span_s:
        found["elapsed_s"] = span_s
        measured_s = measured_cpu_s(run)
        if measured_s is not None:
            found["cpu_share"] = measured_s / span_s
    return found


def _operations(run: Run, good: Mask, span_s: float | None) -> dict[str, float]:
    operations = run.operations
    found: dict[str, float] = {}
    if span_s:
        found["ops_per_s"] = float(good.sum()) / span_s
    first = good & (_rank(operations, good) == 0)
    for name, mask in (("first", first), ("later", good & ~first)):
        rate = _rate(operations, mask)
        if rate is not None:
            found[f"{name}_bytes_per_s"] = rate
    rates = operation_rates(run)
    if len(rates):
        found["mean_op_bytes_per_s"] = float(rates.mean())
        found |= {f"op_bytes_per_s.p{p}": float(np.percentile(rates, p)) for p in _SPREAD}
    if len(rates) > 1:
        half = len(rates) // 2
        found["later_half_ratio"] = float(rates[-half:].mean() / rates[:half].mean())
    return found


def operation_rates(run: Run) -> Floats:
    """Return bytes per second of every operation that succeeded, in the order of their starts."""
    operations, good = run.operations, good_operations(run)
    rows = np.flatnonzero(good & (operations["bytes"] > 0))
    rows = rows[np.argsort(operations["start_ns"][rows], kind="stable")]
    spans = (operations["end_ns"] - operations["start_ns"])[rows]
    return np.asarray(operations["bytes"][rows] * NS_PER_S / np.maximum(spans, 1), np.float64)


def _rank(operations: Table, good: Mask) -> Floats:
    """Return the number of each operation among the good ones of its function, by start."""
    rank = np.full(len(good), -1.0)
    rows = np.flatnonzero(good)
    order = rows[np.lexsort((operations["start_ns"][rows], operations["function"][rows]))]
    if len(order):
        function = operations["function"][order]
        begins = np.flatnonzero(np.concatenate(([True], function[1:] != function[:-1])))
        sizes = np.diff(np.append(begins, len(order)))
        rank[order] = np.arange(len(order)) - np.repeat(begins, sizes)
    return rank


def _rate(operations: Table, mask: Mask) -> float | None:
    if not mask.any():
        return None
    span = int(operations["end_ns"][mask].max() - operations["start_ns"][mask].min())
    return float(operations["bytes"][mask].sum()) * NS_PER_S / max(span, 1)


def _starts(run: Run, good: Mask) -> dict[str, float]:
    operations, found = run.operations, {}
    if good.any():
        first = np.full(len(run.functions["status"]), np.iinfo(np.int64).max)
        np.minimum.at(first, operations["function"][good], operations["start_ns"][good])
        there = first[first < np.iinfo(np.int64).max]
        found["start_spread_s"] = float(there.max() - there.min()) / NS_PER_S
    heads = is_text(operations["kind"], "head") & (operations["warmup"] > 0)
    if heads.any():
        functions = np.unique(operations["function"][heads])
        spans = [_span(operations, heads & (operations["function"] == row)) for row in functions]
        found["stat_s"] = max(spans) / NS_PER_S
    return found


def _span(table: Table, mask: Mask) -> int:
    return int(table["end_ns"][mask].max() - table["start_ns"][mask].min())


def _watched(run: Run, good: Mask) -> dict[str, float]:
    """Return what libraries used, in the operations in which they were watched."""
    usages = run.usages
    if not usages or not len(usages["operation"]):
        return {}
    keys = {
        (function, index): row
        for row, (function, index) in enumerate(
            zip(run.operations["function"], run.operations["index"], strict=True)
        )
    }
    pairs = zip(usages["function"], usages["operation"], strict=True)
    rows = np.array([keys.get(pair, -1) for pair in pairs])
    there = (rows >= 0) & good[rows]
    if not there.any():
        return {}
    rows = rows[there]
    took = {name: column[there] for name, column in usages.items()}
    span_s = (run.operations["end_ns"] - run.operations["start_ns"])[rows] / NS_PER_S
    user, system = float(took["cpu_user_s"].sum()), float(took["cpu_sys_s"].sum())
    found = {"work_user_cpu_s": user, "work_cpu_share": (user + system) / float(span_s.sum())}
    moved, before = run.operations["bytes"][rows], took["rss_before_bytes"]
    peaks: tuple[tuple[str, Any, Callable[[Any], Any]], ...] = (
        ("threads_peak", took["threads_peak"], np.max),
        ("rss_peak_bytes", took["rss_peak_bytes"], np.max),
    )
    found |= {name: float(of(v[v != ABSENT])) for name, v, of in peaks if (v != ABSENT).any()}
    known = (took["rss_peak_bytes"] != ABSENT) & (before != ABSENT) & (moved > 0)
    if known.any():
        grown = (took["rss_peak_bytes"] - before)[known] / moved[known]
        found["rss_ratio"] = float(np.median(grown))
    return found
