"""Run all invocations in this process, sequentially: the reference executor."""

from collections.abc import Generator, Iterable
from typing import ClassVar

from serverless_bench.base.process import environment
from serverless_bench.executors.base import ExecutorInfo, RunProgress, allow_files_of
from serverless_bench.job.abilities import environment_of
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.rundir.record import InvocationRecord, Lost, Outcome
from serverless_bench.worker.board import board_type
from serverless_bench.worker.invocation import forget_clients, run_invocation


class InlineExecutor:
    """No processes and no network, and therefore no protection from a crash."""

    info: ClassVar = ExecutorInfo(shares_memory=True, in_process=True)

    def __init__(self, job: JobSpec) -> None:
        """Keep the job for its limit of open files; each invocation is self-contained."""
        self._job = job

    def map(
        self, invocations: Iterable[InvocationSpec], progress: RunProgress
    ) -> Generator[Outcome, None, None]:
        allow_files_of(self._job, 0)
        clock = progress.clock
        board = progress.begin(board_type().here()).writer()
        try:
            for invocation in invocations:
                if progress.stopped:
                    return
                progress.started += 1
                submitted_ns = clock.now_ns()
                result: InvocationRecord | Lost
                try:
                    with environment(environment_of(self._job.declared)):
                        result = run_invocation(invocation, board=board)
                except Exception as exc:  # noqa: BLE001 - a lost call must not lose the others
                    cause = f"{type(exc).__name__}: {exc}"
                    result = Lost(index=invocation.index, launch=invocation.launch, cause=cause)
                yield Outcome(submitted_ns=submitted_ns, collected_ns=clock.now_ns(), result=result)
        finally:
            # Workers of other executors exit with their job; this process continues.
            forget_clients()
