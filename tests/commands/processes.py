"""Find and await the processes that a command started."""

import os
import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar

import psutil

from serverless_bench.base.clock import monotonic_ns
from serverless_bench.base.units import NS_PER_S

T = TypeVar("T")

PATIENCE_S: Final = 300.0
"""Time that a test waits for any expected event.

It is not a statement about durations: it suffices on a machine that is many times slower
than this one, and early events end the wait.
"""


def until(condition: Callable[[], T]) -> T:
    """Return the condition's value as soon as it is true.

    Some conditions look at every process of the machine, so polling takes at most a tenth of the
    time: the awaited work needs the CPU.
    """
    deadline_ns = monotonic_ns() + round(PATIENCE_S * NS_PER_S)
    pause, asked_ns = threading.Event(), monotonic_ns()
    while not (value := condition()):
        now_ns = monotonic_ns()
        assert now_ns < deadline_ns, f"not within {PATIENCE_S} s"
        pause.wait(min(max(0.02, 9 * (now_ns - asked_ns) / NS_PER_S), 0.1))
        asked_ns = monotonic_ns()
    return value


def listening(*pids: int) -> list[int]:
    """Return the TCP ports that processes listen on."""
    return sorted(
        one.laddr.port
        for pid in pids
        for one in psutil.Process(pid).net_connections("tcp")
        if one.status == psutil.CONN_LISTEN
    )


def unix_sockets(*pids: int) -> list[str]:
    """Return the names of the Unix sockets that processes have."""
    found: list[Any] = [
        one.laddr for pid in pids for one in psutil.Process(pid).net_connections("unix")
    ]
    return sorted({str(name) for name in found if name})


class Family:
    """Every process that inherits a mark in its environment."""

    def __init__(self) -> None:
        self.mark = {"SBENCH_TEST_MARK": uuid.uuid4().hex}

    def members(self, command: str = "") -> list[psutil.Process]:
        """Return living processes with ``command`` in their command line, oldest first."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                environment = (path / "environ").read_bytes()
                line = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            name, value = next(iter(self.mark.items()))
            if f"{name}={value}".encode() in environment and command in line:
                with suppress(psutil.NoSuchProcess):  # it ended while we looked
                    found.append(psutil.Process(int(path.name)))
        return sorted(found, key=lambda process: process.pid)

    def workers(self) -> list[psutil.Process]:
        """Return the local executor's workers: the children of its fork server."""
        servers = self.members("executors.local_workers")
        with suppress(psutil.NoSuchProcess):
            return servers[0].children() if servers else []
        return []

    def gone(self) -> bool:
        """Tell whether all have ended."""
        return not [p for p in self.members() if p.pid != os.getpid()]
