"""The process of a command: Ctrl-C stops it once, with a report; NumPy starts no threads in it."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic  # noqa: TID251 - `clock` loads modules that would delay the help
from types import FrameType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sys import UnraisableHookArgs


ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end a command."""
_AGAIN_S: Final = 0.05
_DEAF_S: Final = 5.0
"""Seconds after an interrupt during which further interrupts are ignored. Shells and container
runtimes often send more than one, and the second must not abort the report after the first."""


@contextmanager
def interruptible() -> "Iterator[Interrupt]":
    """Treat SIGTERM and SIGHUP like Ctrl-C, and redeliver interrupts that Python drops.

    Python drops exceptions from finalizers and from callbacks of weak references ("Exception
    ignored in"). Imports run such callbacks, and a command used to continue if an interrupt
    arrived during a callback.

    Signals that are ignored at the start stay ignored: SIGHUP under ``nohup``, and SIGINT in
    background processes of a script.
    """
    before = sys.unraisablehook
    interrupt = Interrupt()
    for number in heard():
        signal.signal(number, interrupt)
    sys.unraisablehook = interrupt.on_dropped
    try:
        yield interrupt
    finally:
        sys.unraisablehook = before
        interrupt.dropped = False


def heard() -> list[signal.Signals]:
    """Return the signals that end a command and are not ignored."""
    return [number for number in ENDING if signal.getsignal(number) != signal.SIG_IGN]


def end_undisturbed() -> None:
    """Ignore signals from here on, so that they cannot change the exit code."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    # Under `python -m`, an interrupt that was caught after it passed through exec(), as in the
    # creation of a dataclass, would still end this process with SIGINT. Python clears this state
    # at the next eval().
    eval("None")  # noqa: S307 - a constant


class Interrupt:
    """Signal handler that raises ``KeyboardInterrupt``, except while the first is being handled."""

    def __init__(self) -> None:
        self.dropped = False
        self._before = sys.unraisablehook
        self._over = False
        self._deaf_until_s = 0.0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        del number
        now_s = monotonic()
        if self._over or now_s < self._deaf_until_s:
            return
        while frame is not None:
            # What is raised there is dropped, too; it is repeated until it is not.
            if frame.f_code is Interrupt.on_dropped.__code__:
                return
            frame = frame.f_back
        self.dropped = False
        self._deaf_until_s = now_s + _DEAF_S
        raise KeyboardInterrupt

    def on_dropped(self, dropped: "UnraisableHookArgs") -> None:
        """Repeat an interrupt that Python has dropped."""
        from threading import Thread

        if not issubclass(dropped.exc_type, KeyboardInterrupt):
            self._before(dropped)
            return
        self.dropped = True
        self.forget()
        Thread(target=self._repeat, daemon=True).start()

    def _repeat(self) -> None:
        from threading import Event

        while not Event().wait(_AGAIN_S) and self.dropped:
            # SIGINT may be ignored.
            os.kill(os.getpid(), signal.SIGTERM)

    def forget(self) -> None:
        """Raise at the next signal, even if it arrives within ``_DEAF_S``."""
        self._deaf_until_s = 0.0

    def ignore(self) -> None:
        """Raise no more exceptions: the command has ended or is printing the error."""
        self._over = True


_THREADS: Final = "OPENBLAS_NUM_THREADS"


def load_numpy() -> None:
    """Import NumPy without starting the threads of OpenBLAS, which sbench does not use.

    These threads spin for some milliseconds before they sleep, which costs as much as a third
    of the import of NumPy. Child processes are not affected and may use threads.
    """
    if "numpy" in sys.modules or _THREADS in os.environ:
        return
    from serverless_bench.base.process import environment

    with environment({_THREADS: "1"}):
        import numpy as np

        del np
