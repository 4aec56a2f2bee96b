"""A parent process that forks others after importing everything they need.

It has no threads. Forks share its memory, so a thousand processes need memory only for the pages
they write, not for the imports. (The standard library's fork server would also load the user's
``__main__`` into each process, and cannot report why one died.)

The driver communicates with it in JSON lines over a Unix socket::

    driver:  {"fork": 3, ...}       a file descriptor may be attached
    server:  {"fork": 3, "pid": 4711}  or  {"fork": 3, "error": "..."}
    driver:  {"kill": 4711}
    server:  {"pid": 4711, "status": -9}
    driver:  {"end": true}

The connection closes when the driver dies for any reason; the server then kills its processes and
exits. On Linux the kernel kills them if the server is killed itself.

This module imports only the standard library: the Lambda host runs it where only the code of a
function can be imported.
"""

import ctypes
import gc
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    import subprocess

_PR_SET_PDEATHSIG: Final = 1
"""prctl(2)"""
_MAX_READ: Final = 1 << 16
_MAX_FDS: Final = 16


def start_fork_server(
    module: str, rehearsal: str, environment: Mapping[str, str], *files: int
) -> "tuple[socket.socket, subprocess.Popen[bytes]]":
    """Start a fork server of ours in a process of its own.

    Parameters
    ----------
    module
        What it runs, with the descriptors of the connection and of ``files``, and ``rehearsal``.
    rehearsal
        JSON of an invocation to perform, and to fail, before the first fork.
    environment
        Variables besides those of this process.
    *files
        Descriptors that it inherits.

    Returns
    -------
    tuple
        The connection to it, and the process.
    """
    import subprocess

    ours, theirs = socket.socketpair()
    with theirs:
        fds = (theirs.fileno(), *files)
        process = subprocess.Popen(
            # -P: what lies in the current directory is not ours to import.
            [sys.executable, "-P", "-m", module, *map(str, fds), rehearsal],
            env={**os.environ, **environment},
            pass_fds=fds,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
    return ours, process


class ForkServer:
    """Forks a process for each order.

    Parameters
    ----------
    control_fd
        Socket to the driver.
    run
        Runs in each new process, with the order and the descriptor that came with it.
    ended
        Called in the server with the order of each process that has ended.
    """

    def __init__(
        self,
        control_fd: int,
        run: Callable[[dict[str, Any], int | None], None],
        *,
        ended: Callable[[dict[str, Any]], None] = lambda _: None,
    ) -> None:
        # The driver handles interrupts; a terminal sends them to the full process group.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._control = socket.socket(fileno=control_fd)
        self._run = run
        self._ended = ended
        self._orders: dict[int, dict[str, Any]] = {}

    def serve(self) -> bool:
        """Fork until the driver exits or sends the end; return whether it sent the end."""
        # The objects that exist now are shared with all processes. A collector that skips them
        # never writes to their pages, so the pages stay shared.
        gc.collect()
        gc.freeze()
        read_end, write_end = os.pipe()
        for end in (read_end, write_end):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        try:
            return self._serve(read_end)
        except (BrokenPipeError, ConnectionResetError):
            return False  # the driver exited during a write
        finally:
            for pid in self._orders:
                _end_group(pid)
            for pid, order in self._orders.items():
                os.waitpid(pid, 0)
                self._ended(order)

    def _serve(self, wakeups: int) -> bool:
        unread = b""
        while True:
            ready, _, _ = select.select([self._control.fileno(), wakeups], [], [])
            if wakeups in ready:
                os.read(wakeups, _MAX_READ)
                self._reap()
            if self._control.fileno() not in ready:
                continue
            data, fds, _, _ = socket.recv_fds(self._control, _MAX_READ, _MAX_FDS)
            if not data:
                return False
            *lines, unread = (unread + data).split(b"\n")
            for line in lines:
                order = json.loads(line)
                if "end" in order:
                    return True
                if "fork" in order:
                    self._fork(order, fds.pop(0) if fds else None)
                elif order["kill"] in self._orders:
                    # Kill only processes not reaped yet: their number cannot belong to another
                    # process.
                    _end_group(order["kill"])

    def _reap(self) -> None:
        while self._orders:
            pid = -1
            if hasattr(os, "waitid"):  # not on macOS
                child = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if child is None:
                    return
                # Kill the processes that it started, while its number cannot be reused.
                pid = child.si_pid
                _end_group(pid)
            pid, status = os.waitpid(pid, os.WNOHANG)
            if not pid:
                return
            if (order := self._orders.pop(pid, None)) is not None:
                self._ended(order)
            self._send({"pid": pid, "status": os.waitstatus_to_exitcode(status)})

    def _fork(self, order: dict[str, Any], fd: int | None) -> None:
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError as exc:
            self._send({"fork": order["fork"], "error": str(exc)})
        else:
            if not pid:
                self._become(parent, order, fd)
            self._orders[pid] = order
            self._send({"fork": order["fork"], "pid": pid})
        finally:
            if fd is not None:
                os.close(fd)

    def _become(self, parent: int, order: dict[str, Any], fd: int | None) -> NoReturn:
        status = 1
        try:
            self._control.close()
            die_with(parent)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._run(order, fd)
            status = 0
        except SystemExit as exc:
            status = exc.code if isinstance(exc.code, int) else int(exc.code is not None)
        except BaseException:  # noqa: BLE001 - never return into the server's loop
            import traceback

            traceback.print_exc()
        finally:
            with suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            # Skip the server's exit handlers.
            os._exit(status & 0xFF)

    def _send(self, message: dict[str, Any]) -> None:
        self._control.sendall(json.dumps(message).encode() + b"\n")


def answer_lines(driver: socket.socket, answer: Callable[[Any], str]) -> None:
    """Answer each line of JSON with another, until there are no more."""
    # A driver that has gone has nothing to say any more, and needs no answer.
    with suppress(BrokenPipeError, ConnectionResetError), driver.makefile("rwb") as stream:
        for line in stream:
            stream.write(answer(json.loads(line)).encode() + b"\n")
            stream.flush()


def _end_group(pid: int) -> None:
    # A process that does not lead a group, or not yet, is killed individually.
    for kill in (os.killpg, os.kill):
        with suppress(ProcessLookupError):
            kill(pid, signal.SIGKILL)


def die_with(parent: int) -> None:
    """Make the kernel kill this process when its parent, process ``parent``, ends (Linux only)."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        # The parent died between fork and prctl.
        os._exit(1)
