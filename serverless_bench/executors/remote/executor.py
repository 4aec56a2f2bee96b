"""What executors share whose functions leave everything below the control prefix."""

from collections.abc import Collection, Generator, Iterable

from serverless_bench.executors.base import RunProgress
from serverless_bench.executors.remote.launcher import Launcher
from serverless_bench.executors.remote.map import RemoteMap
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
        remote = RemoteMap(
            self._job, None, progress, since_ns=since_ns, seen=self._seen, known=known
        )
        return remote.run(invocations)

    def _run(
        self, launcher: Launcher, invocations: Iterable[InvocationSpec], progress: RunProgress
    ) -> Generator[Outcome, None, None]:
        """Launch invocations and yield their outcomes."""
        return RemoteMap(self._job, launcher, progress, seen=self._seen).run(invocations)
