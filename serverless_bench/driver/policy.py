"""The driver's side of policies: what features do in the driver of a job with their setting."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final

from serverless_bench.base.plugins import Registry
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target

if TYPE_CHECKING:
    from serverless_bench.driver.bucket import Bucket
    from serverless_bench.driver.coordinator import Coordinator
    from serverless_bench.executors.base import RunProgress
    from serverless_bench.rundir.run import Run

Folder = tuple[Target, str, Callable[[str], bool]]
"""A target, a folder in it, and a test whether a name in the folder belongs to the run."""


class DriverPolicy:
    """The hooks in a driver; by default none of them does anything."""

    def coordinate(self, coordinator: "Coordinator", bucket: "Bucket") -> Iterator[None]:
        """Do a part of the coordinator's work while functions run; it may pause once.

        The store's clock is read during the pause.
        """
        yield from ()

    def check(self, job: JobSpec) -> None:
        """Raise ``UsageError`` for a job that the policy does not suit."""

    def watching(
        self, job: JobSpec, live: "RunProgress", closing: dict[str, Any]
    ) -> AbstractContextManager[object]:
        """Return a context that is open during the run; it adds results to ``closing``."""
        return nullcontext()

    def left_keys(self, run: "Run") -> Iterator[str]:
        """Yield keys that something other than a function of the run may have left."""
        yield from ()

    def control_folders(self, control: Target, run_id: str) -> Iterator[Folder]:
        """Yield the folders of objects of a run below a control prefix."""
        yield from ()


DRIVER_POLICIES: Final = Registry[DriverPolicy]("driver_policies", {}, kind="policy of drivers")
"""By the setting of the job that requires one."""


def driver_policies_of(job: JobSpec) -> list[DriverPolicy]:
    """Return the policies of a job's driver."""
    return [DRIVER_POLICIES.load(on) for on in DRIVER_POLICIES if getattr(job, on) is not None]


@contextmanager
def watched(job: JobSpec, live: "RunProgress", closing: dict[str, Any]) -> Iterator[None]:
    """Let the policies of a job watch its run while the block runs."""
    with ExitStack() as stack:
        for policy in driver_policies_of(job):
            stack.enter_context(policy.watching(job, live, closing))
        yield


def control_folders(control: Target | None, run_id: str) -> Iterator[Folder]:
    """Yield the folders of objects of a run below its control prefix, if it has one."""
    if control is not None:
        yield from DRIVER_POLICIES.load("control").control_folders(control, run_id)
