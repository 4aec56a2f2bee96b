"""Run functions as processes of this machine."""

from collections.abc import Generator, Iterable
from contextlib import closing
from typing import TYPE_CHECKING, ClassVar

from serverless_bench.executors.base import (
    GRACE_S,
    ExecutorInfo,
    RunProgress,
    allow_files_of,
    keys_for_children,
)
from serverless_bench.job.spec import InvocationSpec, JobSpec

if TYPE_CHECKING:
    from serverless_bench.rundir.record import Outcome


class LocalExecutor:
    """A pool of forked workers, each serving one invocation at a time.

    All workers of the job are started before the first invocation, so that forking does not disturb
    the measurement.

    Parameters
    ----------
    job
        Its ``concurrency`` is the size of the pool.
    """

    info: ClassVar = ExecutorInfo(shares_memory=True, per_cpu=4)

    def __init__(self, job: JobSpec) -> None:
        self._job = job

    def map(
        self, invocations: Iterable[InvocationSpec], progress: RunProgress
    ) -> "Generator[Outcome, None, None]":
        # A job is checked with the declaration alone.
        from serverless_bench.executors.local_pool import WorkerPool

        allow_files_of(self._job, self._job.concurrency)
        with (
            keys_for_children() as keys,
            closing(WorkerPool(self._job, iter(invocations), progress, keys)) as pool,
        ):
            yield from pool.run(self._job.deadline + GRACE_S)
