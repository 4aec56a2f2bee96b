"""Ctrl-C ends a command with a report, wherever in the code it arrives, and only once."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic  # noqa: TID251 - help must not wait for what `clock` loads
from types import FrameType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What ends a command."""
_AGAIN_S: Final = 0.05
_DEAF_S: Final = 5.0
"""For so long after an interrupt another one changes nothing: who ends a session or a container
often sends several, and the second must not cost the report that the first one asked for."""


@contextmanager
def interruptible() -> "Iterator[Interrupt]":
    """End on SIGTERM and SIGHUP as on Ctrl-C, and deliver an interrupt again that Python drops.

    Python drops what a finalizer or the callback of a weak reference raises ("Exception ignored
    in"). Every import runs such callbacks: an interrupt that arrives in one was lost, and the
    command went on.

    What is ignored from the start stays so: SIGHUP below ``nohup``, SIGINT in what a script
    starts in the background.
    """
    from threading import Timer

    interrupt = Interrupt()
    for number in heard():
        signal.signal(number, interrupt)
    before = sys.unraisablehook
    timers: list[Timer] = []

    def on_dropped(dropped: "UnraisableHookArgs") -> None:
        if not issubclass(dropped.exc_type, KeyboardInterrupt):
            before(dropped)
            return
        interrupt.forget()
        # Later, because here it would be dropped once more. Not SIGINT, which may be ignored.
        timer = Timer(_AGAIN_S, os.kill, (os.getpid(), signal.SIGTERM))
        timer.daemon = True
        timers.append(timer)
        timer.start()

    sys.unraisablehook = on_dropped
    try:
        yield interrupt
    finally:
        sys.unraisablehook = before
        for timer in timers:
            timer.cancel()


def heard() -> list[signal.Signals]:
    """Return the signals that end a command and are not ignored."""
    return [number for number in ENDING if signal.getsignal(number) != signal.SIG_IGN]


def end_undisturbed() -> None:
    """Let nothing change the exit code any more: all that is left is the end of the process."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    # Under `python -m`, an interrupt that was caught, but passed through Python's own exec() on
    # its way, as in the making of a dataclass, would still end this process by SIGINT. Whatever
    # is evaluated next makes Python forget it.
    eval("None")  # noqa: S307 - a constant


class Interrupt:
    """A handler that raises ``KeyboardInterrupt``, but not while that is being handled."""

    def __init__(self) -> None:
        self._over = False
        self._deaf_until_s = 0.0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        del number, frame
        now_s = monotonic()
        if self._over or now_s < self._deaf_until_s:
            return
        self._deaf_until_s = now_s + _DEAF_S
        raise KeyboardInterrupt

    def forget(self) -> None:
        """Raise again at the next signal, whenever it comes."""
        self._deaf_until_s = 0.0

    def ignore(self) -> None:
        """Raise no more: the command has ended, or says why it ends."""
        self._over = True
