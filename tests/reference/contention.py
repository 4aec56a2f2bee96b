"""Expected report on a run that contends, from the rows."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

from tests.reference.rows import Function, Row, S, Saved

CHECKED_ELSEWHERE: Final = ("commits_per_s", "lost_updates", "violated_keys", "violations")
"""Fields that test_linearizability.py of the feature compares with every possible order."""
_COMMITS: Final = {"increment", "claim", "append"}


def contention(run: Saved, percentiles: Callable[[Any], Any]) -> Row | None:
    """Return the figures of its ``figures.toml`` except those that are checked elsewhere."""
    job, load = run.job, run.job["load"]
    if load.get("pattern") is None:
        return None
    tried = [op for op in run.measured if op["kind"] in _COMMITS]
    good = [op for op in tried if op["error"] is None]
    done = [op for op in good if op["count"] > 0]
    writes = [one for op in tried for one in op["accesses"] if one["act"] == "write"]
    again = sum(max(0, len(_writes(op)) - 1) for op in done)

    def ended(how: str) -> int:
        return sum(1 for one in writes if one["ending"] == how)

    return {
        "pattern": load["pattern"],
        "contenders": min(job["concurrency"], job["number"]) * load["threads"],
        "keys": job["objects"],
        "commits": len(done),
        "commit_s": percentiles([Fraction(op["end_ns"] - op["start_ns"], S) for op in done]),
        "taken": len(good) - len(done),
        "retries_per_commit": Fraction(again, len(done)) if done else None,
        "refused": ended("refused"),
        "conflicts": ended("conflict"),
        "unknown_writes": ended("unknown"),
        "fairness": _fairness(run),
    }


def _writes(op: Row) -> list[Row]:
    return [one for one in op["accesses"] if one["act"] == "write"]


def _fairness(run: Saved) -> Fraction | None:
    rates = [rate for one in run.functions if (rate := _rate(one)) is not None]
    if not any(rates):
        return None
    total, squares = sum(rates, Fraction(0)), sum((rate * rate for rate in rates), Fraction(0))
    return total * total / (len(rates) * squares)


def _rate(one: Function) -> Fraction | None:
    """Return the commits of a function per nanosecond of its own time."""
    mine = [op for op in one.operations if op["kind"] in _COMMITS and not op["warmup"]]
    if not one.counts or not mine:
        return None
    took = max(op["end_ns"] for op in mine) - min(op["start_ns"] for op in mine)
    done = sum(1 for op in mine if op["error"] is None and op["count"] > 0)
    return Fraction(done, took) if took > 0 else None
