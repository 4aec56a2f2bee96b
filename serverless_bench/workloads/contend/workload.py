"""Conditional writes on keys that all functions share: who is first, and is nothing lost.

Three patterns, by what the next write depends on:

increment
    A register is read and written back with ``If-Match``: compare and swap. It is how a
    catalog's pointer is moved to the next state of a table, as Iceberg does it.
claim
    A key is written with ``If-None-Match: *``: the first one has it.
append
    The next manifest of a log is written with ``If-None-Match: *``, as Delta Lake's
    protocol does it: whoever comes second reads what is new, and tries the number after it.

``worker.contention`` performs them; here is which keys there are, and who tries which.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from serverless_bench.errors import UsageError
from serverless_bench.job.load import Load
from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.job.shared_keys import MAX_BYTES, Pattern, manifest_key, shared_key
from serverless_bench.job.workload import Stream, Workload

if TYPE_CHECKING:
    from serverless_bench.job.spec import InvocationSpec, JobSpec
    from serverless_bench.rundir.record import OperationRow
    from serverless_bench.worker.operation_context import Performer

_KIND: Final = 0
_KEY: Final = 1
_ERROR: Final = 12
_COUNT: Final = 16
"""Where it stands in an ``OperationRow``, as the others."""


class Contend(Workload):
    """Operations of one pattern on ``objects`` keys that all functions share."""

    settings = ("threads", "operations", "pattern", "backoff", "prefix")
    load = ("threads", "operations", "pattern", "backoff")
    about = "pattern"
    default_number = 4
    creates_objects = True
    is_conditional = True
    hue = "brown"
    most_bytes = MAX_BYTES
    not_again = (
        "the others have left the keys that they contended for: what is missing is not launched"
        " again"
    )

    def kinds(self, load: Load) -> Mapping[OperationKind, float]:
        """Return the kind of the pattern, which has its name."""
        return {} if load.pattern is None else {OperationKind(load.pattern): 1.0}

    def without_end(self, load: Load) -> str:
        """Return that an increment has none."""
        return "an increment" if load.pattern is Pattern.INCREMENT else ""

    def check(self, job: "JobSpec") -> None:
        """Refuse what has no end that says which keys there can be: the ledger has them."""
        load = job.load
        if load.pattern is Pattern.CLAIM and (load.operations or job.duration):
            field = "operations" if load.operations else "duration"
            raise UsageError(
                f"`{field}` means nothing to claims: each thread tries every key once",
                hint="`objects` says how many keys there are",
                field=field,
            )
        if load.pattern is Pattern.APPEND and (load.operations is None or job.duration):
            raise UsageError(
                "an append needs `operations`, and takes no `duration`",
                hint="every manifest that may be written stands in the ledger before",
                field="operations",
            )

    def keys(self, invocation: "InvocationSpec") -> Iterator[str]:
        """Yield the shared keys; of logs as many manifests as this function may add.

        All functions yield the registers and claims, which are the same for all; the first one
        does it for the ledger.
        """
        pattern = _pattern(invocation)
        if pattern is not Pattern.APPEND:
            if invocation.index == 0:
                yield from _shared(invocation)
            return
        # Together the shares of all functions are the numbers 1, 2, 3 and so on without a gap. One
        # more is looked for at the end, and is not there.
        rounds, load = 1 + invocation.warm_up, invocation.load
        most = 1 + rounds * load.threads * -(-(load.operations or 0) // invocation.objects)
        first = invocation.index * most
        for log in _shared(invocation):
            for number in range(first + 1, first + most + 1):
                yield manifest_key(log, number)

    def operations(self, invocation: "InvocationSpec", thread: int = 0) -> Stream:
        """Yield one round: all claims in order, or so many operations, key by key in turn."""
        pattern, load = _pattern(invocation), invocation.load
        keys = list(_shared(invocation))
        first = 0 if pattern is Pattern.CLAIM else invocation.index * load.threads + thread
        count = len(keys) if pattern is Pattern.CLAIM else load.operations or len(keys)
        for number in range(first, first + count):
            key = keys[number % len(keys)]
            yield OperationSpec(kind=OperationKind(pattern), key=key, size=None)

    def performer(self, invocation: "InvocationSpec") -> "Performer":
        """Return the contender that a function is."""
        from serverless_bench.workloads.contend.operation import Contender  # noqa: PLC0415

        load = invocation.load
        name = f"{invocation.index}.{invocation.launch}"
        return Contender(invocation.run_id, name, load.pattern, load.backoff)

    def closing(self, invocation: "InvocationSpec", done: "Iterable[OperationRow]") -> Stream:
        """Yield looks at all registers or logs, and at the claims that this function has."""
        keys: Iterable[str] = _shared(invocation)
        if _pattern(invocation) is Pattern.CLAIM:
            claims = (row for row in done if row[_KIND] is OperationKind.CLAIM)
            won = (row for row in claims if row[_COUNT] and row[_ERROR] is None)
            keys = dict.fromkeys(row[_KEY] for row in won)
        for key in keys:
            yield OperationSpec(kind=OperationKind.OBSERVE, key=key, size=None)


def _pattern(invocation: "InvocationSpec") -> Pattern:
    pattern = invocation.load.pattern
    if pattern is None:
        raise ValueError("the workload contend needs a pattern")
    return pattern


def _shared(invocation: "InvocationSpec") -> Iterator[str]:
    prefix, run_id = invocation.target.prefix, invocation.run_id
    for number in range(invocation.objects):
        yield shared_key(prefix, run_id, _pattern(invocation), number)


WORKLOAD = Contend()
