"""How long operations took: rows by kind and size, histograms, and segments over time."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from tests.reference.rows import Row, S, Saved

KIB: Final = 1024
EDGES: Final = (
    *((0, "0 B"), (8 * KIB, "1 B-8 KiB"), (64 * KIB, "8-64 KiB"), (512 * KIB, "64-512 KiB")),
    *((4 * KIB**2, "512 KiB-4 MiB"), (32 * KIB**2, "4-32 MiB"), (256 * KIB**2, "32-256 MiB")),
    (2 * KIB**3, "256 MiB-2 GiB"),
)
"""Classes by their upper bounds, which are in them."""
CLASSES: Final = (*(name for _, name in EDGES), "above 2 GiB")
KINDS: Final = (
    *("put", "get", "get_range", "head", "list", "delete", "delete_many", "copy"),
    *("write_array", "append_array", "read_array", "call"),
)
NO_SIZE: Final = ("call", "delete", "delete_many", "head", "list")


def latencies(run: Saved) -> Row:
    if not run.measured:
        return {
            "open_loop": False,
            "asked_per_s": None,
            "span_s": None,
            "by_kind": [],
            "segment_s": None,
            "over_time": [],
        }
    rows = []
    for kind in KINDS:
        mine = [op for op in run.measured if op["kind"] == kind]
        rows += [row(run, kind, None, mine)] if mine else []
        names = sorted({op["key"] for op in mine}) if kind == "call" else CLASSES
        for name in names:
            some = [op for op in mine if (op["key"] if kind == "call" else size_class(op)) == name]
            rows += [row(run, kind, name, some)] if some else []
    length, segments = over_time(run)
    return {
        "open_loop": is_open(run),
        "asked_per_s": run.job["load"]["rate_per_s"],
        "span_s": Fraction(run.span_ns(), S),
        "by_kind": rows,
        "segment_s": Fraction(length, S) if segments else None,
        "over_time": segments,
    }


def is_open(run: Saved) -> bool:
    every = [op for one in run.functions for op in one.operations]
    return any(op["intended_ns"] is not None for op in every)


def size_class(op: Row) -> str | None:
    """Return the class of what moved; of a copy, and of what failed, of the object."""
    failed = op["error"] is not None
    if op["kind"] in NO_SIZE or (failed and op["kind"] == "get_range"):
        return None
    size = op["size"] if failed or op["kind"] == "copy" else op["bytes"]
    if size is None:
        return None
    return next((name for edge, name in EDGES if size <= edge), CLASSES[-1])


def row(run: Saved, kind: str, size: str | None, mine: Sequence[Row]) -> Row:
    good = [op for op in mine if op["error"] is None]
    moved, span = sum(op["bytes"] for op in good), run.span_ns()
    due = [op for op in good if op["intended_ns"] is not None]
    latency = [max(0, op["end_ns"] - op["start_ns"]) for op in good]
    waits = [sum(tried["wait_ns"] for tried in op["attempts"]) for op in good]
    service = [max(0, op["end_ns"] - op["start_ns"] - w) for op, w in zip(good, waits, strict=True)]
    return {
        "kind": kind,
        "size_class": size,
        "count": len(good),
        "failed": len(mine) - len(good),
        "keys": sum(op["count"] for op in good),
        "bytes": moved,
        "operations_per_s": Fraction(len(good) * S, span) if good and span else None,
        "bytes_per_s": Fraction(moved * S, span) if moved and span else None,
        "latency": times(latency),
        "service": times(service) if service != latency else None,
        "response": times([max(0, op["end_ns"] - op["intended_ns"]) for op in due]),
        "queueing": times([max(0, op["start_ns"] - op["intended_ns"]) for op in due]),
    }


def quantile(values: Sequence[int], share: Fraction) -> Fraction:
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low, high = int(place), min(int(place) + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def times(values: Sequence[int]) -> Row | None:
    if not values:
        return None
    shares = {"p50": 500, "p90": 900, "p95": 950, "p99": 990, "p99.9": 999}
    named = {name: quantile(values, Fraction(n, 1000)) / S for name, n in shares.items()}
    return {
        "percentiles_s": {**named, "max": Fraction(max(values), S)},
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


def over_time(run: Saved) -> tuple[int, list[Row]]:
    """Return the length of a segment in ns, and the kinds' rows."""

    def begin(op: Row) -> int:
        at: int = op["start_ns"] if op["intended_ns"] is None else op["intended_ns"]
        return at

    good = run.good
    if not good:
        return S, []
    first, last = min(map(begin, good)), max(map(begin, good))
    most = min(120, max(1, len(good) // 20))
    lengths = [step * 10**power for power in range(8, 14) for step in (1, 2, 5)]
    length = next((one for one in lengths if last - first + 1 <= one * most), lengths[-1])
    count = -(-(last - first + 1) // length)
    rows = []
    for kind in KINDS:
        mine = [op for op in good if op["kind"] == kind]
        if not mine:
            continue
        took: list[list[int]] = [[] for _ in range(count)]
        for op in mine:
            since = op["intended_ns"] if is_open(run) else op["start_ns"]
            if since is not None:
                took[(begin(op) - first) // length].append(max(0, op["end_ns"] - since))
        rows.append(
            {
                "kind": kind,
                "count": [len(values) for values in took],
                "p50_s": [quantile(v, Fraction(1, 2)) / S if v else None for v in took],
                "p99_s": [quantile(v, Fraction(99, 100)) / S if v else None for v in took],
            }
        )
    return length, rows
