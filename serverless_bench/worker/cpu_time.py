"""CPU time that this process used, waited for, and spent queueing for the interpreter.

A function with several threads can be the bottleneck in three ways: its threads compute or wait for
a CPU, all CPUs available to it are busy, or its threads queue for CPython's global
lock. Finding the bottleneck needs all three.
"""

import random
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

from serverless_bench.base.clock import monotonic_ns
from serverless_bench.base.units import NS_PER_S

_TASKS: Final = Path("/proc/self/task")
_THREAD: Final = Path("/proc/thread-self/schedstat")
_PROBES_PER_S: Final = 50
_DELAYED_NS: Final = 1_000_000
"""A thread that wakes later than this was kept from the interpreter: Linux timers fire 50
microseconds late (prctl(2), PR_SET_TIMERSLACK), and an idle virtual CPU takes some hundreds
to wake."""


class _Ended:
    """Usage of threads that have ended: the system drops their counters."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.wait_ns = 0
        self.user_s = 0.0


_ended = _Ended()


@contextmanager
def thread_counted() -> Iterator[None]:
    """Count the usage of the calling thread, which ends with the block."""
    try:
        yield
    finally:
        wait_ns, user_s = _wait_ns(_THREAD) or 0, _own_user_s() or 0.0
        with _ended.lock:
            _ended.wait_ns += wait_ns
            _ended.user_s += user_s


class CpuTimer:
    """Measures from its creation until ``stop``.

    Threads that end in between are counted if they ran inside ``thread_counted``.
    """

    def __init__(self) -> None:
        self._used = resource.getrusage(resource.RUSAGE_SELF)
        self._waits = _waits_ns()
        self._own_user_s = _own_user_s()
        self._ended_wait_ns, self._ended_user_s = _ended.wait_ns, _ended.user_s

    def stop(self) -> dict[str, Any]:
        """Return the usage since the start, as fields of a record.

        Call it in the thread that created the timer. The user time of the threads that run Python
        is an upper bound for the time the interpreter lock was held, as system calls release it.
        """
        used, waits, own_s = resource.getrusage(resource.RUSAGE_SELF), _waits_ns(), _own_user_s()
        wait_ns = interpreter_ns = None
        if self._waits is not None and waits is not None:
            # Of threads that ended, and of those alive.
            wait_ns = (
                _ended.wait_ns
                - self._ended_wait_ns
                + sum(now - self._waits.get(task, 0) for task, now in waits.items())
            )
        if self._own_user_s is not None and own_s is not None:
            own_s += _ended.user_s - self._ended_user_s - self._own_user_s
            interpreter_ns = round(own_s * NS_PER_S)
        return {
            "cpu_user_s": round(used.ru_utime - self._used.ru_utime, 6),
            "cpu_sys_s": round(used.ru_stime - self._used.ru_stime, 6),
            "run_wait_ns": wait_ns,
            "interpreter_ns": interpreter_ns,
        }


class LockProbe:
    """A thread that repeatedly needs the interpreter lock and counts its waits.

    It sleeps for a random time, then needs the lock to continue: the fraction of late wake-ups
    estimates the fraction of time the lock was held. Waits for a CPU are subtracted, where
    the system reports them.
    """

    def __init__(self) -> None:
        self.probes = 0
        self.delayed = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="lock-probe", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _sample(self) -> None:
        rng = random.Random()
        while True:
            pause_s = rng.uniform(0.5, 1.5) / _PROBES_PER_S
            waited_ns, begin_ns = _wait_ns(_THREAD), monotonic_ns()
            if self._over.wait(pause_s):
                return
            late_ns = monotonic_ns() - begin_ns - round(pause_s * NS_PER_S)
            late_ns -= (_wait_ns(_THREAD) or 0) - (waited_ns or 0)
            self.probes += 1
            self.delayed += late_ns > _DELAYED_NS


def cpu_ns() -> int:
    """Return the user and system time used by this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return round((used.ru_utime + used.ru_stime) * NS_PER_S)


def awake_ns() -> int:
    """Return the CPU time of this process plus the time its threads waited for a CPU.

    Waits of threads that ended outside ``thread_counted`` are left out, as are all waits where the
    system does not count them.
    """
    return cpu_ns() + sum((_waits_ns() or {}).values()) + _ended.wait_ns


def _own_user_s() -> float | None:
    """Return the user time of the calling thread; None if unknown (macOS)."""
    thread_usage = getattr(resource, "RUSAGE_THREAD", None)
    return None if thread_usage is None else resource.getrusage(thread_usage).ru_utime


def _waits_ns() -> dict[str, int] | None:
    """Return the wait of each thread of this process so far, by thread number."""
    try:
        tasks = [path.name for path in _TASKS.iterdir()]
    except OSError:
        return None
    waits = ((task, _wait_ns(_TASKS / task / "schedstat")) for task in tasks)
    # A thread may end between the listing and the read.
    return {task: wait_ns for task, wait_ns in waits if wait_ns is not None} or None


def _wait_ns(path: Path) -> int | None:
    """Return how long a runnable thread has waited for a CPU so far; None off Linux."""
    try:
        # Second field of ``schedstat``: time spent on the run queue.
        return int(path.read_bytes().split()[1])
    except (OSError, IndexError, ValueError):
        return None
