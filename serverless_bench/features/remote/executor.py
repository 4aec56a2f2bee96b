"""Base class of executors whose functions write all results below the control prefix."""

from collections.abc import Collection, Generator, Iterable
from typing import ClassVar, Final

from serverless_bench.base.errors import UsageError
from serverless_bench.executors.base import ExecutorInfo, RunProgress
from serverless_bench.features.remote.claims import RecordKey
from serverless_bench.features.remote.launcher import Launcher
from serverless_bench.features.remote.map import RemoteMap
from serverless_bench.features.remote.view import RequestedRecords
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.rundir.record import Outcome

LOCATE: Final = "serverless_bench.features.remote.driver:place_of"


class RemoteExecutor:
    """Follows functions through the store, including those of another driver.

    Parameters
    ----------
    job
        Needs a control target to be followed.

    Raises
    ------
    UsageError
        If its functions would write files, but the executor does not support that.
    """

    info: ClassVar = ExecutorInfo(
        remote=True, locate=LOCATE, settings=frozenset({"control_prefix"})
    )

    def __init__(self, job: JobSpec) -> None:
        if job.load.folder is not None and not self.info.writes_files:
            raise UsageError(
                f"functions of `executor` {job.executor} write no files, only objects",
                hint="leave out `path`, or use `executor` local for files of this machine",
            )
        self.job = job
        self._seen = RequestedRecords(job.number)

    def recover(
        self,
        invocations: Iterable[InvocationSpec],
        progress: RunProgress,
        since_ns: int,
        known: Collection[tuple[int, str]],
    ) -> Generator[Outcome, None, None]:
        for index, delivery in known:
            self._seen.add(RecordKey(index, 0, delivery))
        following = RemoteMap(
            self.job, None, progress, since_ns=since_ns, seen=self._seen, polled=self.info.polled
        )
        return following.run(invocations)

    def note_batches(self, progress: RunProgress, concurrency: int, why: str) -> None:
        """Add a note with the reason if fewer functions can run at once than the job requests."""
        if concurrency < self.job.max_concurrency:
            batches = -(-self.job.number // concurrency)
            progress.note(f"{why}: {batches} batches instead of one")

    def run_with(
        self, launcher: Launcher, invocations: Iterable[InvocationSpec], progress: RunProgress
    ) -> Generator[Outcome, None, None]:
        """Launch invocations and yield their outcomes.

        Parameters
        ----------
        launcher
            Starts the invocations, and is closed at the end.
        invocations, progress
            See ``map``.
        """
        launching = RemoteMap(
            self.job, launcher, progress, seen=self._seen, polled=self.info.polled
        )
        return launching.run(invocations)
