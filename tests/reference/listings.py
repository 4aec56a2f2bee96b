"""What a report should say of listings, from the rows."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from tests.reference.rows import Row, S, Saved


def listings(
    run: Saved, percentiles: Callable[[Any], Any], elapsed_s: Fraction | None
) -> Row | None:
    """Return the figures of its ``figures.toml``; None without a listing that counts."""
    if run.job["workload"] != "list":
        return None
    tried = [op for op in run.measured if op["kind"] == "list_all"]
    if not tried:
        return None
    done = [op for op in tried if op["error"] is None]
    pages = [[t for t in op["attempts"] if t["error"] is None] for op in done]
    keys = sum(op["count"] for op in done)
    every = [
        one for f in run.functions if f.record for op in f.operations for one in op["accesses"]
    ]
    problems = list(dict.fromkeys((one["key"], one["version"]) for one in every))
    spans = [Fraction(t["end_ns"] - t["start_ns"], S) for of in pages for t in of]
    firsts = [
        Fraction(of[0]["end_ns"] - op["start_ns"], S)
        for op, of in zip(done, pages, strict=True)
        if of
    ]
    return {
        "prefixes": len(done),
        "keys": keys,
        "keys_per_s": keys / elapsed_s if elapsed_s else None,
        "pages": len(spans),
        "first_page_s": percentiles(firsts),
        "page_s": percentiles(spans),
        "verified": run.job["size"] is not None or run.job["load"]["sizes"] is not None,
        "wrong_keys": len({key for key, _ in problems}),
        "problems": [{"key": key, "problem": problem} for key, problem in problems[:50]],
    }
