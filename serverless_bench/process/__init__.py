"""The execution environment that this process is: its name, and what it has to work with."""

import os
import re
import resource
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Final

from serverless_bench.errors import ExecutorError
from serverless_bench.units import KIB
from serverless_bench.version import __version__

_NO_TOKEN: Final = re.compile(r"[^A-Za-z0-9._-]+")

# By process: a fork inherits both.
_births: dict[int, tuple[int, int]] = {}
_forgotten_peaks: dict[int, int] = {}
"""The largest resident set before the kernel was made to forget it."""

_pauses: list[Callable[[], AbstractContextManager[object]]] = []
"""Of what is drawn on the terminal now."""


def note_birth(born_ns: int, import_ns: int) -> None:
    """Keep when this process began to load its code, and how long that took."""
    _births[os.getpid()] = (born_ns, import_ns)


def birth() -> tuple[int | None, int | None]:
    """Return what ``note_birth`` was given; nothing in a fork, for which nobody loaded code."""
    return _births.get(os.getpid(), (None, None))


def worker_id() -> str:
    """Return a name that no other execution environment of the run has."""
    import socket  # noqa: PLC0415 - this room is loaded by who opens no connection, too

    log_stream = os.environ.get("AWS_LAMBDA_LOG_STREAM_NAME")
    return log_stream or f"{socket.gethostname()}/{os.getpid()}"


def user_agent() -> str:
    """Return what clients call themselves, so that a store's log shows which worker it was."""
    return f"sbench/{__version__} sbench-worker/{_NO_TOKEN.sub('.', worker_id())}"


@contextmanager
def environment(variables: Mapping[str, str | None]) -> Iterator[None]:
    """Have environment variables set, or unset where None, for the length of a block."""
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
    """Have ``pause`` entered while the user is asked for something, for the length of a block."""
    _pauses.append(pause)
    try:
        yield
    finally:
        _pauses.remove(pause)


@contextmanager
def around_prompts() -> Iterator[None]:
    """Keep what is drawn on the terminal away while the user is asked for something."""
    with ExitStack() as stack:
        for pause in _pauses:
            stack.enter_context(pause())
        yield


def without_credentials() -> dict[str, str]:
    """Return the environment for a process of ours that signs nothing, and asks nobody far away.

    A store that runs here outlives the command, and needs no more than credentials of its own.
    """
    return {
        name: value
        for name, value in os.environ.items()
        if not (name.startswith(("AWS_", "AZURE_", "GOOGLE_")) or name.upper().endswith("_PROXY"))
    }


def past_proxies() -> dict[str, str]:
    """Return variables with which clients reach servers on this machine without a proxy."""
    hosts = os.environ.get("no_proxy") or os.environ.get("NO_PROXY")
    # Some libraries read the one, and some the other.
    return dict.fromkeys(("no_proxy", "NO_PROXY"), f"{hosts},127.0.0.1" if hosts else "127.0.0.1")


def cpus() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_mib() -> int | None:
    """Return what a cloud function was given; None where there is no such limit."""
    size = os.environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "")
    return int(size) if size.isdigit() else None


def allow_open_files(count: int) -> None:
    """Raise this process's limit of open files, if it is lower.

    Raises
    ------
    ExecutorError
        If it must not be raised that far.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= count or soft == resource.RLIM_INFINITY:
        return
    if hard != resource.RLIM_INFINITY and hard < count:
        raise ExecutorError(
            f"{count} open files are needed and {hard} allowed",
            hint="lower `concurrency`, `threads` or `connections`, or raise `ulimit -Hn`",
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


def forget_peak_rss() -> bool:
    """Let the kernel measure the peak of the resident set anew; return whether it does.

    Linux does so when 5 is written to ``/proc/self/clear_refs`` (proc_pid_clear_refs(5)).
    ``peak_rss_bytes`` still remembers the peak so far.
    """
    peak = peak_rss_bytes()
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return False
    _forgotten_peaks[os.getpid()] = peak
    return True


def peak_rss_bytes() -> int:
    """Return the largest resident set that this process has had."""
    return max(_forgotten_peaks.get(os.getpid(), 0), _peak_rss_bytes())


def _peak_rss_bytes() -> int:
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        # macOS counts ru_maxrss in bytes (getrusage(2)); Linux has /proc.
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # VmHWM, not ru_maxrss: after fork and exec that one still holds the parent's peak.
    return next(int(line.split()[1]) for line in status.splitlines() if "VmHWM" in line) * KIB
