"""Durations of operations: rows by kind and size, histograms, and segments over time."""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from math import isnan
from typing import Any, Final, TypeVar

from scipy.stats import quantile_test

from tests.reference.dropped import Dealt, dealt, pace
from tests.reference.rows import Row, S, Saved
from tests.reference.sizes import CLASSES, size_class

Number = Fraction | int
N = TypeVar("N", int, float, Fraction, Number)

KINDS: Final = (
    *("put", "get", "get_range", "head", "list", "list_all", "delete", "delete_many", "copy"),
    *("write_array", "append_array", "read_array", "call"),
    *("increment", "claim", "append", "observe", "scan", "wait"),
)


def latencies(run: Saved) -> Row:
    undone = dealt(run)
    if not run.measured and not undone:
        return {
            "open_loop": run.job["load"]["rate"] is not None,
            "target_per_s": run.job["load"]["rate"],
            **pace(run, undone),
            "elapsed_s": None,
            "by_kind": [],
            "segment_s": None,
            "over_time": [],
        }
    rows = []
    for kind in KINDS:
        mine = [op for op in run.measured if op["kind"] == kind]
        late = [one for one in undone if one[0] == kind]
        own = own_ns(run, mine)
        rows += [row(run, kind, None, mine, late, own)] if mine or late else []
        names = sorted({op["key"] for op in mine}) if kind == "call" else CLASSES
        for name in names:
            some = [op for op in mine if (op["key"] if kind == "call" else size_class(op)) == name]
            of_size = [one for one in late if one[1] == name]
            rows += [row(run, kind, name, some, of_size, own)] if some or of_size else []
    length, segments = over_time(run, undone)
    return {
        "open_loop": is_open(run),
        "target_per_s": run.job["load"]["rate"],
        **pace(run, undone),
        "elapsed_s": Fraction(run.span_ns(), S) if run.measured else None,
        "by_kind": rows,
        "segment_s": Fraction(length, S) if segments else None,
        "over_time": segments,
    }


def is_open(run: Saved) -> bool:
    return run.job["load"]["rate"] is not None or has_instants(run)


def has_instants(run: Saved) -> bool:
    every = [op for one in run.functions for op in one.operations]
    return any(op["intended_ns"] is not None for op in every) or bool(run.dropped)


def own_ns(run: Saved, mine: Sequence[Row]) -> int:
    """Return the time of a kind: its own in runs of other tools."""
    if run.job["executor"] != "imported" or not mine:
        return run.span_ns()
    own = max(op["end_ns"] for op in mine) - min(op["start_ns"] for op in mine)
    return own or run.span_ns()


def row(
    run: Saved,
    kind: str,
    size: str | None,
    mine: Sequence[Row],
    late: Sequence[Dealt],
    span: int,
) -> Row:
    good = [op for op in mine if op["error"] is None]
    moved = sum(op["bytes"] for op in good)
    due = [op for op in good if op["intended_ns"] is not None]
    latency = [max(0, op["end_ns"] - op["start_ns"]) for op in good]
    waits = [sum(tried["wait_ns"] for tried in op["attempts"]) for op in good]
    waited = [waited_ns for *_, waited_ns in late]
    service = [max(0, op["end_ns"] - op["start_ns"] - w) for op, w in zip(good, waits, strict=True)]
    return {
        "kind": kind,
        "size_class": size,
        "ok": len(good),
        "failed": len(mine) - len(good),
        "dropped": len(late),
        "keys": sum(op["count"] for op in good),
        "bytes": moved,
        "operations_per_s": Fraction(len(good) * S, span) if good and span else None,
        "bytes_per_s": Fraction(moved * S, span) if moved and span else None,
        "latency": times(latency),
        "without_backoff": times(service) if service != latency else None,
        "response": times([max(0, op["end_ns"] - op["intended_ns"]) for op in due] + waited),
        "queueing": times([max(0, op["start_ns"] - op["intended_ns"]) for op in due] + waited),
    }


def quantile(values: Sequence[N], share: Fraction) -> N:
    """Return the least value that so large a share of all are not above."""
    ordered = sorted(values)
    return next(one for n, one in enumerate(ordered, 1) if n >= share * len(ordered))


@cache
def ends(count: int, share: Fraction) -> tuple[int | None, int | None]:
    """Return the ranks of the ends of a percentile's interval, by SciPy's test of quantiles."""
    tested: Any = quantile_test(range(1, count + 1), p=float(share))
    found = tested.confidence_interval()
    low, high = (None if isnan(end) else int(end) for end in (found.low, found.high))
    return low, high


def interval(values: Sequence[int], share: Fraction) -> list[Fraction | None]:
    ordered = sorted(values)
    known = ends(len(ordered), share)
    return [None if rank is None else Fraction(ordered[rank - 1], S) for rank in known]


def times(values: Sequence[int]) -> Row | None:
    if not values:
        return None
    ratios = {"p50": 500, "p90": 900, "p95": 950, "p99": 990, "p99.9": 999}
    shares = {name: Fraction(n, 1000) for name, n in ratios.items()}
    named = {name: Fraction(quantile(values, share), S) for name, share in shares.items()}
    return {
        "percentiles_s": {**named, "max": Fraction(max(values), S)},
        "intervals_s": {name: interval(values, share) for name, share in shares.items()},
        "mean_s": Fraction(sum(values), len(values) * S),
        "exact": True,
        "histogram": histogram(values),
    }


def histogram(values: Sequence[int]) -> Row:
    found: dict[int, int] = {}
    for value in values:
        found[bucket(value)] = found.get(bucket(value), 0) + 1
    return {
        "count": len(values),
        "sum_ns": sum(values),
        "min_ns": min(values),
        "max_ns": max(values),
        "buckets": sorted(found),
        "counts": [found[one] for one in sorted(found)],
    }


def bucket(value: int) -> int:
    """Return 64 s + r for which r x 2^s <= value < (r + 1) x 2^s, with r from 64 to 127."""
    power = 0
    while value >> power > 127:
        power += 1
    return 64 * power + (value >> power)


def over_time(run: Saved, undone: Sequence[Dealt]) -> tuple[int, list[Row]]:
    """Return the length of a segment in ns, and the kinds' rows."""
    # Kind, when it began or should have, and how long it took.
    every: list[tuple[str, int, int | None]] = [(kind, due, took) for kind, _, due, took in undone]
    scheduled = has_instants(run)
    for op in run.good:
        begin = op["start_ns"] if op["intended_ns"] is None else op["intended_ns"]
        since = op["intended_ns"] if scheduled else op["start_ns"]
        took = None if since is None else max(0, op["end_ns"] - since)
        every.append((op["kind"], begin, took))
    if not every:
        return S, []
    first, last = min(at for _, at, _ in every), max(at for _, at, _ in every)
    most = min(120, max(1, len(every) // 20))
    lengths = [step * 10**power for power in range(8, 14) for step in (1, 2, 5)]
    length = next((one for one in lengths if last - first + 1 <= one * most), lengths[-1])
    count = -(-(last - first + 1) // length)
    rows = []
    for kind in KINDS:
        mine = [(at, took) for name, at, took in every if name == kind]
        if not mine:
            continue
        there: list[list[int]] = [[] for _ in range(count)]
        late = [(due - first) // length for name, _, due, _ in undone if name == kind]
        for at, took in mine:
            if took is not None:
                there[(at - first) // length].append(took)
        rows.append(
            {
                "kind": kind,
                "count": [len(values) for values in there],
                "dropped": [late.count(place) for place in range(count)],
                "p50_s": [Fraction(quantile(v, Fraction(1, 2)), S) if v else None for v in there],
                "p99_s": [
                    Fraction(quantile(v, Fraction(99, 100)), S) if v else None for v in there
                ],
            }
        )
    return length, rows
