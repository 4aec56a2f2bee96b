"""Expected report, figure by figure, from the rows: loops, integers and fractions.

Each function implements the definition of ``figures.toml`` again, without regard to speed.
``Near`` stands for a figure that may differ by a stated amount.
"""

import json
import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from tests.reference.bill import bill
from tests.reference.bottleneck import bottleneck, idle_threads
from tests.reference.contention import contention
from tests.reference.hedging import hedging
from tests.reference.invariants import wrong
from tests.reference.latencies import Number, latencies, quantile
from tests.reference.listings import listings
from tests.reference.rows import Function, Row, S, Saved, read
from tests.reference.scans import scans
from tests.reference.shuffling import shuffle
from tests.reference.throughput import Near, peak, steady
from tests.reference.visibility import hides, hides_failures, hides_writes, not_shown, shown

NOT_HERE: Final = ("estimate", "estimate_error", "unknown_at_most")
"""Fields of the bill that are forecasts, and not figures of the rows."""
GIB: Final = 1 << 30


def reference(path: Path, *, with_warmup: bool = False) -> Row:
    """Return the JSON report of a run directory."""
    run = read(path, with_warmup=with_warmup)
    functions, good, measured = run.functions, run.good, run.measured
    warm = [op for f in functions if f.counts for op in f.operations if op["warmup"]]
    moved = sum(op["bytes"] for op in good)
    span_ns = run.span_ns()
    whole = Fraction(moved * S, span_ns) if moved and span_ns else None
    withheld = wrong(run, whole)
    seen, missed = shown(run), not_shown(run)
    window = steady(run)
    statuses = [one.status for one in functions]
    model = run.header.get("simulated")
    report = {
        "report_schema": 1,
        "run_id": run.header["run_id"],
        "name": run.job["name"],
        "workload": run.job["workload"],
        "store": store(run) if model is None else f"none: simulated with {model}",
        "client": (run.job["load"].get("array") or {}).get("library", run.job["target"]["client"]),
        "executor": run.job["executor"],
        "simulated": model,
        "requested": run.job["number"],
        **{name: statuses.count(name) for name in ("ok", "failed", "lost", "duplicate")},
        "unrecorded_launches": unrecorded(run),
        "ended": run.ended,
        "cleaned": run.cleaned,
        "skipped_lines": run.skipped,
        "bytes": moved,
        "verified_bytes": sum(op["verified_bytes"] for op in good),
        "corrupt_objects": sum(1 for op in measured + warm if op["bad_ranges"]),
        "bad_bytes": sum(op["bad_bytes"] for op in measured + warm),
        "unknown_objects": sum(1 for op in good if is_read(op) and op["size"] is None),
        "peak_1s_bytes_per_s": None if withheld or hides_writes(run, good) else peak(run, S),
        "peak_5s_bytes_per_s": None if withheld or hides_writes(run, good) else peak(run, 5 * S),
        "steady_bytes_per_s": None if withheld else window[0],
        "steady_window_s": None if withheld else window[1],
        "throughput_bytes_per_s": None if withheld else whole,
        "elapsed_s": Fraction(span_ns, S) if run.span() else None,
        "paused_s": paused(run),
        "suspended_s": Fraction(run.slept_ns, S) or None,
        "makespan_s": makespan(run),
        "completion_s": {
            name: done(run, share)
            for name, share in (("p50", 50), ("p90", 90), ("p99", 99), ("max", 100))
        },
        "per_function_bytes_per_s": None if withheld else percentiles(rates(run)),
        "ttfb_s": None
        if "first_byte" not in seen
        else percentiles(between(good, "start_ns", "first_byte_ns")),
        "ack_s": None
        if "acknowledged" not in seen
        else percentiles(between(good, "last_byte_sent_ns", "end_ns")),
        "latency_s": percentiles(between(good, "start_ns", "end_ns")),
        "latency_without_backoff_s": percentiles([Fraction(service_ns(op), S) for op in good]),
        "operations": len(measured),
        "failed_operations": len([op for op in measured if op["error"] is not None]),
        "warmup_operations": len(warm),
        "warmup_bytes": sum(op["bytes"] for op in warm),
        **tries(run, measured, seen),
        **({"offered_bytes": None, "retried_bytes": None} if hides_failures(run) else {}),
        "errors": tally(one.error for one in functions if one.status in {"failed", "lost"}),
        "cold_starts": sum(
            1 for f in functions if f.counts and f.record and f.record["cold_start"]
        ),
        **processors(run, moved),
        "planned_concurrency": min(run.job["concurrency"], run.job["number"]),
        "object_bytes": run.job["size"],
        "clocks": clocks(run),
        "barrier": barrier(run),
        "bottleneck": bottleneck(run),
        "missing_functions": None if withheld else missing_functions(run, whole),
        "withheld": withheld,
        "bad_ranges": bad_ranges(run),
        "threads": run.job["load"]["threads"],
        "idle_threads": idle_threads(run.job),
        "latencies": latencies(run),
        "libraries": libraries(run),
        "not_shown": missed,
        "stability": run.end.get("stability"),
    }
    good_of_kinds = [r["ok"] for r in report["latencies"]["by_kind"] if r["size_class"] is None]
    per_s = Fraction(sum(good_of_kinds) * S, span_ns) if span_ns else None
    report["ops_per_s"] = None if withheld else per_s or None
    if withheld:
        times = report["latencies"]
        times["achieved_per_s"] = None
        for row in times["by_kind"]:
            row["operations_per_s"] = row["bytes_per_s"] = None
    parts = {"deliveries": deliveries(run), "bill": bill(run)}
    parts["cloudwatch"] = cloudwatch(path)
    parts["scans"] = scans(
        run, percentiles, Fraction(span_ns, S) if run.span() and not withheld else None
    )
    parts["listings"] = listings(
        run, percentiles, Fraction(span_ns, S) if run.span() and not withheld else None
    )
    parts["hedging"] = hedging(run, parts["bill"], quantile)
    parts["existing"] = existing(run)
    parts["shuffle"] = shuffle(run)
    parts["contention"] = contention(run, percentiles)
    parts["neighbours"] = run.end.get("neighbours")
    parts["stopped"] = run.end.get("stopped")
    waves = math.ceil(run.job["number"] / report["planned_concurrency"])
    lasts = run.job["duration"]
    parts["batches_s"] = None if lasts is None or waves == 1 else waves * lasts
    return report | {name: part for name, part in parts.items() if part is not None}


def existing(run: Saved) -> Row | None:
    """Return the numbers of listed objects, which the driver saves as options."""
    if run.job.get("existing") is None:
        return None
    left = {name: run.job.get(name, 0) for name in ("cold_objects", "unread_objects")}
    return {"chosen_objects": run.keys, **left}


def store(run: Saved) -> str:
    target, array = run.job["target"], run.job["load"].get("array")
    if array is not None and array["path"] is not None:
        return f"files in {array['path']}"
    found = f"{target['bucket']} at {target['endpoint_url']}"
    found += "".join(f", {url}" for url in run.job["endpoints"])
    return found if target["store"] is None else f"{found} ({target['store']} store)"


def is_read(op: Row) -> bool:
    return op["kind"] in {"get", "get_range"}


def percentiles(
    values: Sequence[Number], shares: Sequence[int] = (1, 5, 50, 95, 99)
) -> dict[str, Number] | None:
    """Return percentiles by nearest rank, and how many values they are of."""
    if not values:
        return None
    named = {f"p{share}": quantile(values, Fraction(share, 100)) for share in shares}
    return {**named, "n": len(values)}


def between(ops: Sequence[Row], begin: str, end: str) -> list[Number]:
    there = [op for op in ops if op[begin] is not None and op[end] is not None]
    return [Fraction(op[end] - op[begin], S) for op in there]


def service_ns(op: Row) -> int:
    waits = sum(tried["wait_ns"] for tried in op["attempts"])
    return int(max(0, op["end_ns"] - op["start_ns"] - waits))


def tally(names: Any) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in names:
        found[name] = found.get(name, 0) + 1
    return found


def paused(run: Saved) -> Fraction:
    there = run.span()
    if there is None:
        return Fraction(0)
    return Fraction(there[1] - there[0] - run.elapsed_ns(*there), S)


def makespan(run: Saved) -> Fraction | None:
    submitted = [f.submitted_ns for f in run.functions if f.submitted_ns is not None]
    collected = [f.collected_ns for f in run.functions if f.collected_ns is not None]
    if not submitted:
        return None
    return Fraction(run.elapsed_ns(min(submitted), max(collected)), S)


def good_of(one: Function) -> list[Row]:
    return [op for op in one.operations if op["error"] is None and not op["warmup"]]


def done(run: Saved, share: int) -> Fraction | None:
    there = run.span()
    if there is None:
        return None
    ends = []
    for one in run.functions:
        if one.status == "ok" and one.record:
            mine = good_of(one)
            # A function without operations is done when it ends.
            end = max(op["end_ns"] for op in mine) if mine else one.record["end_ns"]
            ends.append(max(end, there[0]))
    needed = next(n for n in range(10**9) if 100 * n >= share * run.job["number"])
    if needed > len(ends):
        return None
    return Fraction(run.elapsed_ns(there[0], sorted(ends)[needed - 1]), S)


def rates(run: Saved) -> list[Number]:
    """Return the rate of each function that is ok and moved bytes."""
    found: list[Number] = []
    for one in run.functions:
        mine = good_of(one)
        moved = sum(op["bytes"] for op in mine)
        if one.status == "ok" and moved:
            took = max(op["end_ns"] for op in mine) - min(op["start_ns"] for op in mine)
            found.append(Fraction(moved * S, max(1, took)))
    return found


def tries(run: Saved, measured: Sequence[Row], seen: set[str]) -> Row:
    made = [(op, tried) for op in measured for tried in op["attempts"]]
    # One that another request made superfluous did not fail.
    failed = [tried for _, tried in made if tried["error"] not in {None, "hedged"}]
    throttled = [(op, tried) for op, tried in made if tried["error"] == "throttled"]
    first = min((tried["start_ns"] for _, tried in made), default=0)
    seconds = tally(max(0, tried["end_ns"] - first) // S for _, tried in throttled)
    reads = [op for op in run.good if is_read(op)]
    gets = [(op, tried) for op in reads for tried in op["attempts"] if tried["request"] == "get"]
    brought = None if any(hides(run, *get) for get in gets) else sum(t["bytes"] for _, t in gets)
    useful = sum(op["bytes"] for op in reads)
    return {
        "attempts": len(made),
        "failed_attempts": len(failed),
        "throttled": len(throttled),
        "throttled_peak_per_s": max(seconds.values(), default=0),
        "throttled_by_prefix": tally(op["key"][: op["key"].rfind("/") + 1] for op, _ in throttled),
        "errors_of_attempts": tally(tried["error"] for tried in failed),
        "offered_bytes": sum(tried["bytes"] for _, tried in made),
        "retried_bytes": sum(tried["bytes"] for tried in failed),
        "new_connections": sum(1 for _, tried in made if not tried["reused"])
        if "connection" in seen
        else None,
        "read_amplification": None if brought is None or not useful else Fraction(brought, useful),
    }


def processors(run: Saved, moved: int) -> Row:
    mine = [one for one in run.functions if one.counts and one.record]
    telling = [one.record for one in mine if one.record and one.record["max_rss_bytes"]]
    used = [measured_cpu_s(one) for one in mine]
    cpu = None
    if mine and moved and len(telling) == len(mine) and None not in used:
        cpu = sum(value for value in used if value is not None) / Fraction(moved, GIB)
    return {
        "workers": len({record["worker_id"] for record in telling}),
        "cpu_s_per_gib": cpu,
        "peak_rss_bytes": max((record["max_rss_bytes"] for record in telling), default=None),
    }


def measured_cpu_s(one: Function) -> Fraction | None:
    assert one.record is not None
    warm = [op["end_ns"] for op in one.operations if op["warmup"]]
    others = [op["start_ns"] for op in one.operations if not op["warmup"]]
    if one.record["measured_cpu_ns"] is not None:
        mixed = warm and others and max(warm) > min(others)
        return None if mixed else Fraction(one.record["measured_cpu_ns"], S)
    if warm or one.record["barrier_wait_ns"] is not None:
        return None
    return Fraction(one.record["cpu_user_s"]) + Fraction(one.record["cpu_sys_s"])


def clocks(run: Saved) -> Row:
    widths = [one.high_ns - one.low_ns for one in run.functions if one.known and not one.suspect]
    return {
        "width_p50_s": quantile(widths, Fraction(1, 2)) / S if widths else None,
        "width_max_s": Fraction(max(widths), S) if widths else None,
        "corrected": sum(1 for one in run.functions if one.shift_ns),
        "suspect": sum(1 for one in run.functions if one.suspect),
    }


def barrier(run: Saved) -> Row | None:
    if run.job.get("barrier") is None:
        return None
    mine = [one.record for one in run.functions if one.counts and one.record]
    waits = [record["barrier_wait_ns"] for record in mine if record["barrier_wait_ns"] is not None]
    reported = run.end.get("barrier", {})
    return {
        "expected": reported.get("expected"),
        "announced": reported.get("announced"),
        "late": sum(1 for record in mine if record["barrier_late"]),
        "wait_s": percentiles([Fraction(wait, S) for wait in waits]),
    }


def missing_functions(run: Saved, whole: Fraction | None) -> Row | None:
    missing = sum(1 for one in run.functions if one.status in {"failed", "lost"})
    known = rates(run)
    if not missing or not known or whole is None:
        return None
    moved = {id(f): sum(op["bytes"] for op in good_of(f)) for f in run.functions if f.counts}
    of_ok = sum(moved[id(f)] for f in run.functions if f.status == "ok")
    most = of_ok + missing * max(moved.values())
    middle = None
    if len(known) > missing:
        # The two medians if the missing functions come before the others, and after them.
        total = len(known) + missing
        slow = sorted([Fraction(-1)] * missing + known)[(total - 1) // 2]
        fast = sorted(known + [Fraction(10**30)] * missing)[total // 2]
        middle = [slow, fast]
    begin, end = run.span() or (0, 0)
    given_up = [one.collected_ns or 0 for one in run.functions if one.status == "lost"]
    waited_ns = run.elapsed_ns(begin, max(end, *given_up, 0))
    return {
        "count": missing,
        "throughput_bytes_per_s": [
            whole * run.span_ns() / waited_ns,
            max(whole, Fraction(most * S, run.span_ns())),
        ],
        "per_function_p50_bytes_per_s": middle,
    }


def bad_ranges(run: Saved) -> list[Row]:
    names = (
        *("key", "found", "found_key_hash", "offset", "length", "bad_bytes"),
        *("found_generation", "found_offset"),
    )
    rows = [r for f in run.functions if f.counts for op in f.operations for r in op["bad_ranges"]]
    return [{"found_key": None, **{name: row[name] for name in names}} for row in rows[:50]]


def libraries(run: Saved) -> list[Row]:
    watched = [(op, usage) for op in run.good for usage in op["usages"]]
    found = []
    for kind in dict.fromkeys(op["kind"] for op, _ in watched):
        mine = [(op, usage) for op, usage in watched if op["kind"] == kind]
        size = sum(op["bytes"] for op, _ in mine)
        user = sum((Fraction(usage["cpu_user_s"]) for _, usage in mine), Fraction(0))
        system = sum((Fraction(usage["cpu_sys_s"]) for _, usage in mine), Fraction(0))
        grown = []
        for op, usage in mine:
            before, peak_rss = usage["rss_before_bytes"], usage["rss_peak_bytes"]
            if op["bytes"] and before is not None and peak_rss is not None:
                grown.append(Fraction(max(0, peak_rss - before), op["bytes"]))
        ratio = None
        if grown:
            ratio = {"min": min(grown), "p50": quantile(grown, Fraction(1, 2)), "max": max(grown)}
        found.append(
            {
                "kind": kind,
                "count": len(mine),
                "bytes": size,
                "memory_ratio": ratio,
                **{
                    n: largest(usage[n] for _, usage in mine)
                    for n in ("rss_peak_bytes", "threads_peak")
                },
                "cpu_user_s": user,
                "cpu_sys_s": system,
                "cpu_s_per_gib": (user + system) / Fraction(size, GIB) if size else None,
            }
        )
    return found


def largest(values: Any) -> int | None:
    return max((value for value in values if value is not None), default=None)


def cloudwatch(path: Path) -> Row | None:
    file = path / "cloudwatch.json"
    metrics: Row | None = json.loads(file.read_text()) if file.exists() else None
    return metrics


def deliveries(run: Saved) -> Row | None:
    functions = run.functions
    events = [one for one in functions if one.record and one.record["delivery"] is not None]
    refusals = sum(one.refusals for one in functions)
    if not events and not refusals and not run.waves:
        return None
    received = [one for one in functions if one.record]
    lags = [
        Fraction(one.collected_ns - one.record["end_ns"], S)
        for one in events
        if one.record and not one.record["duplicate"] and one.collected_ns is not None
    ]
    born = [one for one in received if one.record and one.record["born_ns"] is not None]
    requests = run.end.get("requests")
    looks = sum((requests or {}).get(name, 0) for name in ("get", "list"))
    firsts = [first_byte(one, shown(run)) for one in born if one.operations]
    return {
        "received": len(received),
        "refusals": refusals,
        "not_started": sum(1 for one in functions if one.not_started),
        "relaunches": [
            {
                "number": wave["number"],
                "count": wave["count"],
                "after_s": Fraction(wave["created_ns"] - run.header["created_ns"], S),
            }
            for wave in run.waves
        ],
        "requests_per_function": Fraction(looks, run.job["number"]) if requests else None,
        "lag_s": percentiles(lags),
        "import_s": percentiles([Fraction(o.record["import_ns"], S) for o in born if o.record]),
        "cold_start_s": percentiles([at for at in firsts if at is not None]),
    }


def first_byte(one: Function, seen: set[str]) -> Fraction | None:
    """Return birth to first byte; of a write, to when its first request has a connection."""
    assert one.record is not None
    first = one.operations[0]
    if is_read(first):
        if first["first_byte_ns"] is None or "first_byte" not in seen:
            return None
        return Fraction(first["first_byte_ns"] - one.record["born_ns"], S)
    if "connection" not in seen:
        return None
    steps, at = first["steps"], first["start_ns"]
    if steps and steps[0]["step_bytes"] == 0:
        at += steps[0]["step_ns"]
    return Fraction(at - one.record["born_ns"], S)


__all__ = ["NOT_HERE", "Near", "reference"]


def unrecorded(run: Saved) -> int:
    """Return the number of launches that are known to have left no record."""
    lines = [one for one in run.functions if one.launch is not None]
    lines = [one for one in lines if not (one.record and one.record["duplicate"])]
    came = {(one.index, one.launch) for one in lines if one.record}
    lost = {(one.index, one.launch) for one in lines if not one.record and not one.not_started}
    count, first = len(lost - came), 0
    for started, last in run.killed:
        arrived = sum(1 for one in lines if one.launch is not None and first <= one.launch <= last)
        count += max(0, started - arrived)
        first = last + 1
    return count
