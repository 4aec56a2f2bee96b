"""What executors share whose functions leave everything below the control prefix."""

from collections.abc import Callable, Collection, Generator, Iterable
from typing import ClassVar

from serverless_bench.executors.base import ExecutorInfo, RunProgress
from serverless_bench.executors.remote.launcher import Launcher, Refusal
from serverless_bench.executors.remote.refusals import PolledMap, RefusableMap
from serverless_bench.executors.remote.requested_records import RequestedRecords
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.rundir.record import Outcome


class RemoteExecutor:
    """Follows its functions through the store, also those of another driver.

    Parameters
    ----------
    job
        Has a control target, or nothing is followed.
    """

    info: ClassVar = ExecutorInfo(remote=True, settings=frozenset({"control_prefix"}))

    def __init__(self, job: JobSpec) -> None:
        self.job = job
        self._maps = PolledMap if self.info.polled else RefusableMap
        self._seen = RequestedRecords(job.number)

    def recover(
        self,
        invocations: Iterable[InvocationSpec],
        progress: RunProgress,
        since_ns: int,
        known: Collection[tuple[int, str]],
    ) -> Generator[Outcome, None, None]:
        remote = self._maps(self.job, None, progress, self._seen, since_ns=since_ns, known=known)
        return remote.run(invocations)

    def run_with(
        self,
        launcher: Launcher,
        invocations: Iterable[InvocationSpec],
        progress: RunProgress,
        refusals: Callable[[], Iterable[Refusal]] = tuple,
    ) -> Generator[Outcome, None, None]:
        """Launch invocations and yield their outcomes.

        Parameters
        ----------
        launcher
            Hands them over, and is closed in the end.
        invocations, progress
            As in ``map``.
        refusals
            As in ``RefusableMap``.
        """
        remote = self._maps(self.job, launcher, progress, self._seen, refusals=refusals)
        return remote.run(invocations)
