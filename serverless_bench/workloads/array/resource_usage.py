"""What a library uses during one operation: memory, threads and processor time.

The peak of the resident set is the kernel's own (``VmHWM``), set back when the operation
begins; where that is not allowed, and for threads, a thread looks every few milliseconds.
"""

import ctypes
import resource
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from serverless_bench.process import forget_peak_rss
from serverless_bench.rundir.record import Usage
from serverless_bench.units import KIB

_EVERY_S: Final = 0.01
_STATUS: Final = Path("/proc/self/status")


class Watch:
    """A block of code and what the process uses in it; ``usage`` has that afterwards."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._sampler = threading.Thread(target=self._sample, name="sbench-watch", daemon=True)
        self._threads = 0
        self._seen_bytes = 0
        self._exact = False
        self._before_bytes: int | None = None
        self._peak_bytes: int | None = None
        self._cpu = resource.getrusage(resource.RUSAGE_SELF)
        self._used = self._cpu

    def __enter__(self) -> Self:
        if _STATUS.exists():
            self._exact = forget_peak_rss()
            self._before_bytes = _look()["VmRSS"] * KIB
            self._sampler.start()
        self._cpu = resource.getrusage(resource.RUSAGE_SELF)
        return self

    def __exit__(self, *_: object) -> None:
        self._used = resource.getrusage(resource.RUSAGE_SELF)
        if self._before_bytes is None:
            return
        self._over.set()
        self._sampler.join()
        peak_bytes = _look()["VmHWM"] * KIB if self._exact else self._seen_bytes
        self._peak_bytes = max(peak_bytes, self._before_bytes)

    def usage(self) -> Usage:
        """Return what was used."""
        known = self._before_bytes is not None
        return Usage(
            operation=0,
            rss_before_bytes=self._before_bytes,
            rss_peak_bytes=self._peak_bytes,
            threads_peak=self._threads if known else None,
            cpu_user_s=round(self._used.ru_utime - self._cpu.ru_utime, 6),
            cpu_sys_s=round(self._used.ru_stime - self._cpu.ru_stime, 6),
        )

    def _sample(self) -> None:
        over = False
        while not over:
            over = self._over.wait(_EVERY_S)
            now = _look()
            # Less one: this thread is ours.
            self._threads = max(self._threads, now["Threads"] - 1)
            self._seen_bytes = max(self._seen_bytes, now["VmRSS"] * KIB)


def give_memory_back() -> None:
    """Return to the system what earlier operations have freed (glibc's ``malloc_trim``)."""
    # What the allocator keeps would serve the next operation, whose resident set then would
    # not grow: only the first operation of a process would show what a library needs.
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def _look() -> dict[str, int]:
    lines = (line.split() for line in _STATUS.read_text(encoding="utf-8").splitlines())
    names = {"VmRSS:", "VmHWM:", "Threads:"}
    return {words[0][:-1]: int(words[1]) for words in lines if words and words[0] in names}
