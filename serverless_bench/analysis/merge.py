"""Merge the reports of multiple runs by adding their counts. Pure functions."""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, Final

from serverless_bench.analysis.histogram import Histogram
from serverless_bench.analysis.latency import (
    SIZE_CLASSES,
    Latencies,
    Latency,
    Times,
    in_order,
    rate,
)
from serverless_bench.errors import UsageError

_PACE: Final = ("due", "begun", "overdue")
_TOTALS: Final = ("ok", "failed", "overdue", "keys", "bytes")


def merge_reports(reports: Sequence[Mapping[str, Any]]) -> Latencies:
    """Return the combined operations of multiple runs.

    Parameters
    ----------
    reports
        JSON reports from ``Summary.to_json`` or ``sbench report --format json``.

    Returns
    -------
    Latencies
        Counts, bytes, sums and extremes are exact, percentiles within 1 %. Rates use the sum of
        the spans, as if the runs were sequential. ``over_time`` is empty.

    Raises
    ------
    UsageError
        If a report has no latencies, or two reports are of the same run.
    """
    merged: dict[tuple[str, str | None], list[Mapping[str, Any]]] = {}
    spans: list[float] = []
    open_loops: list[dict[str, int]] = []
    run_ids: set[str] = set()
    for number, report in enumerate(reports, 1):
        try:
            section, run_id = report["latencies"], str(report["run_id"])
            spans.append(section["span_s"] or 0.0)
            if section["open_loop"]:
                open_loops.append({name: int(section[name]) for name in _PACE})
            for row in section["by_kind"]:
                merged.setdefault((row["kind"], row["size_class"]), []).append(row)
        except (KeyError, TypeError) as exc:
            raise UsageError(
                f"number {number} is not a report with latencies",
                hint="create it with this version: sbench report --format json",
            ) from exc
        if run_id in run_ids:
            raise UsageError(
                f"number {number} is a second report of the run {run_id}",
                hint="its operations would count twice; give a single report of each run",
            )
        run_ids.add(run_id)
    # The sum and the order of rows do not depend on the order of the reports.
    span_s = math.fsum(spans)
    kinds = in_order({kind for kind, _ in merged})
    # Blocks of user functions follow the size classes.
    blocks = sorted({name for _, name in merged if name is not None} - set(SIZE_CLASSES))
    order = [(kind, name) for kind in kinds for name in (None, *SIZE_CLASSES, *blocks)]
    rows = [_merged(*key, merged[key], span_s) for key in order if key in merged]
    paces = _PACE if open_loops else ()
    pace: dict[str, Any] = {name: sum(counts[name] for counts in open_loops) for name in paces}
    return Latencies(
        open_loop=bool(open_loops),
        **pace,
        span_s=span_s or None,
        by_kind=tuple(rows),
    )


def _merged(
    kind: str, size_class: str | None, rows: Sequence[Mapping[str, Any]], span_s: float
) -> Latency:
    totals = {name: sum(int(row[name]) for row in rows) for name in _TOTALS}
    return Latency(
        kind=kind,
        size_class=size_class,
        **totals,
        operations_per_s=rate(totals["ok"], span_s),
        bytes_per_s=rate(totals["bytes"], span_s),
        latency=_together(row["latency"] for row in rows),
        # The service times of a run without backoff are its latencies.
        service=_together(row["service"] or row["latency"] for row in rows)
        if any(row["service"] for row in rows)
        else None,
        response=_together(row["response"] for row in rows),
        queueing=_together(row["queueing"] for row in rows),
    )


def _together(times: Iterable[Mapping[str, Any] | None]) -> Times | None:
    histograms = (Histogram.from_json(row["histogram"]) for row in times if row is not None)
    merged = reduce(Histogram.merge, histograms, Histogram())
    return Times.from_histogram(merged) if merged.count else None
