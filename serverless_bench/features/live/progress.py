"""Show a run in progress: in a terminal, a notebook, or a log."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from serverless_bench.base.clock import repeated
from serverless_bench.base.escaping import for_terminal
from serverless_bench.driver.policy import Style
from serverless_bench.executors.base import OnOutcome, RunProgress
from serverless_bench.job.spec import JobSpec
from serverless_bench.rundir.record import Outcome

if TYPE_CHECKING:
    from serverless_bench.features.live.view import RunView

_REFRESHES_PER_S: Final = 2
_LINE_S: Final = 5.0
_UNASKED_S: Final = 10.0
"""Interval of log lines for a run without an explicit request for a log."""


@contextmanager
def shown(
    job: JobSpec,
    functions: int,
    live: RunProgress,
    on_outcome: OnOutcome,
    *,
    keys: Sequence[str] = (),
    style: Style,
) -> Iterator[OnOutcome]:
    """Yield a callback for outcomes that updates the display and then calls ``on_outcome``."""
    drawn = style in {"auto", "bar"} and (_is_terminal() or _is_notebook())
    if style == "bar" and not drawn:
        yield on_outcome
        return
    from serverless_bench.features.live.view import RunView

    view = RunView(job, functions, live, keys)

    def both(outcome: Outcome) -> None:
        view.add(outcome)
        on_outcome(outcome)

    with _drawn(view, live) if drawn else _logged(view, live, asked=style == "plain"):
        yield both


def _is_terminal() -> bool:
    return sys.stderr.isatty() and os.environ.get("TERM") not in {"dumb", "unknown"}


def _is_notebook() -> bool:
    """Return whether this process is the kernel of a notebook, and not only imports one."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


@contextmanager
def _drawn(view: "RunView", live: RunProgress) -> Iterator[None]:
    """Draw the live view while the block runs."""
    from serverless_bench.features.live.screen import live_notebook, live_screen

    if not _is_terminal():
        with live_notebook(view, seconds=1 / _REFRESHES_PER_S):
            yield
        return
    with live_screen(view, refresh_per_second=_REFRESHES_PER_S) as screen:
        live.ring = screen.console.bell
        yield


@contextmanager
def _logged(view: "RunView", live: RunProgress, *, asked: bool) -> Iterator[None]:
    """Write a line to standard error at an interval, and each note at once."""
    from serverless_bench.features.live.text import log_line

    def put(line: str) -> None:
        # Standard error may be closed or have no reader, which must not stop a run.
        with suppress(OSError, ValueError):
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()

    def write() -> None:
        put(log_line(view.look()))

    def write_note(note: str) -> None:
        put(f"note: {for_terminal(note)}")
        live.printed += 1

    for note in live.unprinted():
        write_note(note)
    ignored, live.on_note = live.on_note, write_note
    try:
        with repeated(write, _LINE_S if asked else _UNASKED_S, name="progress"):
            yield
    finally:
        live.on_note = ignored
    if asked:
        write()
