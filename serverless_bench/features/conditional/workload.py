"""Conditional writes on keys that all functions share, with a check that no write is lost.

There are three patterns, which differ in the condition of the next write:

increment
    Read a register and write it back with ``If-Match``: compare and swap. Iceberg catalogs move
    their pointer to the next state of a table in this way.
claim
    Write a key with ``If-None-Match: *``: the first writer gets it.
append
    Write the next manifest of a log with ``If-None-Match: *``, as in Delta Lake's protocol: a
    writer that loses reads the new manifests, and tries the number after them.

``operation`` performs them; this module determines the keys, and the functions that try
each of them.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from serverless_bench.base.errors import UsageError
from serverless_bench.features.conditional.load import ConditionalLoad
from serverless_bench.features.conditional.shared_keys import (
    MAX_BYTES,
    Pattern,
    is_of_key,
    is_shared_key,
    manifest_key,
    shared_key,
)
from serverless_bench.job.abilities import Closing, Conditional, Endless, Recognizing, RunsOnce
from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.job.workload import Appearance, Load, Stream, Trait, Workload

if TYPE_CHECKING:
    from serverless_bench.job.spec import InvocationSpec, JobSpec
    from serverless_bench.rundir.record import OperationRow
    from serverless_bench.worker.object_io import Head
    from serverless_bench.worker.operation_context import Performer

_KIND: Final = 0
_KEY: Final = 1
_ERROR: Final = 12
_COUNT: Final = 16
"""Positions of fields in an ``OperationRow``."""


class ConditionalWrites(Workload, Conditional, Endless, Closing, Recognizing, RunsOnce):
    """Operations of one pattern on ``objects`` keys that all functions share."""

    settings = ("threads", "operations", "prefix")
    traits = Trait.CREATES_OBJECTS
    look = Appearance(hue="brown")
    load_type = ConditionalLoad
    default_number = 4
    part = "serverless_bench.features.conditional.part:PART"
    most_bytes = MAX_BYTES
    not_again = (
        "the other functions have finished with the shared keys: a missing function is not"
        " launched again"
    )

    def kinds(self, load: Load) -> Mapping[OperationKind, float]:
        """Return the kind of the pattern, which has the same name."""
        return {OperationKind(ConditionalLoad.narrow(load).pattern): 1.0}

    def without_end(self, load: Load) -> str:
        """Return the phrase for an increment, which never ends by itself."""
        return "an increment" if ConditionalLoad.narrow(load).pattern == Pattern.INCREMENT else ""

    def check(self, job: "JobSpec") -> None:
        """Check that the possible keys are known in advance, because the ledger lists them."""
        load = ConditionalLoad.narrow(job.load)
        if load.pattern == Pattern.CLAIM and (load.operations or job.duration):
            field = "operations" if load.operations else "duration"
            raise UsageError(
                f"`{field}` does not apply to claims: each thread tries every key once",
                hint="set the number of keys with `objects`",
                field=field,
            )
        if load.pattern == Pattern.APPEND and (load.operations is None or job.duration):
            raise UsageError(
                "an append needs `operations`, and takes no `duration`",
                hint="the ledger lists all possible manifests before the run starts",
                field="operations",
            )

    def keys(self, invocation: "InvocationSpec") -> Iterator[str]:
        """Yield the shared keys; for logs, the manifests that this function may add.

        Registers and claims are the same for all functions, so only the first function yields them
        for the ledger.
        """
        if _pattern(invocation) is not Pattern.APPEND:
            if invocation.index == 0:
                yield from _shared(invocation)
            return
        # The numbers of all functions together are 1, 2, 3 and so on without a gap. The last lookup
        # is for a manifest that does not exist, hence one more.
        rounds, load = 1 + invocation.warm_up, invocation.load
        most = 1 + rounds * load.threads * -(-(load.operations or 0) // invocation.objects)
        first = invocation.index * most
        for log in _shared(invocation):
            yield from (manifest_key(log, number) for number in range(first + 1, first + most + 1))

    def recognizes(self, key: str, head: "Head") -> bool | None:
        """Return whether an object at a shared key belongs to the run that the key names."""
        return is_of_key(key, head.data) if is_shared_key(key) else None

    def operations(self, invocation: "InvocationSpec", thread: int = 0) -> Stream:
        """Yield one round: all claims in order, or ``operations`` operations, key by key."""
        pattern, load = _pattern(invocation), invocation.load
        keys = list(_shared(invocation))
        first = 0 if pattern is Pattern.CLAIM else invocation.index * load.threads + thread
        count = len(keys) if pattern is Pattern.CLAIM else load.operations or len(keys)
        for number in range(first, first + count):
            key = keys[number % len(keys)]
            yield OperationSpec(kind=OperationKind(pattern), key=key, size=None)

    def performer(self, invocation: "InvocationSpec") -> "Performer":
        """Return the function's contender."""
        from serverless_bench.features.conditional.operation import Contender

        load = ConditionalLoad.narrow(invocation.load)
        name = f"{invocation.index}.{invocation.launch}"
        return Contender(invocation.run_id, name, _pattern(invocation), load.backoff)

    def closing(self, invocation: "InvocationSpec", done: "Iterable[OperationRow]") -> Stream:
        """Yield reads of all registers or logs, and of the claims that this function has."""
        keys: Iterable[str] = _shared(invocation)
        if _pattern(invocation) is Pattern.CLAIM:
            claims = (row for row in done if row[_KIND] is OperationKind.CLAIM)
            won = (row for row in claims if row[_COUNT] and row[_ERROR] is None)
            keys = dict.fromkeys(row[_KEY] for row in won)
        yield from (OperationSpec(kind=OperationKind.OBSERVE, key=key, size=None) for key in keys)


def _pattern(invocation: "InvocationSpec") -> Pattern:
    return Pattern(ConditionalLoad.narrow(invocation.load).pattern)


def _shared(invocation: "InvocationSpec") -> Iterator[str]:
    prefix, run_id = invocation.target.prefix, invocation.run_id
    for number in range(invocation.objects):
        yield shared_key(prefix, run_id, _pattern(invocation), number)


WORKLOAD = ConditionalWrites()
