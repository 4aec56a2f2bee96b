"""How long a run took, without the time in which nobody was at work. Pure.

A run that was interrupted and resumed, or whose driver's machine was suspended, has a stretch in
which no driver ran and no function worked: nobody waited for the store then. Such pauses count
in no duration that has both of their ends in it. What lies between two functions while a driver
is there (a launch, say) is a part of the run.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from serverless_bench.analysis.timeline import measured_operations
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.tables import ABSENT, EARLIEST, Ints, Mask, Table, is_text
from serverless_bench.units import NS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Elapsed:
    """A clock that stands still while nobody is at work."""

    begins: Ints
    ends: Ints
    """Of the pauses, ascending, on the driver's clock."""

    def paused_ns(self, start_ns: int, end_ns: int) -> int:
        """Return how much of a stretch were pauses."""
        return end_ns - start_ns - self.between_ns(start_ns, end_ns)

    def between_each_ns(self, start_ns: Ints, end_ns: Ints) -> Ints:
        """Return how long each of several stretches was without its pauses."""
        inside = np.minimum.outer(self.ends, end_ns) - np.maximum.outer(self.begins, start_ns)
        return np.asarray(end_ns - start_ns - np.maximum(inside, 0).sum(axis=0), dtype=np.int64)

    def between_ns(self, start_ns: int, end_ns: int) -> int:
        """Return how long a stretch was without its pauses."""
        return int(self.between_each_ns(np.asarray(start_ns), np.asarray(end_ns)))


def elapsed(run: Run) -> Elapsed:
    """Return the pauses of a run whose workers' instants are on the driver's clock.

    A pause is what remains of a stretch without a driver at work once every stretch is taken off
    in which a function worked that left a record, of whatever status.
    """
    pauses: list[tuple[int, int]] = []
    if absences := sorted((*run.downtimes, *run.suspensions)):
        there = run.functions["start_ns"] != ABSENT
        starts, ends = (run.functions[name][there] for name in ("start_ns", "end_ns"))
        order = np.argsort(starts, kind="stable")
        for down_ns, up_ns in absences:
            pauses += _gaps(starts[order], ends[order], down_ns, up_ns)
    begins, stops = np.asarray(pauses, dtype=np.int64).reshape(-1, 2).T
    return Elapsed(begins=begins, ends=stops)


def _gaps(starts: Ints, ends: Ints, down_ns: int, up_ns: int) -> Iterator[tuple[int, int]]:
    """Yield what intervals, in order of their starts, leave of another one."""
    free_from = down_ns
    touching = (ends > down_ns) & (starts < up_ns)
    for start, end in zip(starts[touching].tolist(), ends[touching].tolist(), strict=True):
        if start > free_from:
            yield free_from, start
        free_from = max(free_from, end)
    if free_from < up_ns:
        yield free_from, up_ns


def span(run: Run) -> tuple[int, int] | None:
    """Return when the first measured operation began and the last one ended; None if none did."""
    # Failed ones count: whoever started the run waited for them as well.
    measured, operations = measured_operations(run), run.operations
    if not measured.any():
        return None
    return int(operations["start_ns"][measured].min()), int(operations["end_ns"][measured].max())


def span_ns(run: Run) -> int:
    """Return how long the span of a run is without its pauses; 0 without a span."""
    found = span(run)
    return 0 if found is None else elapsed(run).between_ns(*found)


def makespan_s(functions: Table, time: Elapsed) -> float | None:
    """Return the time from the first submission to the last collection; None if there is none."""
    there = functions["submitted_ns"] != ABSENT
    if not there.any():
        return None
    first = int(functions["submitted_ns"][there].min())
    return time.between_ns(first, int(functions["collected_ns"][there].max())) / NS_PER_S


def done_s(run: Run, good: Mask, time: Elapsed) -> dict[str, float | None]:
    """Return when a share of the functions was done, by name; None if so many never were.

    Parameters
    ----------
    run
        Its workers' instants are on the driver's clock.
    good
        Which operations succeeded and are measured.
    time
        Its pauses.
    """
    names: dict[str, float | None] = {"t50": None, "t90": None, "t99": None, "t100": None}
    is_ok = is_text(run.functions["status"], "ok")
    there = span(run)
    if there is None or not is_ok.any():
        return names
    # A function whose share of the work was nothing is done when it ends.
    idle = np.ones(len(is_ok), dtype=np.bool_)
    idle[run.operations["function"][good]] = False
    last = np.where(idle, run.functions["end_ns"], EARLIEST)
    np.maximum.at(last, run.operations["function"][good], run.operations["end_ns"][good])
    done = np.sort(last[is_ok])
    for name in names:
        needed = -(-run.job.invocations * int(name[1:]) // 100)
        if needed <= len(done):
            at = max(int(done[needed - 1]), there[0])
            names[name] = time.between_ns(there[0], at) / NS_PER_S
    return names
