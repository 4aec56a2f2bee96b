"""Compare the operations of functions with their plan."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, zip_longest
from pathlib import Path

from serverless_bench.base.errors import PluginError, UsageError
from serverless_bench.job.abilities import RunsCode, rounds_of
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.policy import variants
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.job.workload import Trait, succeeding
from serverless_bench.rundir.files import read_lines
from serverless_bench.rundir.listing import KEYS, LEDGER
from serverless_bench.rundir.rows import Columns

_Row = tuple[str, str, int, int, bool]
"""An operation: kind, key, offset of a range and its length or 0, and whether it is warm-up."""
_RANGE = OperationKind.GET_RANGE


class Plan:
    """The planned operations of the functions of a run, assuming that each of them succeeds.

    Parameters
    ----------
    job, run_id
        Job and run id, from which the operations are derived.
    keys
        Objects that the run was given to read.
    """

    def __init__(self, job: JobSpec, run_id: str, keys: Sequence[str]) -> None:
        self._job = job
        self._run_id = run_id
        self._keys = keys

    def deviation(self, index: int, launch: int, record: Columns, *, dropped: bool) -> str | None:
        """Return the difference between an ok function and the plan; None if it has none.

        Parameters
        ----------
        index, launch
            Index and launch of the function.
        record
            Operations of the function.
        dropped
            Whether some of its scheduled operations did not start.
        """
        kinds = record["kind"]
        lengths = (
            moved if kind == _RANGE else 0
            for kind, moved in zip(kinds, record["bytes"], strict=True)
        )
        columns = kinds, record["key"], record["offset"], lengths, record["warmup"]
        # How often a function has to wait depends on the others.
        done = [row for row in zip(*columns, strict=True) if row[0] != OperationKind.WAIT]
        try:
            (invocation,) = invocation_specs(
                self._job,
                run_id=self._run_id,
                created_ns=0,
                keys=self._keys,
                wave=launch,
                indexes=(index,),
            )
            planned = _planned(invocation)
            if dropped or self._job.duration is not None:
                # The progress of each thread is unknown, but bounded by that of all threads.
                return _unplanned(done, islice(planned, len(done) * len(_threads(invocation))))
            return _difference(done, list(islice(planned, len(done) + 1)))
        except (ArithmeticError, LookupError, TypeError, ValueError, UsageError):
            # No function can have been launched with such a job.
            return None


def plan_of(path: Path, job: JobSpec, run_id: str) -> Plan | None:
    """Return the plan of the run in a directory; None if it is unknown.

    Runs of other tools and of a user's function have no plan.
    """
    if job.executor == "imported":
        return None
    workload = job.declared
    try:
        job.check_work()
    except (PluginError, UsageError):
        return None
    if job.reads_given:
        keys = read_lines(path / KEYS)
        return Plan(job, run_id, keys) if keys else None
    ledger = path / LEDGER
    has_ledger = (
        Trait.CREATES_OBJECTS in workload.traits and ledger.is_file() and ledger.stat().st_size > 0
    )
    return Plan(job, run_id, ()) if has_ledger and not isinstance(workload, RunsCode) else None


def _threads(invocation: InvocationSpec) -> list[tuple[InvocationSpec, int]]:
    """Return the threads of an invocation, and those that take their place in changed blocks."""
    return [(own, thread) for own in variants(invocation) for thread in range(own.load.threads)]


def _planned(invocation: InvocationSpec) -> Iterator[_Row]:
    """Yield the operations of an invocation, taking turns between its threads."""
    turns = zip_longest(*(_of_thread(own, thread) for own, thread in _threads(invocation)))
    return (row for turn in turns for row in turn if row is not None)


def _of_thread(invocation: InvocationSpec, thread: int) -> Iterator[_Row]:
    """Yield the operations of a thread: those of its preparation, then those of its rounds."""
    workload = invocation.declared
    prepared = workload.prepare(invocation, thread)
    for number, stream in enumerate(chain((prepared,), rounds_of(workload, invocation, thread))):
        warmup, row = number <= invocation.warm_up, None
        for spec in succeeding(workload, stream):
            length = spec.length or 0 if spec.kind is _RANGE else 0
            row = (spec.kind, spec.key, spec.offset, length, warmup)
            if spec.kind is not OperationKind.WAIT:
                yield row
        if number and (row is None or not (warmup or invocation.duration)):
            return


def _difference(done: list[_Row], planned: list[_Row]) -> str | None:
    """Describe an operation that was left out or not planned; None without a difference."""
    if done == planned:
        return None
    left_out = next(iter(Counter(planned) - Counter(done)), None)
    if left_out is not None:
        return f"left out the {_text(left_out)}"
    return _unplanned((Counter(done) - Counter(planned)).elements(), ())


def _unplanned(done: Iterable[_Row], planned: Iterable[_Row]) -> str | None:
    """Describe a measured operation that is not in ``planned``; None if there is none."""
    # Closing operations depend on the earlier operations, and count as warm-up.
    unplanned = dict.fromkeys(row for row in done if not row[-1])
    for row in planned:
        if not unplanned:
            return None
        unplanned.pop(row, None)
    return next((f"did the {_text(row)}, which was not planned" for row in unplanned), None)


def _text(row: _Row) -> str:
    kind, key, offset, length, _ = row
    part = f"{length} bytes from {offset} of " if length else ""
    return f"{kind} of {part}{key}"
