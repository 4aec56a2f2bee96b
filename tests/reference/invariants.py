"""Impossible records: the number of reasons to withhold a headline."""

from collections.abc import Sequence
from fractions import Fraction

from tests.reference.making import planned_key
from tests.reference.rows import Function, Row, S, Saved
from tests.reference.throughput import at_work, best
from tests.reference.visibility import hides_writes

_SENT = {"append_array", "put", "write_array"}
_RECEIVED = {"get", "get_range", "read_array", "scan"}


def wrong(run: Saved, whole: Fraction | None) -> list[str]:
    """Return the names of contradictions, in the order of a report."""
    found = {
        "no byte is missing": sum(s["step_bytes"] for op in run.good for s in op["steps"])
        != sum(op["bytes"] for op in run.good),
        "objects are whole": any(not_whole(op) for op in run.good),
        "ranges are inside": any(beyond(op) for op in run.good),
        "verified bytes were moved": any(op["verified_bytes"] > op["bytes"] for op in run.good),
        "attempts carry the bytes": too_few_tries(run),
        "time runs forward": any(backward(op) for op in run.good),
        "functions were awake": run.slept_ns > 0 and any(map(slept, run.functions)),
        "operations within their function": any(outside(one) for one in run.functions),
        "steps within their operation": any(
            sum(step["step_ns"] for step in op["steps"]) > op["end_ns"] - op["start_ns"]
            for op in run.good
        ),
        "the plan was done": any(deviates(run, one) for one in run.functions),
        "Little's law": crowded(run),
        "the network carries it": too_fast(run, whole),
        "durations are possible": any(
            op["bytes"] * S > 200 * 10**9 * max(1, op["end_ns"] - op["start_ns"]) for op in run.good
        ),
    }
    return [name for name, is_wrong in found.items() if is_wrong]


def not_whole(op: Row) -> bool:
    known = op["kind"] in {"put", "get"} and op["size"] is not None
    return bool(known and op["bytes"] != op["size"])


def beyond(op: Row) -> bool:
    known = op["kind"] == "get_range" and op["size"] is not None
    return bool(known and op["offset"] + op["bytes"] > op["size"])


def too_few_tries(run: Saved) -> bool:
    if run.header["provenance"]["client"]["attempts"] != "exact":
        return False
    mine = [op for one in run.functions if one.counts for op in one.operations]
    carried = sum(t["bytes"] for op in mine for t in op["attempts"] if t["error"] is None)
    return bool(carried < sum(o["bytes"] for o in mine if o["kind"] in {"put", "get", "get_range"}))


def backward(op: Row) -> bool:
    inside = [op["first_byte_ns"], op["last_byte_sent_ns"]]
    order = all(op["start_ns"] <= at <= op["end_ns"] for at in inside if at is not None)
    return op["end_ns"] < op["start_ns"] or not order


def outside(one: Function) -> bool:
    good = [op for op in one.operations if op["error"] is None and not op["warmup"]]
    return one.counts and any(
        one.record is not None
        and (op["start_ns"] < one.record["start_ns"] or op["end_ns"] > one.record["end_ns"])
        for op in good
    )


def deviates(run: Saved, one: Function) -> bool:
    """Tell whether a successful function made other puts than those of its write."""
    job, load = run.job, run.job["load"]
    is_plain = job["workload"] == "write" and job["size"] is not None
    is_plain = is_plain and not (load["mix"] or load["split"])
    if one.status != "ok" or one.launch is None or not (is_plain and run.has_ledger):
        return False
    prefix, rounds = job["target"]["prefix"], {True: job["warm_up"], False: 1}
    planned = [
        ("put", planned_key(prefix, one.index, one.launch, number, job["size"]), warmup)
        for warmup, times in rounds.items()
        for number in [*range(job["objects"])] * times
    ]
    # A plan knows which were of the warm-up, whatever a report includes.
    done = [(op["kind"], op["key"], op["warmup"] or "warmed" in op) for op in one.operations]
    strange = any(row not in planned for row in done if not row[2])
    if job["duration"] is not None or one.dropped:
        return strange
    missing = any(done.count(row) < planned.count(row) for row in planned)
    too_often = any(done.count(row) > planned.count(row) for row in done if not row[2])
    return strange or missing or too_often


def slept(one: Function) -> bool:
    """Tell whether a function's wall clock and monotonic clock moved by different times."""
    record = one.record
    if not record or record["wall_start_ns"] <= 0:
        return False
    by_wall = record["wall_end_ns"] - record["wall_start_ns"]
    return bool(abs(by_wall - (record["end_ns"] - record["start_ns"])) > S // 10)


def crowded(run: Saved) -> bool:
    if run.job["workload"] == "custom" or not run.good:
        return False
    threads, blocks = run.job["load"]["threads"], run.job.get("interventions")
    if blocks and "thread" in blocks["changes"]:
        threads += max(1, round(0.25 * threads))
    places = min(run.job["concurrency"], run.job["number"]) * threads
    busy = sum(op["end_ns"] - op["start_ns"] for op in at_work(run))
    return bool(busy * 100 > places * 102 * max(1, run.span_ns()))


def too_fast(run: Saved, whole: Fraction | None) -> bool:
    link = run.job["network_rate"]
    if link is None or whole is None:
        return False

    def above(ops: Sequence[Row], limit: Fraction) -> bool:
        moved = sum(op["bytes"] for op in ops)
        second = None if hides_writes(run, ops) else best(run, ops, S)
        return moved * S > limit * run.span_ns() or (second is not None and second.value > limit)

    limit = Fraction(link) * Fraction(102, 100)
    return (
        above([op for op in run.good if op["kind"] in _SENT], limit)
        or above([op for op in run.good if op["kind"] in _RECEIVED], limit)
        or above(run.good, 2 * limit)
    )
