"""The present process: name, CPUs, memory, variables, and connections it keeps."""

import os
import re
import resource
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from serverless_bench.base.clock import wall_ns
from serverless_bench.base.errors import ExecutorError
from serverless_bench.base.units import KIB, NS_PER_S
from serverless_bench.version import __version__

_NO_TOKEN: Final = re.compile(r"[^A-Za-z0-9._-]+")
_STATUS: Final = frozenset({"Pss", "Rss", "Threads", "VmHWM", "VmRSS"})

# Both are kept by process id, because a fork inherits them.
_births: dict[int, tuple[int, int]] = {}
_forgotten_peaks: dict[int, int] = {}
"""Peak of the resident set before the kernel's counter was reset."""

_pauses: list[Callable[[], AbstractContextManager[object]]] = []
"""Pauses for displays that are currently drawn on the terminal."""


def note_birth(born_ns: int, import_ns: int) -> None:
    """Record when this process started to load its code, and how long that took."""
    _births[os.getpid()] = (born_ns, import_ns)


def birth() -> tuple[int | None, int | None]:
    """Return the arguments of ``note_birth``, or None in a fork, which loaded no code itself."""
    return _births.get(os.getpid(), (None, None))


def worker_id() -> str:
    """Return the name of this execution environment, unique within the run."""
    import socket

    log_stream = os.environ.get("AWS_LAMBDA_LOG_STREAM_NAME")
    return log_stream or f"{socket.gethostname()}/{os.getpid()}"


def user_agent() -> str:
    """Return the user agent of clients, so that a store's log shows which worker it was."""
    return f"sbench/{__version__} sbench-worker/{_NO_TOKEN.sub('.', worker_id())}"


@contextmanager
def environment(variables: Mapping[str, str | None]) -> Iterator[None]:
    """Set environment variables for the duration of a block; None unsets one."""
    before = {name: os.environ.get(name) for name in variables}
    _set_variables(variables)
    try:
        yield
    finally:
        _set_variables(before)


def _set_variables(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@contextmanager
def paused_by_prompts(pause: Callable[[], AbstractContextManager[object]]) -> Iterator[None]:
    """Enter ``pause`` around prompts to the user, for the duration of a block."""
    _pauses.append(pause)
    try:
        yield
    finally:
        _pauses.remove(pause)


@contextmanager
def around_prompts() -> Iterator[None]:
    """Hide the displays on the terminal during a prompt to the user."""
    with ExitStack() as stack:
        for pause in _pauses:
            stack.enter_context(pause())
        yield


def without_credentials() -> dict[str, str]:
    """Return an environment for a subprocess that signs no requests and contacts no remote host.

    A local store outlives the command, and needs only its private credentials.
    """
    return {
        name: value
        for name, value in os.environ.items()
        if not (name.startswith(("AWS_", "AZURE_", "GOOGLE_")) or name.upper().endswith("_PROXY"))
    }


def past_proxies() -> dict[str, str]:
    """Return variables that make clients reach servers on this machine without a proxy."""
    hosts = os.environ.get("no_proxy") or os.environ.get("NO_PROXY")
    # Some libraries read the lower-case variable, and some the other.
    return dict.fromkeys(("no_proxy", "NO_PROXY"), f"{hosts},127.0.0.1" if hosts else "127.0.0.1")


def cpus() -> int:
    """Return the number of CPUs that this process may use."""
    has_affinity = hasattr(os, "sched_getaffinity")
    return len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1


def memory_mib() -> int | None:
    """Return the memory of a cloud function; None where there is no such limit."""
    size = os.environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "")
    return int(size) if size.isdigit() else None


def allow_open_files(count: int) -> None:
    """Raise this process's limit of open files, if it is lower.

    Raises
    ------
    ExecutorError
        If the hard limit is lower.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= count or soft == resource.RLIM_INFINITY:
        return
    if hard != resource.RLIM_INFINITY and hard < count:
        raise ExecutorError(
            f"{count} open files are needed, but only {hard} are allowed",
            hint="lower `concurrency`, `threads` or `connections`, or raise `ulimit -Hn`",
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


def forget_peak_rss() -> bool:
    """Reset the kernel's peak of the resident set; return whether that is supported.

    Linux resets it when 5 is written to ``/proc/self/clear_refs`` (proc_pid_clear_refs(5)).
    ``peak_rss_bytes`` still includes the earlier peak.
    """
    peak = peak_rss_bytes()
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return False
    _forgotten_peaks[os.getpid()] = peak
    return True


def peak_rss_bytes() -> int:
    """Return the peak of this process's resident set."""
    # VmHWM rather than ru_maxrss, which still includes the parent's peak after fork and exec.
    peak_kib = linux_status().get("VmHWM")
    # macOS counts ru_maxrss in bytes (getrusage(2)).
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return max(_forgotten_peaks.get(os.getpid(), 0), peak if peak_kib is None else peak_kib * KIB)


def linux_status(pid: int | str = "self", file: str = "status") -> dict[str, int]:
    """Return a process's resident set (``VmRSS``) and its peak in KiB, and ``Threads``.

    For the file ``smaps_rollup``, return its resident set (``Rss``) and its proportional set
    (``Pss``) in KiB. The result is empty for a process that has ended, and on other systems than
    Linux.
    """
    try:
        lines = Path("/proc", str(pid), file).read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    fields = (line.partition(":") for line in lines)
    return {name: int(value.split()[0]) for name, _, value in fields if name in _STATUS}


T = TypeVar("T")
_MOST_NS: Final = 3 * NS_PER_S
"""AWS freezes an environment between two events, and purges idle connections over time (AWS Lambda
developer guide, "Best practices"). A purged connection gives no sign: the next request would wait
for its timeout."""

_rests: dict[int, int] = {}
"""Time when a process, by its id, finished its latest event."""


def rest(now_ns: int | None = None) -> None:
    """Note that this process may be frozen from now on.

    Parameters
    ----------
    now_ns
        Time by the wall clock, the only clock that runs while frozen; None to read it.
    """
    _rests[os.getpid()] = wall_ns() if now_ns is None else now_ns


class Kept:
    """The most recently opened resource: the next invocation usually needs the same.

    It is kept per process, because a fork must not use its parent's connections. It is dropped
    after a rest of more than a few seconds: the connections may be dead by then.
    """

    def __init__(self) -> None:
        self._kept: dict[object, Any] = {}
        self._rested_ns: int | None = None
        """The latest rest as of the last ``open``; a rest noted since has not been checked yet."""

    def open(self, make: Callable[..., T], *settings: object) -> T:
        """Return ``make(*settings)``, kept until other settings are requested."""
        wanted = (os.getpid(), *settings)
        rested_ns = _rests.get(os.getpid())
        has_rested = rested_ns is not None and rested_ns != self._rested_ns
        if wanted not in self._kept or (has_rested and wall_ns() - (rested_ns or 0) > _MOST_NS):
            self.forget()
            self._kept[wanted] = make(*settings)
        self._rested_ns = rested_ns
        kept: T = self._kept[wanted]
        return kept

    def forget(self) -> None:
        """Close the kept resource."""
        while self._kept:
            self._kept.popitem()[1].close()
