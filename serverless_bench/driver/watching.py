"""What features attach to a run in progress to show it."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, Final, Literal, Protocol

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
