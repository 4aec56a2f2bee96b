"""What features attach to a run in progress: displays, and watches that may end it."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from serverless_bench.base.plugins import Registry

if TYPE_CHECKING:
    # The flags of a command need only the styles.
    from serverless_bench.executors.base import OnOutcome, RunProgress
    from serverless_bench.job.spec import JobSpec

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


class Watch(Protocol):
    """Watches a run, and may end it."""

    def check(self, job: "JobSpec") -> None:
        """Raise ``UsageError`` for a job that it does not suit."""

    def watching(
        self, job: "JobSpec", live: "RunProgress", closing: dict[str, Any]
    ) -> AbstractContextManager[object]:
        """Return a context that is open during the run; it adds results to ``closing``."""


DISPLAYS: Final = Registry[Display]("displays", {})
WATCHES: Final = Registry[Watch]("watches", {}, kind="watch")
"""Watches, by the setting of a job that switches them on."""


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


def watches_of(job: "JobSpec") -> list[Watch]:
    """Return the watches that a job has switched on."""
    return [WATCHES.load(name) for name in WATCHES if getattr(job, name) is not None]


@contextmanager
def watched(job: "JobSpec", live: "RunProgress", closing: dict[str, Any]) -> Iterator[None]:
    """Let the watches of a job see its run while the block runs."""
    with ExitStack() as stack:
        for watch in watches_of(job):
            stack.enter_context(watch.watching(job, live, closing))
        yield
