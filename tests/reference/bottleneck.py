"""What bounded each function, in fractions; lines through curves in floats."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from statistics import median
from typing import Final

from tests.reference.rows import Function, Row, S, Saved
from tests.reference.throughput import Near
from tests.reference.visibility import hides_writes

Point = tuple[float, float]
Bucket = tuple[float, float, float]
"""Burst, sustained rate and bytes."""
KINDS: Final = (
    *("launch", "client", "interpreter_lock", "schedule", "function_network", "store"),
    "unknown",
)


def bottleneck(run: Saved) -> Row:
    mine = [one for one in run.functions if one.status == "ok" and moved(one)]
    clients, locks = [client(run, one) for one in mine], [lock(run, one) for one in mine]
    launches = [launch(run, one, mine) for one in mine]
    buckets = {n: found for n, one in enumerate(mine) if (found := bucket(run, one)) is not None}
    alike = sorted(limited(mine, buckets))
    names = [
        verdict(run, one, asked, taken, tried, is_limited=number in alike)
        for number, (one, asked, taken, tried) in enumerate(
            zip(mine, launches, clients, locks, strict=True)
        )
    ]
    network = [buckets[n] for n in alike] if "function_network" in names else []
    speeds = [one.record["generator_bytes_per_s"] for one in mine if one.record]
    return {
        "functions": {name: names.count(name) for name in KINDS if name in names},
        "client_share": middle([least for least, _ in clients]),
        "lock_share": middle([share for share, _ in locks]),
        "launch_share": middle(launches),
        "generator_bytes_per_s": middle(speeds),
        # A burst is a difference of large numbers.
        "burst_bytes": near(middle([burst for burst, _, _ in network]), network),
        "sustained_bytes_per_s": middle([slope for _, slope, _ in network]),
    }


def middle(values: Sequence[Fraction | float | None]) -> Fraction | None:
    known = [Fraction(value) for value in values if value is not None]
    return median(known) if known else None


def near(value: Fraction | None, network: Sequence[Bucket]) -> Near | None:
    most = max((Fraction(total) for _, _, total in network), default=Fraction(0))
    return None if value is None else Near(value, most / 10**9)


def moved(one: Function) -> int:
    good = [op for op in one.operations if op["error"] is None and not op["warmup"]]
    return sum(op["bytes"] for op in good)


def verdict(
    run: Saved,
    one: Function,
    launched: Fraction | None,
    taken: tuple[Fraction | None, Fraction | None],
    tried: tuple[Fraction | None, bool],
    *,
    is_limited: bool,
) -> str:
    least, most = taken
    if launched is not None and launched > Fraction(1, 2):
        return "launch"
    if least is not None and least >= Fraction(85, 100):
        return "client"
    if tried[1]:
        return "interpreter_lock"
    if kept_up(one):
        return "schedule"
    if is_limited:
        return "function_network"
    return "store" if most is not None and most < Fraction(1, 2) else "unknown"


def launch(run: Saved, one: Function, mine: Sequence[Function]) -> Fraction | None:
    """Return launch over launch and work."""
    assert one.record is not None
    submitted = one.submitted_ns
    if submitted is None:
        return None
    if run.job["concurrency"] >= run.job["invocations"]:
        wave = [other.submitted_ns for other in mine if other.launch == one.launch]
        submitted = min(at for at in wave if at is not None)
    took = max(0, run.elapsed_ns(submitted, one.record["start_ns"]))
    return Fraction(took, took + max(1, one.record["end_ns"] - one.record["start_ns"]))


def wall(record: Row) -> int:
    return int(max(1, record["end_ns"] - record["start_ns"] - (record["gate_wait_ns"] or 0)))


def shares_threads(run: Saved) -> bool:
    return bool(run.job["load"]["threads"] > 1 or run.job["transfer"]["connections"] > 1)


def client(run: Saved, one: Function) -> tuple[Fraction | None, Fraction | None]:
    """Return bounds of the share of its time that the client of a function took."""
    record = one.record
    assert record is not None
    if record["cpus"] is None or (shares_threads(run) and record["interpreter_ns"] is None):
        return None, None
    used = (Fraction(record["cpu_user_s"]) + Fraction(record["cpu_sys_s"])) * S
    memory, given = record["memory_mib"], Fraction(record["cpus"])
    if memory is not None:
        given = min(given, Fraction(memory, 1769))
    processors = min(Fraction(1), used / (wall(record) * given))
    tries = [tried for op in one.operations for tried in op["attempts"]]
    flying = sum(max(0, tried["end_ns"] - tried["start_ns"]) for tried in tries)
    awake = used + (record["run_wait_ns"] or 0)
    lanes = min(Fraction(1), awake / max(flying, wall(record)))
    share, _ = lock(run, one)
    exact = run.header["provenance"].get("client", {}).get("attempts") == "exact"
    is_known = exact and run.job["load"]["array"] is None and run.job["workload"] != "function"
    most = max(processors, lanes, share or Fraction(0))
    return max(processors, lanes) if is_known else processors, most


def lock(run: Saved, one: Function) -> tuple[Fraction | None, bool]:
    """Return how busy the interpreter's lock was, and whether threads queued for it."""
    assert one.record is not None
    if not shares_threads(run):
        return None, False
    kept, delayed = None, None
    used = one.record["interpreter_ns"]
    if used is not None and not run.job["target"]["endpoint_url"].startswith("https:"):
        kept = min(Fraction(1), Fraction(used, wall(one.record)))
    if (one.record["lock_probes"] or 0) >= 8:
        delayed = Fraction(one.record["lock_delayed"], one.record["lock_probes"])
    share = max((part for part in (kept, delayed) if part is not None), default=None)
    is_kept = kept is not None and kept >= Fraction(3, 4)
    return share, is_kept or (delayed is not None and delayed >= Fraction(1, 2))


def kept_up(one: Function) -> bool:
    due = [op for op in one.operations if op["intended_ns"] is not None]
    if not due or one.overdue:
        return False
    first, last = (end(op["intended_ns"] for op in due) for end in (min, max))
    late = max(op["end_ns"] for op in due) - last
    return bool(last > first and 20 * late <= last - first)


def curve(run: Saved, one: Function) -> list[Point]:
    """Return seconds since the start of a function, and the bytes that had moved by then."""
    good = [op for op in one.operations if op["error"] is None and not op["warmup"]]
    good = [op for op in good if not hides_writes(run, [op])]
    start = min((op["start_ns"] for op in good), default=0)
    found = []
    for op in good:
        at = op["start_ns"]
        for step in op["steps"]:
            at += step["step_ns"]
            found.append((at - start, step["step_bytes"]))
    points, total = [(0.0, 0.0)], 0
    for at, size in sorted(found, key=lambda point: point[0]):
        total += size
        points.append((at / S, float(total)))
    return points


def bucket(run: Saved, one: Function) -> Bucket | None:
    """Return the bucket that a curve shows, if it ends in a straight line."""
    points = curve(run, one)
    total = points[-1][1]
    stop = next(at for at, there in points if there == total)
    if len(points) < 6 or not stop:
        return None
    grid = [stop * n / 199 for n in range(200)]
    height = [by_then(points, at) for at in grid]
    for first in range(0, 140, 4):
        slope, off = line(grid[first:], height[first:])
        far = max(
            abs(y - slope * x - off) for x, y in zip(grid[first:], height[first:], strict=True)
        )
        if slope > 0 and far <= 0.02 * total:
            later = first + (200 - first) // 4
            slope, off = line(grid[later:], height[later:])
            return max(0.0, off), slope, total
    return None


def by_then(points: Sequence[Point], at: float) -> float:
    for (left, low), (right, high) in pairwise(points):
        if left <= at < right:
            return low + (high - low) * (at - left) / (right - left)
    return next(there for when, there in reversed(points) if when <= at)


def line(across: Sequence[float], up: Sequence[float]) -> tuple[float, float]:
    """Return slope and intercept of the line of least squares."""
    x, y = sum(across) / len(across), sum(up) / len(up)
    products = sum((a - x) * (b - y) for a, b in zip(across, up, strict=True))
    slope = products / sum((a - x) ** 2 for a in across)
    return slope, y - slope * x


def limited(mine: Sequence[Function], buckets: dict[int, Bucket]) -> set[int]:
    """Return which functions ran into a limit that each has for itself, by memory size."""
    found: set[int] = set()
    memory = {n: (mine[n].record or {})["memory_mib"] for n in buckets}
    for size in set(memory.values()):
        some = {n: one for n, one in buckets.items() if memory[n] == size}
        found |= {*as_steep(some)}
        if size is None:
            continue
        # Megabits: 625 for all; or, once raised, on a line from there at 2,048 MB.
        raised = 625 + max(0, size - 2048) * 2375 / 8192
        for n, (burst, slope, total) in some.items():
            near_one = any(abs(slope * 8 / 1e6 / rate - 1) <= 0.05 for rate in (625, raised))
            if near_one and burst > 0.05 * total:
                found.add(n)
    return found


def as_steep(buckets: dict[int, Bucket]) -> list[int]:
    """Return which of some functions are as fast as most of them."""
    slopes = sorted(slope for _, slope, _ in buckets.values())
    if len(slopes) < 3:
        return []

    def at(share: float) -> float:
        place = share * (len(slopes) - 1)
        low = int(place)
        high = min(low + 1, len(slopes) - 1)
        return slopes[low] + (slopes[high] - slopes[low]) * (place - low)

    spread = (at(0.95) - at(0.05)) / at(0.5)
    burst = median(burst / total for burst, _, total in buckets.values())
    if spread > (0.1 if burst > 0.05 else 0.02):
        return []
    return [n for n, (_, slope, _) in buckets.items() if abs(slope - at(0.5)) <= 0.1 * at(0.5)]
