"""Example invocations and keys of a run that has not started."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from serverless_bench.base.clock import wall_ns
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.keys import new_run_id
from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.job.workload import Stream, Workload, open_workload, succeeding

MAKING: Final = (OperationKind.PUT, OperationKind.WRITE_ARRAY, OperationKind.APPEND_ARRAY)
"""Operations that make an object or an array."""


def example_invocations(job: JobSpec, keys: Sequence[str]) -> Iterator[InvocationSpec]:
    """Yield example invocations of a run; each call creates new keys."""
    created_ns = wall_ns()
    return invocation_specs(job, run_id=new_run_id(created_ns), created_ns=created_ns, keys=keys)


def example_keys(job: JobSpec, keys: Sequence[str]) -> Iterator[str]:
    """Yield example keys of the objects or arrays that a run would write."""
    workload = open_workload(job.workload)
    for invocation in example_invocations(job, keys):
        if job.load.is_drawn:
            yield from workload.keys(invocation)
            continue
        operations = all_succeeding(workload, workload.operations, invocation)
        yield from dict.fromkeys(
            operation.key for operation in operations if operation.kind in MAKING
        )


def all_succeeding(
    workload: Workload,
    make: Callable[[InvocationSpec, int], Stream],
    invocation: InvocationSpec,
) -> Iterator[OperationSpec]:
    """Yield the operations of a workload for an invocation, assuming that all succeed."""
    for thread in range(invocation.load.threads):
        yield from succeeding(workload, make(invocation, thread))
