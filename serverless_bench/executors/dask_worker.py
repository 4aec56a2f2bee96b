"""What a Dask worker does for us: it has processes of its own that run functions, and waits.

A function in a thread of Dask's would share its interpreter, and its memory, with Dask and with
the functions in the other threads. So a task hands its event to a process that is forked from
one with our code and nothing of Dask in it. As a command this module is that parent.
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

from serverless_bench.executors.base import GRACE_S
from serverless_bench.process import cpus
from serverless_bench.process.fork_server import ForkServer, answer_lines, start_fork_server
from serverless_bench.version import __version__
from serverless_bench.worker.delivery import RECORD_S, answer_delivery
from serverless_bench.worker.probe import code_files
from serverless_bench.worker.rehearsal import rehearse
from serverless_bench.worker.user_function import ALLOW_CODE

_MODULE: Final = "serverless_bench.executors.dask_worker"
_IDLE_S: Final = 10.0
"""After so long without a task nothing of ours is left in a Dask worker."""
_PROBE_S: Final = 20.0
_MOST_S: Final = 10.0**7
"""A socket waits for no longer than fits into its clock."""


def run_event(event: str, rehearsal: str, topic: str) -> None:
    """Run one delivery of an event in a process of its own; what a Dask task does.

    Its result is nothing, because the record is in the store. That it was refused is an event of
    Dask's, which goes to the driver without having been asked for, and is no pickle.

    Parameters
    ----------
    event
        JSON of an ``InvocationSpec`` that has a control target.
    rehearsal
        JSON of what the process's parent does before it forks.
    topic
        Name of Dask's events that the driver listens to.
    """
    answer = json.loads(_answer(event, rehearsal))
    if "refused" in answer:
        from distributed import get_worker  # noqa: PLC0415 - the parent has nothing of Dask in it

        spec = json.loads(event)
        about = {"index": spec["index"], "launch": spec["launch"]}
        get_worker().log_event(topic, {**answer, **about})


async def answer_probe(event: str, rehearsal: str) -> str:
    """Return what a process that runs functions answers to the probe, as JSON.

    The Dask worker goes on with its own affairs meanwhile.
    """
    return await asyncio.to_thread(_answer, event, rehearsal)


def _answer(event: str, rehearsal: str) -> str:
    """Return what a process of its own answers to an event, as JSON."""
    with _lock:
        parent = _parents.get(rehearsal)
        if parent is None or not parent.take():
            parent = _parents[rehearsal] = _Parent(rehearsal)
            parent.take()
    # It stops by itself at its deadline, and writes its record; a library that hangs does not.
    deadline_s = json.loads(event).get("deadline", _PROBE_S)
    limit_s = min(float(deadline_s), _MOST_S) + RECORD_S + GRACE_S
    try:
        return parent.run(event, limit_s)
    finally:
        parent.give_back()


def describe() -> str:
    """Return what there is where this Dask worker runs, as JSON."""
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
    """Return what stands for every source file of this package."""
    return sha256(json.dumps(code_files()).encode()).hexdigest()


class _Parent:
    """A process that has forked others, and which of these are idle.

    Parameters
    ----------
    rehearsal
        As ``run_event``.
    """

    def __init__(self, rehearsal: str) -> None:
        self._rehearsal = rehearsal
        self._lock = threading.Lock()
        """Of the connection to the parent."""
        self._idle: list[_Function] = []
        self._taken = 0
        self._timer: threading.Timer | None = None
        # It is what Dask does: run code that comes with a task.
        self._control, self._process = start_fork_server(_MODULE, rehearsal, {ALLOW_CODE: "1"})
        self._messages = self._control.makefile("rb")

    def take(self) -> bool:
        """Keep it for a task; return False if it has ended. With ``_lock`` of the module."""
        if self._timer is not None:
            self._timer.cancel()
        if self._process.poll() is not None:
            self._end()
            return False
        self._taken += 1
        return True

    def give_back(self) -> None:
        """End it some time after the last task."""
        with _lock:
            self._taken -= 1
            if not self._taken:
                self._timer = threading.Timer(_IDLE_S, self._end_if_idle)
                self._timer.daemon = True
                self._timer.start()

    def run(self, event: str, limit_s: float) -> str:
        """Have a process run an event; one that is silent for too long is ended."""
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
        return json.dumps({"ended": "its process has ended, or was ended"})

    def _fork(self) -> "_Function":
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                socket.send_fds(self._control, [b'{"fork": 0}\n'], [theirs.fileno()])
            return _Function(ours, self._read_pid())
        except OSError:
            ours.close()
            raise

    def _read_pid(self) -> int:
        """Return the id of the process that is being forked."""
        # What was sent before says which processes have ended; their sockets have said so, too.
        for message in map(json.loads, self._messages):
            if "error" in message:
                raise OSError(message["error"])
            if "fork" in message:
                return int(message["pid"])
        raise ConnectionResetError("their parent has ended")

    def _end_if_idle(self) -> None:
        with _lock:
            if not self._taken:
                self._end()

    def _end(self) -> None:
        if _parents.get(self._rehearsal) is self:
            del _parents[self._rehearsal]
        # It ends with this connection, and its processes with it.
        self._messages.close()
        self._control.close()
        for function in self._idle:
            function.stream.close()
        self._process.wait()


class _Function:
    """A process that runs functions, one after the other."""

    def __init__(self, stream: socket.socket, pid: int) -> None:
        self.stream = stream
        self.pid = pid

    def ask(self, event: str, limit_s: float) -> str:
        """Return what it says when it is through; nothing if it dies or is silent."""
        self.stream.settimeout(limit_s)
        with suppress(OSError), self.stream.makefile("rb") as answers:
            self.stream.sendall(event.encode() + b"\n")
            answer = answers.readline()
            if answer.endswith(b"\n"):
                return answer.decode()
        return ""


_lock: Final = threading.Lock()
_parents: Final[dict[str, _Parent]] = {}
"""By what they have rehearsed."""


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
