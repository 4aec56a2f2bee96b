"""What executors share whose functions leave everything below the control prefix."""

from collections.abc import Callable, Collection, Generator, Iterable
from typing import ClassVar

from serverless_bench.executors.base import ExecutorInfo, RunProgress
from serverless_bench.executors.remote.launcher import Launcher, Refusal
from serverless_bench.executors.remote.refusals import RefusableMap
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
    maps: ClassVar[type[RefusableMap]] = RefusableMap

    def __init__(self, job: JobSpec) -> None:
        self._job = job
        self._seen = RequestedRecords(job.invocations)

    def recover(
        self,
        invocations: Iterable[InvocationSpec],
        progress: RunProgress,
        since_ns: int,
        known: Collection[tuple[int, str]],
    ) -> Generator[Outcome, None, None]:
        remote = self.maps(self._job, None, progress, self._seen, since_ns=since_ns, known=known)
        return remote.run(invocations)

    def _run(
        self,
        launcher: Launcher,
        invocations: Iterable[InvocationSpec],
        progress: RunProgress,
        refusals: Callable[[], Iterable[Refusal]] = tuple,
    ) -> Generator[Outcome, None, None]:
        """Launch invocations and yield their outcomes; for ``refusals`` see ``RefusableMap``."""
        remote = self.maps(self._job, launcher, progress, self._seen, refusals=refusals)
        return remote.run(invocations)
