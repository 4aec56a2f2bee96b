"""Time that only advances while all threads sleep: the actions of a worker, to the nanosecond.

``virtual_time`` replaces the worker's clock; a sleep advances it without waiting. With threads it
advances when all of them sleep, to the first one to wake.
"""

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest

from serverless_bench.base import clock
from serverless_bench.base.units import NS_PER_S
from serverless_bench.clients.base import Exchange
from serverless_bench.worker import runner
from tests.unit.flaky import FlakyClient

BEGIN_NS = 1_000 * NS_PER_S
_REAL = {name: getattr(clock, name) for name in ("monotonic_ns", "wall_ns", "sleep")}
_TIMEOUT_S = 60
"""Limit for a thread that is never woken: the test fails then, and does not hang."""


class VirtualTime:
    """A clock, and the threads that live by it."""

    def __init__(self) -> None:
        self.now_ns = BEGIN_NS
        self._changed = threading.Condition()
        self._threads = 0
        self._wakes: list[int] = []

    def sleep(self, seconds: float) -> None:
        """Return when so much time has passed."""
        with self._changed:
            wake_ns = self.now_ns + round(seconds * NS_PER_S)
            if not self._threads:
                self.now_ns = max(self.now_ns, wake_ns)
                return
            self._wakes.append(wake_ns)
            self._move_on()
            assert self._changed.wait_for(lambda: self.now_ns >= wake_ns, _TIMEOUT_S)

    def _move_on(self) -> None:
        if self._wakes and len(self._wakes) == self._threads:
            self.now_ns = max(self.now_ns, min(self._wakes))
            self._wakes = [each for each in self._wakes if each > self.now_ns]
            self._changed.notify_all()

    def pool(self, threads: int) -> ThreadPoolExecutor:
        """Return a pool whose ``threads`` tasks use this clock."""

        living = self._living

        class Pool(ThreadPoolExecutor):
            def submit(self, fn: Any, /, *args: Any, **_: Any) -> Future[Any]:
                return super().submit(living, fn, *args)

        # All of them, because time must not pass before they have started.
        self._threads = threads
        return Pool(threads)

    def _living(self, do: Callable[[int], None], thread: int) -> None:
        try:
            do(thread)
        finally:
            with self._changed:
                self._threads -= 1
                self._move_on()


@contextmanager
def virtual_time() -> Iterator[VirtualTime]:
    """Let the worker live by a virtual clock."""
    time = VirtualTime()
    virtual = {
        "monotonic_ns": lambda: time.now_ns,
        "wall_ns": lambda: time.now_ns,
        "sleep": time.sleep,
    }
    with pytest.MonkeyPatch.context() as patch:
        for module, name in _clocks():
            if getattr(module, name) is _REAL[name]:
                patch.setattr(module, name, virtual[name])
        patch.setattr(runner, "ThreadPoolExecutor", time.pool)
        yield time
    # A module that was loaded meanwhile has got the virtual clock.
    for module, name in _clocks():
        if getattr(module, name) is virtual[name]:
            setattr(module, name, _REAL[name])


def _clocks() -> list[tuple[ModuleType, str]]:
    """Return the modules of the package with the functions of the clock that they use."""
    ours = [m for name, m in sys.modules.items() if name.startswith("serverless_bench")]
    return [(module, name) for module in ours for name in _REAL if hasattr(module, name)]


class SlowClient(FlakyClient):
    """A store with a constant time for every answer, and one longer stall.

    Parameters
    ----------
    time
        Its clock.
    service_s
        Time of an answer.
    stall
        Seconds after the clock's start at which it stalls, and the duration.
    """

    def __init__(
        self, time: VirtualTime, service_s: float, stall: tuple[float, float] = (0, 0)
    ) -> None:
        super().__init__()
        self._time = time
        self._service_s = service_s
        at_s, for_s = stall
        self._stall_ns = (BEGIN_NS + round(at_s * NS_PER_S), round(for_s * NS_PER_S))

    def _maybe_fail(self, request: str, exchange: Exchange) -> None:
        self._time.sleep(self._service_s)
        begin_ns, for_ns = self._stall_ns
        if begin_ns <= self._time.now_ns < begin_ns + for_ns:
            self._time.sleep((begin_ns + for_ns - self._time.now_ns) / NS_PER_S)
        super()._maybe_fail(request, exchange)
