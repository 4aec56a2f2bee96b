"""The parent that the execution environments of one function's code are forked from.

It runs as a script with nothing but the standard library, because the function's own
code is what has to be on ``sys.path``. It has no threads. A fork shares its memory, so a
thousand environments cost what they write and not what they import.

Host and zygote talk in JSON lines over a Unix socket::

    host:    {"fork": 3, "environment": {...}, "handler": ..., "log": ..., ...}
    zygote:  {"fork": 3, "pid": 4711}  or  {"fork": 3, "error": "..."}
    host:    {"kill": 4711}
    zygote:  {"pid": 4711, "status": -9}
    host:    {"end": true}

The line ends when the host dies, however it dies; the zygote then kills its environments,
removes the host's scratch directory and goes. On Linux the kernel kills them if the zygote
is killed itself.

``awslambdaric``'s native client reads the address of the Runtime API when it is
imported, so it is imported after the fork.
"""

import ctypes
import gc
import importlib
import json
import os
import resource
import select
import shutil
import signal
import socket
import sys
import time  # noqa: TID251 - sets the time zone, reads no clock
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn

_PR_SET_PDEATHSIG: Final = 1
"""prctl(2)"""
_MAX_READ: Final = 1 << 16
_HARMLESS: Final = (
    "awslambdaric.lambda_context",
    "awslambdaric.lambda_literals",
    "awslambdaric.lambda_runtime_exception",
    "awslambdaric.lambda_runtime_log_utils",
    "awslambdaric.lambda_runtime_marshaller",
    "http.client",
)
"""What every environment imports and what does not look at its environment variables."""


def main(control_fd: int, told: str) -> None:
    """Serve the host until its end of the control socket closes.

    Parameters
    ----------
    control_fd
        Socket to the host.
    told
        JSON: ``paths`` come first on ``sys.path``, ``last`` last, ``preload`` are
        modules, ``rehearse`` are calls, and ``scratch`` is the host's directory.
    """
    # The host decides what an interrupt means; a terminal sends it to the whole group.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    control = socket.socket(fileno=control_fd)
    settings = json.loads(told)
    _set_path(settings["paths"], settings["last"])
    _prepare(settings)
    # A collector that never looks at what is shared never writes to its pages.
    gc.collect()
    gc.freeze()
    read_end, write_end = os.pipe()
    for end in (read_end, write_end):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    alive: dict[int, list[str]] = {}
    wanted = False
    try:
        wanted = _serve(control, read_end, alive)
    except (BrokenPipeError, ConnectionResetError):
        pass  # the host has gone while we were telling it something
    finally:
        for pid in alive:
            _end_group(pid)
        for pid, cgroups in alive.items():
            os.waitpid(pid, 0)
            _remove(cgroups)
        if not wanted:
            shutil.rmtree(settings["scratch"], ignore_errors=True)


def _set_path(paths: list[str], last: list[str]) -> None:
    if paths:
        # The directory of this very file is first otherwise, and not the function's.
        sys.path[:] = [*paths, *(p for p in sys.path if p != str(Path(__file__).parent))]
    sys.path += last


def _prepare(settings: dict[str, Any]) -> None:
    """Import, and do once for all, what the environments would each do by themselves."""
    for name in (*_HARMLESS, *settings["preload"]):
        try:
            importlib.import_module(name)
        except Exception:  # noqa: BLE001 - the environment will say so to whoever invokes it
            traceback.print_exc()
    for call in settings["rehearse"]:
        module, _, function = call["call"].partition(":")
        try:
            getattr(importlib.import_module(module), function)(*call["arguments"])
        except Exception:  # noqa: BLE001 - as above
            traceback.print_exc()


def _serve(control: socket.socket, wakeups: int, alive: dict[int, list[str]]) -> bool:
    """Do what the host orders; return whether it said that this is the end."""
    unread = b""
    while True:
        ready, _, _ = select.select([control.fileno(), wakeups], [], [])
        if wakeups in ready:
            os.read(wakeups, _MAX_READ)
            _reap(control, alive)
        if control.fileno() not in ready:
            continue
        data = control.recv(_MAX_READ)
        if not data:
            return False
        *lines, unread = (unread + data).split(b"\n")
        for line in lines:
            order = json.loads(line)
            if "end" in order:
                return True
            if "fork" in order:
                _fork(control, order, alive)
            elif order["kill"] in alive:
                # Only what was not reaped yet: its number cannot be somebody else's.
                _end_group(order["kill"])


def _reap(control: socket.socket, alive: dict[int, list[str]]) -> None:
    while alive:
        found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if found is None:
            return
        # What the function started goes with it, while the number is still its own.
        _end_group(found.si_pid)
        pid, status = os.waitpid(found.si_pid, 0)
        _remove(alive.pop(pid, []))
        _tell(control, {"pid": pid, "status": os.waitstatus_to_exitcode(status)})


def _end_group(pid: int) -> None:
    # A child that did not come to setsid() yet has no group of its own.
    for kill in (os.killpg, os.kill):
        with suppress(ProcessLookupError):
            kill(pid, signal.SIGKILL)


def _remove(cgroups: list[str]) -> None:
    for directory in cgroups:
        with suppress(OSError):
            Path(directory).rmdir()


def _fork(control: socket.socket, order: dict[str, Any], alive: dict[int, list[str]]) -> None:
    parent = os.getpid()
    try:
        pid = os.fork()
    except OSError as exc:
        _tell(control, {"fork": order["fork"], "error": str(exc)})
        return
    if pid:
        alive[pid] = order["cgroups"]
        _tell(control, {"fork": order["fork"], "pid": pid})
        return
    status = 1
    try:
        control.close()
        _die_with(parent)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _become(order)
        status = 0
    except SystemExit as exc:
        status = exc.code if isinstance(exc.code, int) else int(exc.code is not None)
    except BaseException:  # noqa: BLE001 - never return into the zygote's loop
        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status & 0xFF)


def _become(order: dict[str, Any]) -> None:
    """Be the execution environment that the host orders."""
    os.setsid()
    for directory in order["cgroups"]:
        (Path(directory) / "cgroup.procs").write_text("0")
    if order["data_bytes"]:
        resource.setrlimit(resource.RLIMIT_DATA, (order["data_bytes"],) * 2)
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.close(log)
    os.chdir(order["directory"])
    if order["command"]:
        os.execve(order["command"][0], order["command"], order["environment"])  # noqa: S606
    os.environ.clear()
    os.environ.update(order["environment"])
    time.tzset()
    _run(order["handler"])


def _run(handler: str) -> None:
    from awslambdaric.__main__ import main as runtime  # noqa: PLC0415 - see the module's text

    runtime(["awslambdaric", handler])


def run_fresh(told: str, handler: str) -> NoReturn:
    """Be an execution environment in an interpreter that has nothing preloaded."""
    settings = json.loads(told)
    _set_path(settings["paths"], settings["last"])
    _run(handler)
    sys.exit(0)


def _tell(control: socket.socket, message: dict[str, Any]) -> None:
    control.sendall(json.dumps(message).encode() + b"\n")


def _die_with(parent: int) -> None:
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        # It died between fork and prctl.
        os._exit(1)


if __name__ == "__main__":
    if sys.argv[1] == "fresh":
        run_fresh(sys.argv[2], sys.argv[3])
    main(int(sys.argv[1]), sys.argv[2])
