"""Launch remote invocations that say so when they were not run."""

from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from contextlib import closing
from typing import ClassVar

from serverless_bench.errors import ExecutorError
from serverless_bench.executors.base import RunProgress
from serverless_bench.executors.remote.launcher import Launcher, Refusal
from serverless_bench.executors.remote.map import RemoteMap, _Pending
from serverless_bench.executors.remote.requested_records import RequestedRecords
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.rundir.record import InvocationRecord, Lost, Outcome
from serverless_bench.worker.claims import RecordKey


class RefusableMap(RemoteMap):
    """Takes back what was not run, for the reason that its function gives.

    Parameters
    ----------
    job, launcher, progress, seen, since_ns, known
        As in ``RemoteMap``.
    refusals
        Returns what functions have said since its last call.
    """

    is_final: ClassVar = True
    """Whether nobody will run any more what one function has refused."""

    def __init__(
        self,
        job: JobSpec,
        launcher: Launcher | None,
        progress: RunProgress,
        seen: RequestedRecords,
        *,
        since_ns: int | None = None,
        known: Collection[tuple[int, str]] = (),
        refusals: Callable[[], Iterable[Refusal]] = tuple,
    ) -> None:
        super().__init__(job, launcher, progress, since_ns=since_ns, seen=seen, known=known)
        self._new_refusals = refusals
        self._refusals: dict[int, Refusal] = {}
        """By index."""

    def run(self, invocations: Iterable[InvocationSpec]) -> Generator[Outcome, None, None]:
        """Yield outcomes as ``RemoteMap.run`` does.

        Raises
        ------
        ExecutorError
            At the end, if every function was refused for good: no further launch would help.
        """
        hopeless, others = 0, 0
        with closing(super().run(invocations)) as outcomes:
            for outcome in outcomes:
                refusal = self._refusals.get(outcome.result.index)
                is_lost = isinstance(outcome.result, Lost)
                self._seen.any_ran |= not is_lost
                is_hopeless = is_lost and refusal is not None and refusal.permanent
                hopeless, others = hopeless + is_hopeless, others + (not is_hopeless)
                yield outcome
        if hopeless and not others and not self._seen.any_ran:
            cause = next(iter(self._refusals.values())).cause
            raise ExecutorError(
                f"no function can run: {cause}",
                hint="functions have the credentials and the network of where they run;"
                " sbench resume launches them again",
            )

    def _poll(self) -> None:
        for refusal in self._new_refusals():
            self._note(refusal)
        super()._poll()

    def _note(self, refusal: Refusal) -> None:
        pending = self._in_flight.get(refusal.index)
        if pending is not None and pending.launch == refusal.launch:
            self._refusals[refusal.index] = refusal
            if self.is_final:
                pending.problem, pending.check_ns = refusal.cause, 0
            elif (note := f"a worker cannot claim: {refusal.cause}") not in self._progress.notes:
                self._progress.notes.append(note)

    def _on_fetched(self, key: RecordKey, result: InvocationRecord | Lost) -> Outcome | None:
        if not isinstance(result, Lost) or not result.never_began:
            return super()._on_fetched(key, result)
        self._fetching -= 1
        self._note(Refusal(index=key.index, launch=key.launch, cause=result.cause, permanent=True))
        return None

    def _on_launched(self, sent: Sequence[_Pending], refusals: int) -> None:
        super()._on_launched(sent, refusals)
        for pending in sent:
            # Its function may have been quicker than the answer to its launch.
            if pending.index in self._refusals and self.is_final:
                pending.check_ns = 0

    def _report_lost(
        self, pending: _Pending, cause: str, *, never_began: bool = False
    ) -> Outcome | None:
        refusal = self._refusals.get(pending.index)
        if refusal is not None and (never_began or self.is_final):
            cause = refusal.cause
        return super()._report_lost(pending, cause, never_began=never_began)


class PolledMap(RefusableMap):
    """The same where any worker may take an event that another one has refused.

    It is taken back in its time; what a worker said is a note until then.
    """

    is_final = False
