"""End a run when its rate is known with sufficient precision: ``--until-stable``."""

from contextlib import AbstractContextManager
from typing import Any, Final

from serverless_bench.base.errors import UsageError
from serverless_bench.driver.policy import DriverPolicy
from serverless_bench.executors import executors_where, info_of
from serverless_bench.executors.base import RunProgress
from serverless_bench.job.spec import JobSpec


class UntilStable(DriverPolicy):
    """The stopping rule of a job."""

    def check(self, job: JobSpec) -> None:
        """Raise an error for a job without a duration, or without progress until its end."""
        if job.duration is None:
            raise UsageError(
                "`until_stable` needs `duration`",
                hint="the most that the run may take",
                field="until_stable",
            )
        info = info_of(job.executor)
        shows_progress = info.remote and job.options.get("progress_objects") is not False
        if not (info.shares_memory or shows_progress):
            executors = executors_where(lambda info: info.shares_memory)
            raise UsageError(
                f"`until_stable` does not work with `executor` {job.executor}: the rate of its"
                " functions is only known when they end",
                hint=f"`executor` {' or '.join(executors)}, or a fixed `duration`"
                + ", or `progress_objects`" * info.remote,
                field="until_stable",
            )

    def watching(
        self, job: JobSpec, live: RunProgress, closing: dict[str, Any]
    ) -> AbstractContextManager[None]:
        """Return a context in which the run ends when it is stable."""
        # With NumPy: a refused job waits for no library.
        from serverless_bench.features.until_stable.watch import ended_when_stable

        return ended_when_stable(job, live, closing)


POLICY: Final = UntilStable()
