"""Reports of several runs in one: what can be added up is added up. Pure."""

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
    """Return the operations of several runs together.

    Parameters
    ----------
    reports
        JSON reports, as ``Summary.to_json`` and ``sbench report --format json`` make them.

    Returns
    -------
    Latencies
        Counts, bytes, sums and extremes are exact, percentiles within 1 %. Rates are over
        the sum of the spans, as of runs one after the other. Without ``over_time``.

    Raises
    ------
    UsageError
        If one is no report with latencies, or two are of the same run.
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
                f"number {number} is no report with latencies",
                hint="make it with this version: sbench report --format json",
            ) from exc
        if run_id in run_ids:
            raise UsageError(
                f"number {number} is of the run {run_id}, as one before it",
                hint="each of its operations would count twice: give one report of each run",
            )
        run_ids.add(run_id)
    # The same sum and the same order of rows, in whatever order the reports come.
    span_s = math.fsum(spans)
    kinds = in_order({kind for kind, _ in merged})
    # After the size classes, the names of a user's own blocks.
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
        # Where a run has no service times, they are its latencies.
        service=_together(row["service"] or row["latency"] for row in rows)
        if any(row["service"] for row in rows)
        else None,
        response=_together(row["response"] for row in rows),
        queueing=_together(row["queueing"] for row in rows),
    )


def _together(times: Iterable[Mapping[str, Any] | None]) -> Times | None:
    histograms = (Histogram.from_json(one["histogram"]) for one in times if one is not None)
    whole = reduce(Histogram.merge, histograms, Histogram())
    return Times.from_histogram(whole) if whole.count else None
