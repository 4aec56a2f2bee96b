"""What functions got that wrote to the same keys, and whether the store kept its word. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Final

import numpy as np

from serverless_bench.analysis.clock_offsets import Offsets
from serverless_bench.analysis.linearizability import (
    AnsweredRead,
    Bounds,
    Fault,
    KeyHistory,
    PossibleWrite,
    Violation,
    lost_updates,
    violations,
)
from serverless_bench.analysis.throughput import planned_at_once
from serverless_bench.job.shared_keys import Pattern, launch_of
from serverless_bench.rundir.access import Act, Ending
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import (
    ABSENT,
    Mask,
    Percentiles,
    is_one_of,
    is_text,
    largest_by,
    least_by,
    percentiles,
    sum_by,
)
from serverless_bench.units import NS_PER_S

MAX_REPORTED: Final = 50
"""Violations that a report lists."""
_DRIFT: Final = 0.001
"""Of two clocks against each other while a function runs: NTP slews each by 0.5 ms a second at
most (adjtime(3))."""
COMMITS: Final = ("increment", "claim", "append")
"""Kinds of operations that commit something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contention:
    """Conditional writes on shared keys; analysis/figures.toml defines each figure."""

    pattern: str
    contenders: int
    keys: int
    commits: int
    commits_per_s: float | None
    commit_s: Percentiles | None
    taken: int
    retries_per_commit: float | None
    refused: int
    conflicts: int
    unknown_writes: int
    fairness: float | None
    violated_keys: int
    lost_updates: int
    violations: tuple[Violation, ...]


def contention(
    run: Run, measured: Mask, good: Mask, offsets: Offsets, *, span_s: float | None
) -> Contention | None:
    """Return what a run got that contended; None of other runs.

    Parameters
    ----------
    run
        With its instants as they were recorded.
    measured, good
        Operations that count, and those that succeeded besides.
    offsets
        What is known of the clocks.
    span_s
        Time of the run; None if there is to be no rate.
    """
    pattern = run.job.load.pattern
    if pattern is None or not run.accesses:
        return None
    operations = run.operations
    kind = is_one_of(operations["kind"], COMMITS)
    done = good & kind & (operations["count"] > 0)
    commits = int(done.sum())
    row = run.operation_rows(run.accesses)
    writes = is_text(run.accesses["act"], Act.WRITE)
    counted = writes & (measured & kind)[row]

    def endings(ending: Ending) -> int:
        return int((counted & is_text(run.accesses["ending"], ending)).sum())

    again = int((writes & done[row]).sum()) - len(np.unique(row[writes & done[row]]))
    histories = list(_histories(run))
    found = list(_violations(run, offsets, histories))
    return Contention(
        pattern=pattern,
        contenders=planned_at_once(run),
        keys=run.job.objects,
        commits=commits,
        # What a store forgets was not committed.
        commits_per_s=commits / span_s if commits and span_s and not found else None,
        commit_s=percentiles((operations["end_ns"] - operations["start_ns"])[done] / NS_PER_S),
        taken=int((good & kind).sum()) - commits,
        retries_per_commit=again / commits if commits else None,
        refused=endings(Ending.REFUSED),
        conflicts=endings(Ending.CONFLICT),
        unknown_writes=endings(Ending.UNKNOWN),
        fairness=_fairness(run, measured & kind, done),
        violated_keys=len({one.key for one in found}),
        lost_updates=sum(lost_updates(history) for history, _ in histories),
        violations=tuple(found[:MAX_REPORTED]),
    )


def _fairness(run: Run, tried: Mask, done: Mask) -> float | None:
    """Return Jain's index of the functions' rates of commits, each over its own time."""
    operations, count = run.operations, len(run.functions["index"])
    function = operations["function"]
    commits = sum_by(function[done], np.ones(int(done.sum()), dtype=np.int64), count)
    begin = least_by(function[tried], operations["start_ns"][tried], count)
    end = largest_by(function[tried], operations["end_ns"][tried], count)
    there = end > begin
    rates = commits[there] / (end - begin)[there]
    if not rates.any():
        return None
    return float(rates.sum() ** 2 / (len(rates) * (rates**2).sum()))


def _violations(
    run: Run, offsets: Offsets, histories: Sequence[tuple[KeyHistory, Sequence[int]]]
) -> Iterator[Violation]:
    """Yield what is wrong with the histories of the shared keys, key by key."""
    functions, index = run.functions, run.functions["index"]
    # A delivery that found its launch taken did nothing, and says nothing of who did.
    there = (functions["start_ns"] != ABSENT) & (functions["duplicate"] == 0)
    recorded = set(zip(index[there].tolist(), functions["launch"][there].tolist(), strict=True))
    clocks = dict(enumerate(_bounds(run, offsets)))

    def is_unrecorded(token: str) -> bool:
        launch = launch_of(token)
        return launch is not None and launch[0] < run.job.number and launch not in recorded

    complete = len({number for number, _ in recorded}) == run.job.number
    for history, refused in histories:
        for violation in violations(history, clocks, is_unrecorded):
            # Functions are called by their indexes, and not by their rows.
            named = tuple(index[list(violation.functions)].tolist())
            yield replace(violation, functions=named)
        if refused and complete and not history.writes:
            by = tuple(index[refused].tolist())
            yield Violation(key=history.key, fault=Fault.UNCLAIMED, versions=(), functions=by)


def _bounds(run: Run, offsets: Offsets) -> Iterator[Bounds]:
    """Yield how far each clock may be off; without evidence, or against it, any amount."""
    sure = offsets.known & ~offsets.suspect
    drift_ns = (run.functions["end_ns"] - run.functions["start_ns"]) * _DRIFT
    low, high = offsets.low_ns - drift_ns, offsets.high_ns + drift_ns
    low, high = np.where(sure, low, -inf), np.where(sure, high, inf)
    yield from zip(low.tolist(), high.tolist(), strict=True)


def _histories(run: Run) -> Iterator[tuple[KeyHistory, list[int]]]:
    """Yield what was done at each key, and which functions were refused it as taken."""
    names = ("key", "act", "version", "base", "function", "start_ns", "end_ns", "ending")
    writes: dict[str, list[PossibleWrite]] = defaultdict(list)
    reads: dict[str, list[AnsweredRead]] = defaultdict(list)
    refused: dict[str, list[int]] = defaultdict(list)
    claims = run.job.load.pattern is Pattern.CLAIM
    for key, act, version, base, function, start, end, ending in zip(
        *(run.accesses[name].tolist() for name in names), strict=True
    ):
        if act == Act.READ:
            reads[key].append(AnsweredRead(version, base, function, start, end))
        elif ending in (Ending.DONE, Ending.UNKNOWN) and version is not None:
            until = end if ending == Ending.DONE else inf
            writes[key].append(PossibleWrite(version, base, function, start, until))
        elif ending == Ending.REFUSED and claims:
            refused[key].append(function)
    for key in dict.fromkeys((*writes, *reads, *refused)):
        yield KeyHistory(key, writes[key], reads[key]), refused[key]
