"""Demand of a job: operations as arrays, and the requests that they consist of."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from serverless_bench.base.errors import UsageError
from serverless_bench.features.cost.forecast import moving_kind
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Stat
from serverless_bench.job.workload import open_workload
from serverless_bench.rundir.tables import Ints, Mask

MOST_REQUESTS: Final = 4_000_000
"""Maximum number of requests in a simulation, without rejected ones: 300 bytes of memory each."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Demand:
    """Operations in the order of the groups; a group is one thread of one function."""

    kind: OperationKind
    functions: int
    threads: int
    lanes: int
    """Maximum number of requests of a group in flight at once."""
    keys: Sequence[str]
    size: Ints
    """Bytes of each operation; shape ``(operations,)``, like the next two."""
    part_bytes: Ints
    parts: Ints
    """Number of requests for the bytes of an operation."""
    first: Ints
    """First operation of each group, and one past the last, shape ``(groups + 1,)``."""

    @property
    def in_parts(self) -> Mask:
        """Mask of the multipart uploads, with two more requests: to create and to complete."""
        return np.asarray((self.parts > 1) & (self.kind is OperationKind.PUT))


def demand_of(job: JobSpec, keys: Sequence[str], *, run_id: str) -> Demand:
    """Return the demand of a job.

    Parameters
    ----------
    job
        A write or a read.
    keys
        Objects that it reads.
    run_id
        Identifier from which keys derive.

    Raises
    ------
    UsageError
        If the job has a setting that is not simulated, or too many requests.
    """
    kind = refuse_unknown(job)
    threads = job.load.threads
    workload = open_workload(job.workload)
    names: list[str] = []
    sizes: list[int] = []
    counts: list[int] = []
    for spec in invocation_specs(job, run_id=run_id, created_ns=0, keys=keys):
        for thread in range(threads):
            before = len(names)
            for operation in workload.operations(spec, thread):
                if operation.size is None:
                    raise UsageError(
                        f"the size of {operation.key!r:.80} is unknown, so it cannot be simulated",
                        hint="read objects that sbench wrote, or that a simulated write created",
                    )
                names.append(operation.key)
                sizes.append(operation.size)
            counts.append(len(names) - before)
    size = np.array(sizes, dtype=np.int64)
    sizes_in_use, size_index = np.unique(size, return_inverse=True)
    part_of = [
        job.transfer.part_length(kind, int(spec)) or max(1, int(spec)) for spec in sizes_in_use
    ]
    part_bytes = np.array(part_of, dtype=np.int64)[size_index]
    parts = np.maximum(1, -(-size // part_bytes))
    if parts.sum() > MOST_REQUESTS:
        raise _too_many(int(parts.sum()))
    return Demand(
        kind=kind,
        functions=job.number,
        threads=threads,
        lanes=min(job.transfer.connections, int(parts.max(initial=1))),
        keys=names,
        size=size,
        part_bytes=part_bytes,
        parts=parts,
        first=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
    )


def refuse_unknown(job: JobSpec) -> OperationKind:
    """Reject a job that the model cannot simulate; return the kind of all operations.

    Raises
    ------
    UsageError
        If the job is not simulated; the message names the setting.
    """
    kind = moving_kind(job)
    if kind is None:
        raise UsageError(
            f"a {job.workload} is not simulated", hint="use sbench plan --simulate write, or read"
        )
    settings = {
        "duration": job.duration,
        "rate": job.load.rate,
        "warm-up": job.warm_up,
        "split": job.load.split,
        "barrier": job.options.get("barrier"),
        "stat": None if job.transfer.stat is Stat.KEY else job.transfer.stat,
    }
    for name, value in settings.items():
        if value:
            raise UsageError(
                f"--{name} is not simulated",
                hint='omit it; see "Simulation" in the documentation',
            )
    operations = job.number * job.objects * job.read_times
    if operations > MOST_REQUESTS:
        raise _too_many(operations)
    return kind


def _too_many(count: int) -> UsageError:
    return UsageError(
        f"the job has at least {count:,} requests; a simulation takes {MOST_REQUESTS:,} at most",
        hint="use fewer functions or objects, or larger parts: --number, --objects, --part-size",
    )
