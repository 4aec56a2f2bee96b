"""Ctrl-C and the like during a run: functions stop and deliver; a second signal ends at once."""

import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Final

from serverless_bench.base.clock import monotonic_ns
from serverless_bench.base.units import NS_PER_S
from serverless_bench.executors.base import RunProgress
from serverless_bench.rundir.schema import SignalName, Stopped
from serverless_bench.worker.board import ABORT, ABORT_S, RUN_OVER

_NAMES: Final[Mapping[int, SignalName]] = {
    signal.SIGINT: "Ctrl-C",
    signal.SIGTERM: "SIGTERM",
    signal.SIGHUP: "SIGHUP",
}
_DEAF_NS: Final = NS_PER_S // 5
"""Time during which a second signal has no effect: some senders signal a process and its group."""
_GRACE_S: Final[Mapping[int, float]] = {
    signal.SIGINT: 30.0,
    signal.SIGTERM: 5.0,
    signal.SIGHUP: 5.0,
}
"""Time after which results that have not arrived are given up. Container runtimes and service
managers kill a process about 10 s after SIGTERM."""


@contextmanager
def stopped_by_signals(live: RunProgress) -> Iterator[None]:
    """Let the first signal stop the functions for the duration of the block.

    The second signal, and the first one if no functions can be stopped, has its usual effect.
    Signals that would end this process without an exception keep that effect.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    stop = _Stop(live)
    for number in stop.usual:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for timer in stop.timers:
            timer.cancel()
        for number, usual in stop.usual.items():
            signal.signal(number, usual)


class _Stop:
    """Signal handler that stops the functions of a run at the first signal."""

    def __init__(self, live: RunProgress) -> None:
        self.usual = {n: usual for n in _NAMES if callable(usual := signal.getsignal(n))}
        self.timers: tuple[threading.Timer, ...] = ()
        self._live = live
        self._begin_ns = monotonic_ns()
        self._deaf_until_ns = 0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        live, now_ns = self._live, monotonic_ns()
        if live.stopped is None and live.boards:
            self._deaf_until_ns = now_ns + _DEAF_NS
            live.stopped = Stopped(by=_NAMES[number], after_s=(now_ns - self._begin_ns) / NS_PER_S)
            live.stop(RUN_OVER)
            self.timers = (
                threading.Timer(ABORT_S, live.stop, (ABORT,)),
                threading.Timer(
                    max(_GRACE_S[number], live.grace_s if number == signal.SIGINT else 0),
                    os.kill,
                    (os.getpid(), number),
                ),
            )
            for timer in self.timers:
                timer.daemon = True
                timer.start()
        elif now_ns >= self._deaf_until_ns:
            self.usual[signal.Signals(number)](number, frame)
