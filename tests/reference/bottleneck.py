"""Bottleneck of each function, in fractions; lines through curves in floats."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from statistics import median
from typing import Any, Final

from tests.reference.latencies import quantile
from tests.reference.rows import Function, Row, S, Saved
from tests.reference.throughput import Near
from tests.reference.visibility import hides_writes

Point = tuple[float, float]
Bucket = tuple[float, float, float]
"""Burst, sustained rate and bytes."""
KINDS: Final = (
    *("launch", "client", "interpreter_lock", "schedule", "own_code", "other_functions"),
    *("function_network", "rate_limit", "retries", "pauses", "answers"),
    *("store_or_network", "unknown"),
)
FIGURES: Final = (
    *("functions", "rate_limit_of", "slots", "flow_share", "client_share", "lock_share"),
    *(
        "client_share_most",
        "workers_per_cpu",
        "launch_share",
        "generator_bytes_per_s",
        "burst_bytes",
        "sustained_bytes_per_s",
    ),
)


def bottleneck(run: Saved) -> Row:
    mine = [one for one in run.functions if one.status == "ok" and moved(one)]
    if not mine:
        return {**dict.fromkeys(FIGURES), "functions": {}, "slots": slots(run)}
    clients, locks = [client(run, one) for one in mine], [lock(run, one) for one in mine]
    launches = [launch(run, one, mine) for one in mine]
    flows = [flow(run, one) for one in mine]
    buckets = {n: found for n, one in enumerate(mine) if (found := bucket(run, one)) is not None}
    limits, scopes = limited(mine, buckets, [least for least, _ in flows])
    names = [
        verdict(run, one, launches[n], clients[n], locks[n], flows[n], limits.get(n))
        for n, one in enumerate(mine)
    ]
    unshaped = any(name == "rate_limit" and limits.get(n) is None for n, name in enumerate(names))
    if unshaped or run.end.get("neighbours"):
        scopes = ["connection", "function", "all"]
    is_named = "function_network" in names or "rate_limit" in names
    network = [buckets[n] for n in sorted(limits)] if is_named else []
    speeds = [one.record["generator_bytes_per_s"] for one in mine if one.record]
    return {
        "functions": {name: names.count(name) for name in KINDS if name in names},
        "rate_limit_of": scopes if "rate_limit" in names else None,
        "slots": slots(run),
        "flow_share": middle([most for _, most in flows]),
        "client_share": middle([least for least, _ in clients]),
        "client_share_most": None if shows_lanes(run) else middle([most for _, most in clients]),
        "workers_per_cpu": workers_per_cpu(run, mine),
        "lock_share": middle([share for share, _ in locks]),
        "launch_share": middle(launches),
        "generator_bytes_per_s": middle(speeds),
        # A burst is a difference of large numbers.
        "burst_bytes": near(middle([burst for burst, _, _ in network]), network),
        "sustained_bytes_per_s": middle([slope for _, slope, _ in network]),
    }


def workers_per_cpu(run: Saved, mine: Sequence[Function]) -> Fraction | None:
    cpus = run.header["provenance"].get("cpus")
    if not cpus or run.job.get("control") is not None:
        return None
    return Fraction(len({one.record["worker_id"] for one in mine if one.record}), cpus)


def slots(run: Saved) -> dict[str, Fraction] | None:
    """Return the time that the slots spent in each state, interval by interval."""
    lines = [one for one in run.functions if one.submitted_ns is not None]
    if not lines:
        return None
    asked = run.job["number"]
    states: list[tuple[str, int, int]] = []
    for one in lines:
        begun, done = one.submitted_ns, one.collected_ns
        assert begun is not None
        assert done is not None
        if one.record is None:
            states.append(("lost", begun, done))
            continue
        start = max(begun, one.record["start_ns"])
        end = max(start, one.record["end_ns"])
        loading = max(begun, start - (one.record["import_ns"] or 0))
        states += [
            ("work", start, end),
            ("delivery", end, max(end, done)),
            ("cold_start", loading, start),
            ("launch", begun, loading),
        ]
    first = min(one.submitted_ns for one in lines if one.submitted_ns is not None)
    last = max(one.collected_ns for one in lines if one.collected_ns is not None)
    cuts = {at for _, *ends in states for at in ends} | {first, last}
    edges = sorted(at for at in cuts if first <= at <= last)
    spent = dict.fromkeys(
        ("work", "lost", "delivery", "cold_start", "launch", "unfilled", "tail"), 0
    )
    for left, right in pairwise(edges):
        idle = min(run.job["concurrency"], asked)
        came = sum(
            one.launch == 0 and one.submitted_ns is not None and one.submitted_ns <= left
            for one in lines
        )
        for state in spent:
            if state == "unfilled":
                wanted = max(0, asked - came)
            elif state == "tail":
                wanted = idle
            else:
                wanted = sum(name == state and a <= left < b for name, a, b in states)
            taken = min(idle, wanted)
            idle -= taken
            spent[state] += taken * run.elapsed_ns(left, right)
    total = sum(spent.values())
    return {state: Fraction(time, total) for state, time in spent.items()} if total else None


def flow(run: Saved, one: Function) -> tuple[Fraction | None, Fraction | None]:
    """Return bounds of the share of the operations' time in which bytes flowed."""
    good = [op for op in one.operations if op["error"] is None and not op["warmup"] and op["bytes"]]
    if has_threads(run, one):
        return None, None
    part = run.job["transfer"]["part_size"]
    least = most = took = 0
    for op in good:
        first, sent = op["first_byte_ns"], op["last_byte_sent_ns"]
        if op["kind"] == "scan":
            tries = op["attempts"]
            if any(t["error"] is None and t["answered_ns"] is None for t in tries):
                return None, None
            flowing = sum(
                t["end_ns"] - t["answered_ns"] for t in tries if t["answered_ns"] is not None
            )
            least, most = least + flowing, most + flowing
            took += sum(t["end_ns"] - t["start_ns"] for t in tries)
            continue
        unseen = op["kind"] in {"get", "get_range"} and first is None
        if unseen or hides_writes(run, [op]) or (part is not None and op["bytes"] > part):
            return None, None
        carrying = [step["step_ns"] for step in op["steps"] if step["step_bytes"]]
        if first is not None:
            known = op["end_ns"] - first
        else:
            known = (op["end_ns"] if sent is None else sent) - op["start_ns"]
        high = low = min(sum(carrying), known)
        if first is None and sent is None and carrying:
            low -= min(carrying[-1], high)
        least, most = least + low, most + high
        took += op["end_ns"] - op["start_ns"]
    return (Fraction(least, took), Fraction(most, took)) if took > 0 else (None, None)


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
    flowing: tuple[Fraction | None, Fraction | None],
    limit: str | None,
) -> str:
    least, most = taken
    half = Fraction(1, 2)
    is_idle = most is not None and most < half
    answers = {
        "launch": launched is not None and launched > half,
        "client": least is not None and least >= Fraction(85, 100),
        "interpreter_lock": tried[1],
        "schedule": kept_up(one),
        "own_code": sleeps(run, one),
        "other_functions": waits(one),
        **({"unknown": True} if has_threads(run, one) and limit is None else {}),
        "retries": is_idle and failing(one) >= half,
        "pauses": pauses(run, one),
        "function_network": limit == "function_network",
        "rate_limit": limit == "rate_limit"
        or (is_idle and flowing[0] is not None and flowing[0] >= half),
        "answers": is_idle and flowing[1] is not None and flowing[1] < half,
        "store_or_network": is_idle,
        "unknown": True,
    }
    return next(name for name, is_so in answers.items() if is_so)


def sleeps(run: Saved, one: Function) -> bool:
    assert one.record is not None
    others = [op for op in one.operations if op["kind"] != "call"]
    flying = sum(op["end_ns"] - op["start_ns"] for op in others)
    long = one.record["end_ns"] - one.record["start_ns"]
    return bool(run.job["workload"] == "custom" and 2 * flying < long)


def waits(one: Function) -> bool:
    took = [(op["kind"], op["end_ns"] - op["start_ns"]) for op in one.operations]
    waited = sum(time for kind, time in took if kind == "wait")
    return bool(2 * waited > sum(time for _, time in took))


def idle_threads(job: Any) -> int:
    """Return how many threads of a function are dealt no piece of a write or a read."""
    if job["workload"] not in ("write", "read", "parquet"):
        return 0
    pieces, threads = range(job["objects"] * job["read_times"]), job["load"]["threads"]
    return sum(1 for thread in range(threads) if not pieces[thread::threads])


def pauses(run: Saved, one: Function) -> bool:
    if run.job["workload"] == "custom" or run.job["load"].get("array") is not None:
        return False
    if any(op["intended_ns"] is not None for each in run.functions for op in each.operations):
        return False
    begun = [op["start_ns"] for op in one.operations]
    busy = sum(max(0, min(op["end_ns"], max(begun)) - op["start_ns"]) for op in one.operations)
    threads = run.job["load"]["threads"] - idle_threads(run.job)
    time = min(threads, len(begun)) * (max(begun) - min(begun))
    record = one.record
    assert record is not None
    used = (Fraction(record["cpu_user_s"]) + Fraction(record["cpu_sys_s"])) * S
    slept = time - busy - used - (record["run_wait_ns"] or 0)
    return bool(record["cpus"] is not None and 2 * slept > time)


def failing(one: Function) -> Fraction:
    tries = [tried for op in one.operations for tried in op["attempts"]]
    failed = sum(t["end_ns"] - t["start_ns"] for t in tries if t["error"] not in (None, "hedged"))
    pauses = sum(t["wait_ns"] for t in tries)
    whole = sum(t["end_ns"] - t["start_ns"] for t in tries) + pauses
    return Fraction(failed + pauses, max(1, whole))


def launch(run: Saved, one: Function, mine: Sequence[Function]) -> Fraction | None:
    """Return launch over launch and work."""
    assert one.record is not None
    submitted = one.submitted_ns
    if submitted is None:
        return None
    if run.job["concurrency"] >= run.job["number"]:
        wave = [other.submitted_ns for other in mine if other.launch == one.launch]
        submitted = min(at for at in wave if at is not None)
    took = max(0, run.elapsed_ns(submitted, one.record["start_ns"]))
    return Fraction(took, took + max(1, one.record["end_ns"] - one.record["start_ns"]))


def wall(record: Row) -> int:
    return int(max(1, record["end_ns"] - record["start_ns"] - (record["barrier_wait_ns"] or 0)))


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
    most = max(processors, lanes, share or Fraction(0))
    return max(processors, lanes) if shows_lanes(run) else processors, most


def shows_lanes(run: Saved) -> bool:
    exact = run.header["provenance"].get("client", {}).get("attempts") == "exact"
    is_known = exact and run.job["load"].get("array") is None and run.job["workload"] != "custom"
    return bool(is_known and run.job.get("hedge") is None)


def has_threads(run: Saved, one: Function) -> bool:
    """Whether a user's function made requests at the same time."""
    spans = sorted((op["start_ns"], op["end_ns"]) for op in one.operations if op["kind"] != "call")
    together = any(later[0] < before[1] for before, later in pairwise(spans))
    return bool(run.job["workload"] == "custom" and together)


def lock(run: Saved, one: Function) -> tuple[Fraction | None, bool]:
    """Return how busy the interpreter lock was, and whether threads queued for it."""
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
    if not due or one.dropped:
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


def limited(
    mine: Sequence[Function], buckets: dict[int, Bucket], flows: Sequence[Fraction | None]
) -> tuple[dict[int, str], list[str]]:
    """Return the limit of the rate of functions, and the possible scopes of that limit."""
    published, alike, shared = set[int](), set[int](), set[int]()
    memory = {n: (mine[n].record or {})["memory_mib"] for n in buckets}
    beside = [float(at_work(one, mine)) for one in mine]
    for size in set(memory.values()):
        some = {n: one for n, one in buckets.items() if memory[n] == size}
        # Megabits: 625 for all; with a raised quota, on a line that starts there at 2,048 MB.
        raised = 625 + max(0, (size or 0) - 2048) * 2375 / 8192
        for n, (burst, slope, total) in some.items():
            is_near = any(abs(slope * 8 / 1e6 / rate - 1) <= 0.05 for rate in (625, raised))
            if size is not None and is_near and burst > 0.05 * total:
                published.add(n)
        flowing = {n: (flows[n] or 0) >= Fraction(1, 2) and n not in published for n in some}
        some = {n: one for n, one in some.items() if flowing[n]}
        alike |= {*as_steep(some, {n: slope for n, (_, slope, _) in some.items()})}
        shared |= {*as_steep(some, {n: slope * beside[n] for n, (_, slope, _) in some.items()})}
    scopes = ["connection", "function"] if alike else []
    if not alike or quantile(beside, Fraction(19, 20)) < 1.5 * quantile(beside, Fraction(1, 20)):
        scopes.append("all")
    limits = dict.fromkeys(published, "function_network")
    return limits | dict.fromkeys(alike or shared, "rate_limit"), scopes


def at_work(one: Function, mine: Sequence[Function]) -> Fraction:
    """Return the average number of active functions during one of them."""
    assert one.record is not None
    start, end = one.record["start_ns"], one.record["end_ns"]
    both = 0
    for other in mine:
        assert other.record is not None
        both += max(0, min(end, other.record["end_ns"]) - max(start, other.record["start_ns"]))
    return Fraction(both, max(1, end - start))


def as_steep(buckets: dict[int, Bucket], rates: dict[int, float]) -> list[int]:
    """Return which of some functions have the rate of most of them."""
    slopes = list(rates.values())
    if len(slopes) < 3:
        return []
    middle_rate = quantile(slopes, Fraction(1, 2))
    spread = (quantile(slopes, Fraction(19, 20)) - quantile(slopes, Fraction(1, 20))) / middle_rate
    burst = median(burst / total for burst, _, total in buckets.values())
    if spread > (0.1 if burst > 0.05 else 0.02):
        return []
    return [n for n, rate in rates.items() if abs(rate - middle_rate) <= 0.1 * middle_rate]
