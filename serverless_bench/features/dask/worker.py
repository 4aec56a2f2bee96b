"""The code that runs in a Dask worker: it passes events to separate processes and waits.

A function in a thread of Dask would share its interpreter, and its memory, with Dask and with the
functions in other threads. Therefore a task passes its event to a process forked from a parent with
sbench's code and without Dask. As a command this module is that parent.
"""

import asyncio
import json
import os
import platform
import shutil
import socket
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import version
from typing import Any, Final

from serverless_bench.base.fork_server import ForkServer, answer_lines, start_fork_server
from serverless_bench.base.process import cpus
from serverless_bench.executors.base import GRACE_S
from serverless_bench.features.custom.user_function import ALLOW_CODE
from serverless_bench.features.remote.delivery import RECORD_S, answer_delivery
from serverless_bench.features.remote.probe import code_files
from serverless_bench.version import __version__
from serverless_bench.worker.rehearsal import rehearse

_IDLE_S: Final = 10.0
"""Idle time after which all processes in a Dask worker are stopped."""
_PROBE_S: Final = 20.0
_MOST_S: Final = 10.0**7
"""Maximum timeout that a socket accepts."""


def run_event(event: str, rehearsal: str, topic: str) -> None:
    """Run a delivery of an event in a separate process; the function of a Dask task.

    It returns nothing, because the record is in the store. A rejection is sent as an event of Dask,
    which reaches the driver without a request and without a pickle.

    Parameters
    ----------
    event
        JSON of an ``InvocationSpec`` with a control target.
    rehearsal
        JSON of the invocation that the parent process runs before it forks.
    topic
        Topic of Dask events that the driver listens to.
    """
    answer = json.loads(_answer(event, rehearsal))
    if "refused" in answer:
        from distributed import get_worker

        spec = json.loads(event)
        about = {"index": spec["index"], "launch": spec["launch"]}
        get_worker().log_event(topic, {**answer, **about})


async def answer_probe(event: str, rehearsal: str) -> str:
    """Return the answer of a process to the probe, as JSON.

    The Dask worker remains responsive meanwhile.
    """
    return await asyncio.to_thread(_answer, event, rehearsal)


def _answer(event: str, rehearsal: str) -> str:
    """Return the answer of a separate process to an event, as JSON."""
    with _lock:
        parent = _parents.get(rehearsal)
        if parent is None or not parent.take():
            parent = _parents[rehearsal] = _Parent(rehearsal)
            parent.take()
    # The function stops at the deadline and writes the record, but a library may hang.
    limit_s = min(float(json.loads(event).get("deadline", _PROBE_S)), _MOST_S) + RECORD_S + GRACE_S
    try:
        return parent.run(event, limit_s)
    finally:
        parent.give_back()


def describe() -> str:
    """Return the description of this Dask worker as JSON."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    about = {
        "host": socket.gethostname(),
        "sbench": __version__,
        "code": code_digest(),
        "distributed": version("distributed"),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cpus": cpus(),
        "memory_bytes": memory,
        "free_bytes": shutil.disk_usage(tempfile.gettempdir()).free,
    }
    return json.dumps(about)


def code_digest() -> str:
    """Return a digest of all source files of this package."""
    return sha256(json.dumps(code_files()).encode()).hexdigest()


class _Parent:
    """A parent process, and its idle children.

    Parameters
    ----------
    rehearsal
        See ``run_event``.
    """

    def __init__(self, rehearsal: str) -> None:
        self._rehearsal = rehearsal
        self._lock = threading.Lock()
        """Guards the connection to the parent."""
        self._idle: list[_Function] = []
        self._taken = 0
        self._timer: threading.Timer | None = None
        # Running code that comes with a task is Dask's purpose.
        self._control, self._process = start_fork_server(
            "serverless_bench.features.dask.worker", rehearsal, {ALLOW_CODE: "1"}
        )
        self._messages = self._control.makefile("rb")

    def take(self) -> bool:
        """Reserve it for a task; return False if it has exited. Needs the module's ``_lock``."""
        if self._timer is not None:
            self._timer.cancel()
        if self._process.poll() is not None:
            self._end()
            return False
        self._taken += 1
        return True

    def give_back(self) -> None:
        """Stop the parent some time after the last task."""
        with _lock:
            self._taken -= 1
            if not self._taken:
                self._timer = threading.Timer(_IDLE_S, self._end_if_idle)
                self._timer.daemon = True
                self._timer.start()

    def run(self, event: str, limit_s: float) -> str:
        """Run an event in a process; a process that is silent for too long is killed."""
        try:
            with self._lock:
                function = self._idle.pop() if self._idle else self._fork()
        except OSError as exc:
            return json.dumps({"refused": f"no process could be started: {exc}"})
        answer = function.ask(event, limit_s)
        if answer:
            with self._lock:
                self._idle.append(function)
            return answer
        with self._lock, suppress(OSError):
            self._control.sendall(json.dumps({"kill": function.pid}).encode() + b"\n")
        function.stream.close()
        return json.dumps({"ended": "its process exited, or was killed"})

    def _fork(self) -> "_Function":
        driver_end, child_end = socket.socketpair()
        try:
            with child_end:
                socket.send_fds(self._control, [b'{"fork": 0}\n'], [child_end.fileno()])
            return _Function(driver_end, self._read_pid())
        except OSError:
            driver_end.close()
            raise

    def _read_pid(self) -> int:
        """Return the id of the process that is being forked."""
        # Earlier messages report exited processes, which their sockets have reported, too.
        for message in map(json.loads, self._messages):
            if "error" in message:
                raise OSError(message["error"])
            if "fork" in message:
                return int(message["pid"])
        raise ConnectionResetError("their parent has exited")

    def _end_if_idle(self) -> None:
        with _lock:
            if not self._taken:
                self._end()

    def _end(self) -> None:
        if _parents.get(self._rehearsal) is self:
            del _parents[self._rehearsal]
        # The parent exits with this connection, and its children with it.
        self._messages.close()
        self._control.close()
        for function in self._idle:
            function.stream.close()
        self._process.wait()


class _Function:
    """A process that runs functions sequentially."""

    def __init__(self, stream: socket.socket, pid: int) -> None:
        self.stream = stream
        self.pid = pid

    def ask(self, event: str, limit_s: float) -> str:
        """Return its final answer; empty if it dies or is silent."""
        self.stream.settimeout(limit_s)
        with suppress(OSError), self.stream.makefile("rb") as answers:
            self.stream.sendall(event.encode() + b"\n")
            answer = answers.readline()
            if answer.endswith(b"\n"):
                return answer.decode()
        return ""


_lock: Final = threading.Lock()
_parents: Final[dict[str, _Parent]] = {}
"""Parents by their rehearsal."""


def main(control_fd: int, rehearsal: str) -> None:
    """Fork processes for a Dask worker until it closes the connection."""

    def run(order: Mapping[str, Any], fd: int | None) -> None:
        del order
        answer_lines(socket.socket(fileno=fd), answer_delivery)

    server = ForkServer(control_fd, run)
    rehearse(rehearsal)
    server.serve()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
