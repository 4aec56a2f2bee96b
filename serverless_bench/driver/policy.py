"""Hooks of features in a driver: policies by the setting of a job, and displays of progress."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

from serverless_bench.base.plugins import Registry

if TYPE_CHECKING:
    # The flags of a command need only the styles of displays.
    from serverless_bench.driver.bucket import Bucket
    from serverless_bench.driver.coordinator import Coordinator
    from serverless_bench.executors.base import OnOutcome, RunProgress
    from serverless_bench.job.settings import JobSettings
    from serverless_bench.job.spec import JobSpec
    from serverless_bench.job.target import Target
    from serverless_bench.rundir.run import Run


Folder: TypeAlias = "tuple[Target, str, Callable[[str], bool]]"
"""A target, a folder in it, and a test whether a name in the folder belongs to the run."""


class DriverPolicy:
    """The hooks in a driver; by default none of them does anything."""

    once = False
    """Whether it applies only to the first launch of a run."""

    def coordinate(self, coordinator: "Coordinator", bucket: "Bucket") -> Iterator[None]:
        """Do a part of the coordinator's work while functions run; it may pause once.

        The store's clock is read during the pause.
        """
        yield from ()

    def check(self, job: "JobSpec") -> None:
        """Raise ``UsageError`` for a job that the policy does not suit."""

    def watching(
        self, job: "JobSpec", live: "RunProgress", closing: dict[str, Any]
    ) -> AbstractContextManager[object]:
        """Return a context that is open during the run; it adds results to ``closing``."""
        return nullcontext()

    def delay_s(self, job: "JobSpec") -> float:
        """Return the time after a launch in which a function may still start."""
        return 0.0

    def left_keys(self, run: "Run") -> Iterator[str]:
        """Yield keys that something other than a function of the run may have left."""
        yield from ()

    def control_folders(self, control: "Target", run_id: str) -> "Iterator[Folder]":
        """Yield the folders of objects of a run below a control prefix."""
        yield from ()


class Listing(DriverPolicy):
    """A policy that lists the objects of a job, which then creates none."""

    def check_settings(self, settings: "JobSettings") -> None:
        """Raise ``UsageError`` for settings that name or create other objects."""

    def listing(
        self, settings: "JobSettings", target: "Target"
    ) -> "tuple[Sequence[str], Mapping[str, Any]]":
        """Return lines as in a key file, and options of the job.

        Raises
        ------
        UsageError
            If there are none.
        StoreError
            If the store does not respond, or access is denied.
        """
        raise NotImplementedError


DRIVER_POLICIES: Final = Registry[DriverPolicy]("driver_policies", {}, kind="policy of drivers")
"""By the setting of the job that requires one."""


def driver_policies_of(job: "JobSpec") -> list[DriverPolicy]:
    """Return the policies of a job's driver."""
    given = {*job.options} if job.control is None else {*job.options, "control"}
    return [DRIVER_POLICIES.load(name) for name in DRIVER_POLICIES if name in given]


def without_once(job: "JobSpec") -> "JobSpec":
    """Return a job without the policies that apply only to the first launch of a run."""
    given = [name for name in DRIVER_POLICIES if name in job.options]
    once = [name for name in given if DRIVER_POLICIES.load(name).once]
    return job.with_options(**dict.fromkeys(once))


@contextmanager
def watched(job: "JobSpec", live: "RunProgress", closing: dict[str, Any]) -> Iterator[None]:
    """Let the policies of a job watch its run while the block runs."""
    with ExitStack() as stack:
        for policy in driver_policies_of(job):
            stack.enter_context(policy.watching(job, live, closing))
        yield


def control_folders(control: "Target | None", run_id: str) -> "Iterator[Folder]":
    """Yield the folders of objects of a run below its control prefix, if it has one."""
    if control is not None:
        yield from DRIVER_POLICIES.load("control").control_folders(control, run_id)


Style = Literal["auto", "bar", "plain", "none"]
"""``bar``: the live view in a terminal or a notebook. ``plain``: a line on standard error every
5 s, and a line at the end. ``auto``: the live view if it is possible, otherwise a line every 10 s.
``none``: no display."""


class Display(Protocol):
    """Shows a run while the context that it returns is open."""

    def __call__(
        self,
        job: "JobSpec",
        functions: int,
        live: "RunProgress",
        on_outcome: "OnOutcome",
        *,
        keys: Sequence[str],
        style: Style,
    ) -> AbstractContextManager["OnOutcome"]:
        """Return a context with a callback for outcomes, which calls ``on_outcome``."""


DISPLAYS: Final = Registry[Display]("displays", {})


@contextmanager
def shown(
    job: "JobSpec",
    functions: int,
    live: "RunProgress",
    on_outcome: "OnOutcome",
    *,
    keys: Sequence[str] = (),
    progress: bool | Style,
) -> "Iterator[OnOutcome]":
    """Yield a callback for outcomes that updates the displays and then calls ``on_outcome``.

    Without a display no library is loaded for it.
    """
    style: Style = progress if isinstance(progress, str) else "auto" if progress else "none"
    with ExitStack() as stack:
        for name in DISPLAYS if style != "none" else ():
            display = DISPLAYS.load(name)(job, functions, live, on_outcome, keys=keys, style=style)
            on_outcome = stack.enter_context(display)
        yield on_outcome
