"""Reports of several runs in one: what can be added up is added up. Pure."""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

from serverless_bench.analysis.histogram import Histogram
from serverless_bench.analysis.latency import SIZE_CLASSES, Latencies, Latency, Times, rate
from serverless_bench.errors import UsageError
from serverless_bench.job.operations import OperationKind


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
        If one is no report, or an older one without histograms.
    """
    merged: dict[tuple[str, str | None], list[Mapping[str, Any]]] = {}
    spans: list[float] = []
    open_loops: list[Mapping[str, Any]] = []
    for number, report in enumerate(reports, 1):
        try:
            section = report["latencies"]
            spans.append(section["span_s"] or 0.0)
            if section["open_loop"]:
                open_loops.append(section)
            for row in section["by_kind"]:
                # Called ``count`` until report_schema 3.
                ok = row["ok"] if "ok" in row else row["count"]
                merged.setdefault((row["kind"], row["size_class"]), []).append({**row, "ok": ok})
        except (KeyError, TypeError) as exc:
            raise UsageError(
                f"number {number} is no report with latencies",
                hint="make it with this version: sbench report --format json",
            ) from exc
    # The same sum and the same order of rows, in whatever order the reports come.
    span_s = math.fsum(spans)
    known = [kind.value for kind in OperationKind]
    kinds = (*known, *sorted({kind for kind, _ in merged} - set(known)))
    # After the size classes, the names of a user's own blocks.
    blocks = sorted({name for _, name in merged if name is not None} - set(SIZE_CLASSES))
    order = [(kind, name) for kind in kinds for name in (None, *SIZE_CLASSES, *blocks)]
    rows = [_merged(*key, merged[key], span_s) for key in order if key in merged]
    return Latencies(
        open_loop=bool(open_loops),
        due=_sum([each.get("due") for each in open_loops]),
        begun=_sum([each.get("begun") for each in open_loops]),
        overdue=_sum([each.get("overdue") for each in open_loops]),
        span_s=span_s or None,
        by_kind=tuple(rows),
    )


def _sum(counts: Sequence[int | None]) -> int | None:
    """Return a sum; None if there is nothing, or one of them (an older report) does not say."""
    known = [each for each in counts if each is not None]
    return sum(known) if known and len(known) == len(counts) else None


def _merged(
    kind: str, size_class: str | None, rows: Sequence[Mapping[str, Any]], span_s: float
) -> Latency:
    totals = {
        name: sum(int(row[name]) for row in rows) for name in ("ok", "failed", "keys", "bytes")
    }
    return Latency(
        kind=kind,
        size_class=size_class,
        **totals,
        overdue=_sum([row.get("overdue") for row in rows]),
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
