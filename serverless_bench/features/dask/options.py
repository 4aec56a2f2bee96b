"""Settings of jobs on a Dask cluster."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from serverless_bench.job.defaults import REMOTE
from serverless_bench.job.meaning import Meaning, Options
from serverless_bench.job.types import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class DaskOptions(Options):
    """The cluster of a job.

    Parameters
    ----------
    scheduler
        Address of a cluster; None to start one on this machine.
    slots
        Concurrent functions of a cluster that is started; None for four per CPU.
    """

    scheduler: Annotated[
        str | None,
        Meaning(
            "Address of a Dask cluster, as in tls://HOST:8786; one is started by default.",
            section=REMOTE,
            by_executor=True,
        ),
    ] = None
    slots: Annotated[
        int | None,
        Limits(1, hint="leave it out for four per CPU"),
        Meaning(
            "Concurrent functions of a Dask cluster that is started.",
            section=REMOTE,
            by_executor=True,
        ),
    ] = None

    def places(self) -> Iterator[str]:
        """Yield the scheduler."""
        if self.scheduler is not None:
            yield f"the Dask scheduler {self.scheduler!r}"
