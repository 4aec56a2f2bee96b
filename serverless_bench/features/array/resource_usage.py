"""Memory, threads and CPU time used by a library during one operation.

The peak of the resident set comes from the kernel (``VmHWM``), reset at the start of the operation.
If the reset is not permitted, and for the threads, a thread samples every few milliseconds.
"""

import ctypes
import resource
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from serverless_bench.base.process import forget_peak_rss
from serverless_bench.base.units import KIB
from serverless_bench.rundir.record import Usage

_EVERY_S: Final = 0.01
_STATUS: Final = Path("/proc/self/status")


class Watch:
    """Measures the process's usage during a block of code; ``usage`` returns it afterwards."""

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
        """Return the usage."""
        is_measured = self._before_bytes is not None
        return Usage(
            operation=0,
            rss_before_bytes=self._before_bytes,
            rss_peak_bytes=self._peak_bytes,
            threads_peak=self._threads if is_measured else None,
            cpu_user_s=round(self._used.ru_utime - self._cpu.ru_utime, 6),
            cpu_sys_s=round(self._used.ru_stime - self._cpu.ru_stime, 6),
        )

    def _sample(self) -> None:
        over = False
        while not over:
            over = self._over.wait(_EVERY_S)
            now = _look()
            # Exclude this sampling thread.
            self._threads = max(self._threads, now["Threads"] - 1)
            self._seen_bytes = max(self._seen_bytes, now["VmRSS"] * KIB)


def give_memory_back() -> None:
    """Return memory freed by earlier operations to the system (glibc's ``malloc_trim``)."""
    # The next operation would reuse memory that the allocator keeps, without growing the resident
    # set: only the first operation of a process would show the library's real needs.
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def _look() -> dict[str, int]:
    lines = (line.split() for line in _STATUS.read_text(encoding="utf-8").splitlines())
    names = {"VmRSS:", "VmHWM:", "Threads:"}
    return {words[0][:-1]: int(words[1]) for words in lines if words and words[0] in names}
