"""What a report should say of a shuffle, from the rows and the price list."""

import re
from collections.abc import Sequence
from fractions import Fraction

from tests.reference.bill import FREE, GET_CLASS, bill, milliseconds, place, price_of
from tests.reference.rows import Function, Row, S, Saved

PLANNED = ("planned_requests", "planned_end_s")
"""Fields of a phase that are forecasts, and not figures of the rows."""


def shuffle(run: Saved) -> Row | None:
    """Return the figures of its ``figures.toml``; None for another job."""
    job, load = run.job, run.job["load"]
    if job["workload"] != "shuffle":
        return None
    mappers = [one for one in run.functions if one.index < load["mappers"]]
    reducers = [one for one in run.functions if one.index >= load["mappers"]]
    waits = [op for one in reducers + mappers for op in mine(one) if op["kind"] == "wait"]
    ends = ends_of(mappers)
    late = Fraction(0)
    dollars = Fraction(0)
    for one in run.functions:
        for op in mine(one):
            if op["kind"] == "wait" and ends:
                begin = max(op["start_ns"], ends[(len(ends) - 1) // 2])
                spent = Fraction(max(0, min(op["end_ns"], ends[-1]) - begin), S * load["threads"])
                late += spent
                assert one.record is not None
                dollars += spent * (one.record["memory_mib"] or 0) / 1024
    billed = bill(run)
    lost = lost_of(run, reducers)
    return {
        "phases": [phase(run, "map", mappers), phase(run, "reduce", reducers)],
        "partitions": load["mappers"] * load["reducers"],
        "lost": len(lost),
        "lost_partitions": lost[:1000],
        "waited_s": Fraction(
            sum(op["end_ns"] - op["start_ns"] for op in waits), S * load["threads"]
        ),
        "waited_for_stragglers_s": late if ends else None,
        "stragglers_dollars": None
        if not ends or billed is None
        else dollars * price_of("lambda", f"{billed['architecture']}_gb_s"),
    }


def mine(one: Function) -> list[Row]:
    return [op for op in one.operations if not op["warmup"]] if one.counts else []


def ends_of(functions: Sequence[Function]) -> list[int]:
    return sorted(max(op["end_ns"] for op in mine(one)) for one in functions if mine(one))


def phase(run: Saved, name: str, functions: Sequence[Function]) -> Row:
    tried = [t for one in functions for op in one.operations for t in op["attempts"]]
    counts: dict[str, int] = {}
    for attempt in sorted(tried, key=lambda attempt: str(attempt["request"])):
        counts[attempt["request"]] = counts.get(attempt["request"], 0) + 1
    good = [op for one in functions for op in mine(one) if op["error"] is None]
    starts = [op["start_ns"] for one in run.functions for op in mine(one)]
    ends = ends_of(functions)
    return {
        "phase": name,
        "requests": counts,
        "throttled": sum(1 for attempt in tried if attempt["error"] == "throttled"),
        "bytes": sum(op["bytes"] for op in good),
        "end_s": Fraction(ends[-1] - min(starts), S) if ends else None,
        "straggler_s": Fraction(ends[-1] - ends[(len(ends) - 1) // 2], S) if ends else None,
        "dollars": cost(run, functions, tried),
    }


def cost(run: Saved, functions: Sequence[Function], tried: Sequence[Row]) -> Fraction | None:
    billed = bill(run)
    if billed is None:
        return None
    found, outside = Fraction(0), place(run)[1]
    key = price_of("kms", "request") * bool(run.job["target"].get("uses_kms"))
    for attempt in tried:
        if attempt["request"] in FREE or (attempt["status"] or 0) >= 500:
            continue
        kind = "get" if attempt["request"] in GET_CLASS else "put"
        found += price_of("s3", kind) * (not outside) + key
    for record in [one.record for one in functions if one.record]:
        if record["memory_mib"] is not None:
            gb_s = Fraction(milliseconds(run, record) * record["memory_mib"], 1000 * 1024)
            found += gb_s * price_of("lambda", f"{billed['architecture']}_gb_s")
            found += price_of("lambda", "request")
    return found


def lost_of(run: Saved, reducers: Sequence[Function]) -> list[Row]:
    """Return the partitions without a successful read, in order."""
    load, found = run.job["load"], []
    for mapper in range(load["mappers"]):
        for reducer in range(load["reducers"]):
            errors: list[str | None] = []
            waits: list[str | None] = []
            for one in reducers:
                if one.index - load["mappers"] != reducer:
                    continue
                for op in mine(one):
                    if op["kind"] == "wait":
                        waits.append(op["error"])
                    elif op["kind"] in {"get", "get_range"} and writer(op["key"]) == mapper:
                        errors.append(op["error"])
            if None not in errors:
                error = (errors or waits or [None])[-1]
                found.append({"mapper": mapper, "reducer": reducer, "error": error})
    return found


def writer(key: str) -> int | None:
    name = re.search(r"/[0-9a-f]{24}([0-9a-f]{8})\.[0-9]+$", key)
    return int(name.group(1), 16) if name else None
