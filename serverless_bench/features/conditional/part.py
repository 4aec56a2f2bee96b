"""The part of a report about conditional writes, and about histories that cannot be.

It measures writes to shared keys, and checks the consistency of the store. Pure functions.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Final

import numpy as np
from msgspec import Struct, structs

from serverless_bench.base.units import NS_PER_S, format_count, format_number, format_seconds
from serverless_bench.features.conditional.linearizability import (
    AnsweredRead,
    Bounds,
    Fault,
    KeyHistory,
    PossibleWrite,
    Violation,
    lost_updates,
    violations,
)
from serverless_bench.features.conditional.load import ConditionalLoad
from serverless_bench.features.conditional.shared_keys import Pattern, launch_of
from serverless_bench.metrics.clock_offsets import Offsets
from serverless_bench.metrics.latency import is_largest
from serverless_bench.metrics.part import Part, Reduced, Rows, Section
from serverless_bench.metrics.summary import Summary
from serverless_bench.rundir.rows import Act, Ending
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import (
    ABSENT,
    Mask,
    Percentiles,
    distinct,
    is_one_of,
    is_text,
    largest_by,
    least_by,
    percentiles,
    sum_by,
)

MAX_REPORTED: Final = 50
"""Maximum number of violations in a report."""
_DRIFT: Final = 0.001
"""Maximum drift between two clocks while a function runs: NTP slews each of them by at most
0.5 ms/s (adjtime(3))."""
COMMITS: Final = ("increment", "claim", "append")
"""Kinds of operations that commit a value."""


class Contention(Struct, frozen=True, kw_only=True):
    """Conditional writes on shared keys; figures.toml defines each figure."""

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
    run: Run, measured: Mask, good: Mask, offsets: Offsets, *, elapsed_s: float | None
) -> Contention | None:
    """Return the results of contention on shared keys; None for other workloads.

    Parameters
    ----------
    run
        A run with uncorrected timestamps.
    measured, good
        Masks of operations that count, and of those among them that succeeded.
    offsets
        Evidence on the clocks.
    elapsed_s
        Duration of the run; None omits rates.
    """
    pattern = ConditionalLoad.narrow(run.job.load).pattern
    if not run.accesses:
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

    retries = int((writes & done[row]).sum()) - len(distinct(row[writes & done[row]]))
    histories = list(_histories(run))
    inconsistencies = list(_violations(run, offsets, histories))
    return Contention(
        pattern=pattern,
        contenders=run.job.max_concurrency * run.job.load.threads,
        keys=run.job.objects,
        commits=commits,
        # A write that the store lost was not committed.
        commits_per_s=commits / elapsed_s
        if commits and elapsed_s and not inconsistencies
        else None,
        commit_s=percentiles((operations["end_ns"] - operations["start_ns"])[done] / NS_PER_S),
        taken=int((good & kind).sum()) - commits,
        retries_per_commit=retries / commits if commits else None,
        refused=endings(Ending.REFUSED),
        conflicts=endings(Ending.CONFLICT),
        unknown_writes=endings(Ending.UNKNOWN),
        fairness=_fairness(run, measured & kind, done),
        violated_keys=len({violation.key for violation in inconsistencies}),
        lost_updates=sum(lost_updates(history) for history, _ in histories),
        violations=tuple(inconsistencies[:MAX_REPORTED]),
    )


def _fairness(run: Run, tried: Mask, done: Mask) -> float | None:
    """Return Jain's fairness index of the functions' commit rates over their own durations."""
    operations, count = run.operations, len(run.functions["index"])
    function = operations["function"]
    commits = sum_by(function[done], np.ones(int(done.sum()), dtype=np.int64), count)
    begin = least_by(function[tried], operations["start_ns"][tried], count)
    end = largest_by(function[tried], operations["end_ns"][tried], count)
    has_duration = end > begin
    rates = commits[has_duration] / (end - begin)[has_duration]
    return float(rates.sum() ** 2 / (len(rates) * (rates**2).sum())) if rates.any() else None


def _violations(
    run: Run, offsets: Offsets, histories: Sequence[tuple[KeyHistory, Sequence[int]]]
) -> Iterator[Violation]:
    """Yield the violations in the histories of the shared keys."""
    functions, index = run.functions, run.functions["index"]
    # A delivery that found its launch claimed did nothing, and has no evidence on the claim.
    is_recorded = (functions["start_ns"] != ABSENT) & (functions["duplicate"] == 0)
    recorded = set(
        zip(index[is_recorded].tolist(), functions["launch"][is_recorded].tolist(), strict=True)
    )
    clocks = dict(enumerate(_bounds(run, offsets)))

    def is_unrecorded(token: str) -> bool:
        launch = launch_of(token)
        return launch is not None and launch[0] < run.job.number and launch not in recorded

    complete = len({number for number, _ in recorded}) == run.job.number
    for history, refused in histories:
        for violation in violations(history, clocks, is_unrecorded):
            # Report functions by index, not by row.
            indexes = tuple(index[list(violation.functions)].tolist())
            yield structs.replace(violation, functions=indexes)
        if refused and complete and not history.writes:
            by = tuple(index[refused].tolist())
            yield Violation(key=history.key, fault=Fault.UNCLAIMED, versions=(), functions=by)


def _bounds(run: Run, offsets: Offsets) -> Iterator[Bounds]:
    """Yield the bounds of each clock error; infinite if unknown or contradictory."""
    sure = offsets.known & ~offsets.suspect
    drift_ns = (run.functions["end_ns"] - run.functions["start_ns"]) * _DRIFT
    low, high = offsets.low_ns - drift_ns, offsets.high_ns + drift_ns
    low, high = np.where(sure, low, -inf), np.where(sure, high, inf)
    yield from zip(low.tolist(), high.tolist(), strict=True)


def _histories(run: Run) -> Iterator[tuple[KeyHistory, list[int]]]:
    """Yield the history of each key, and the functions to which it was rejected as taken."""
    names = ("key", "act", "version", "base", "function", "start_ns", "end_ns", "ending")
    writes: dict[str, list[PossibleWrite]] = defaultdict(list)
    reads: dict[str, list[AnsweredRead]] = defaultdict(list)
    refused: dict[str, list[int]] = defaultdict(list)
    claims = ConditionalLoad.narrow(run.job.load).pattern == Pattern.CLAIM
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


_FAULTS: Final[Mapping[Fault, str]] = {
    Fault.FORKED: "version {0} was replaced more than once, by {rest}: an update is lost",
    Fault.PHANTOM: "version {0} was read, and no acknowledged write made it",
    Fault.STALE: "version {0} was seen when version {1} had been there before",
    Fault.UNCLAIMED: "it was rejected as taken, but no function holds it",
}


class _ContentionPart(Part[Contention]):
    name = "contention"
    after = "not_shown"

    def compute(self, reduced: Reduced) -> Contention | None:
        """Return the results of contention on shared keys."""
        return contention(
            *(reduced.run, reduced.measured, reduced.good, reduced.offsets),
            elapsed_s=reduced.elapsed_s,
        )

    def headline(self, figures: Contention) -> Iterable[str]:
        """Yield how the store was inconsistent, or that it was not."""
        if not figures.commits:
            return
        if not figures.violated_keys:
            yield f"no update lost: {format_count(figures.commits, 'commit')}"
        elif figures.lost_updates:
            yield f"at least {figures.lost_updates:,} acknowledged updates are LOST"
        else:
            yield f"{format_count(figures.violated_keys, 'key')} with an INCONSISTENT history"

    def brief(self, figures: Contention, summary: Summary) -> Rows:
        """Yield commits, and writes that others had made obsolete."""
        commits = format_count(figures.commits, "commit")
        refused = format_count(figures.refused, "write")
        yield "contention", f"{commits}, {refused} refused because the version was replaced"

    def tables(self, figures: Contention, summary: Summary) -> Iterable[Section]:
        """Yield a row; violations are among the problems."""
        times, retries = figures.commit_s, figures.retries_per_commit
        yield Section(
            title="contention",
            header=(
                *("pattern", "contenders", "keys", "commits", "per s", "p50", "p99"),
                *("retries each", "412", "409", "unknown", "taken", "fairness"),
            ),
            rows=(
                (
                    figures.pattern,
                    f"{figures.contenders:,}",
                    f"{figures.keys:,}",
                    f"{figures.commits:,}",
                    "-" if figures.commits_per_s is None else format_number(figures.commits_per_s),
                    format_seconds(None if times is None else times["p50"]),
                    "-"
                    if times is None or is_largest("p99", times["n"])
                    else format_seconds(times["p99"]),
                    "-" if retries is None else f"{retries:.2f}",
                    str(figures.refused),
                    str(figures.conflicts),
                    str(figures.unknown_writes),
                    str(figures.taken),
                    "-" if figures.fairness is None else f"{figures.fairness:.3f}",
                ),
            ),
            names=1,
        )

    def wrong(self, figures: Contention) -> Iterable[str]:
        """Return a line about each inconsistent history."""
        return map(_line, figures.violations)

    def violated_keys(self, figures: Contention) -> int:
        """Return the number of keys with an inconsistent history."""
        return figures.violated_keys


def _line(violation: Violation) -> str:
    versions = [version or "none" for version in violation.versions]
    text = _FAULTS[violation.fault].format(*versions, rest=" and ".join(versions[1:]))
    functions = ", ".join(map(str, dict.fromkeys(violation.functions)))
    return f"{violation.key}: {text} (functions {functions or 'without a record'})"


PART = _ContentionPart()
