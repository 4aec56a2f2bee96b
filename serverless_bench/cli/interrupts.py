"""Ctrl-C ends a command with a report, wherever in the code it arrives."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_AGAIN_S: Final = 0.05


@contextmanager
def interruptible() -> Iterator[None]:
    """End on SIGTERM and SIGHUP as on Ctrl-C, and deliver an interrupt again that Python drops.

    Python drops what a finalizer or the callback of a weak reference raises ("Exception ignored
    in"). Every import runs such callbacks: an interrupt that arrives in one was lost, and the
    command went on.
    """
    from threading import Timer

    for name in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, _interrupt)
    before = sys.unraisablehook
    timers: list[Timer] = []

    def on_dropped(dropped: "UnraisableHookArgs") -> None:
        if not issubclass(dropped.exc_type, KeyboardInterrupt):
            before(dropped)
            return
        # Later, because here it would be dropped once more. Not SIGINT, which is ignored in what
        # a script starts in the background.
        timer = Timer(_AGAIN_S, os.kill, (os.getpid(), signal.SIGTERM))
        timer.daemon = True
        timers.append(timer)
        timer.start()

    sys.unraisablehook = on_dropped
    try:
        yield
    finally:
        sys.unraisablehook = before
        for timer in timers:
            timer.cancel()


def _interrupt(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise KeyboardInterrupt
