"""The parent that the local executor's workers are forked from.

It is a process of its own, started once per job: it imports what a function needs, has
no threads, and then forks a worker for every socket it is handed. A fork shares the
parent's memory, so a thousand workers cost what they write and not what they import.
(The standard library's fork server would also load the user's ``__main__`` into every
worker and cannot say why one died.)

Driver and zygote talk in JSON lines over a Unix socket::

    driver:  {"fork": 3}            with the worker's socket attached
    zygote:  {"slot": 3, "pid": 4711}  or  {"slot": 3, "error": "..."}
    driver:  {"kill": 4711}
    zygote:  {"pid": 4711, "signal": 9, "status": null}

The line ends when the driver dies, however it dies; the zygote then kills its workers
and goes. On Linux the kernel kills the workers if the zygote is killed itself.
"""

import ctypes
import gc
import json
import mmap
import os
import select
import signal
import socket
import sys
from typing import Any, Final

_PR_SET_PDEATHSIG: Final = 1
"""prctl(2)"""
_MAX_LINE: Final = 1 << 16


def main(control_fd: int, live_fd: int, rehearsal: str) -> None:
    """Serve the driver until its end of the control socket closes.

    Parameters
    ----------
    control_fd, live_fd
        Socket to the driver, and the file of counters for live progress.
    rehearsal
        JSON of an invocation to perform, and to fail, before the first fork.
    """
    # The driver decides what an interrupt means; a terminal sends it to the whole group.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    control = socket.socket(fileno=control_fd)
    rehearse(json.loads(rehearsal))
    # What exists now is shared with every worker; a collector that never looks at it
    # never writes to it, so its pages stay shared.
    gc.collect()
    gc.freeze()
    read_end, write_end = os.pipe()
    for end in (read_end, write_end):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    workers: set[int] = set()
    try:
        _serve(control, read_end, live_fd, workers)
    except (BrokenPipeError, ConnectionResetError):
        pass  # the driver has gone while we were telling it something
    finally:
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
        for pid in workers:
            os.waitpid(pid, 0)


def rehearse(event: dict[str, Any]) -> None:
    """Do once, for all workers, what a first invocation does besides its transfer.

    It imports the client, loads its models, makes a TLS context and asks OpenSSL for a
    cipher. Inherited, that costs each worker 5 MiB less than done by itself.
    """
    from serverless_bench.payload import keystream  # noqa: PLC0415 - not what a worker needs first
    from serverless_bench.worker import invocation  # noqa: PLC0415 - not what a worker needs first

    stream = keystream.Keystream("")
    stream.agrees(0, memoryview(bytes(1)))
    invocation.handle(event)
    invocation.forget_clients()


def _serve(control: socket.socket, wakeups: int, live_fd: int, workers: set[int]) -> None:
    unread = b""
    while True:
        ready, _, _ = select.select([control.fileno(), wakeups], [], [])
        if wakeups in ready:
            os.read(wakeups, _MAX_LINE)
            _reap(control, workers)
        if control.fileno() not in ready:
            continue
        data, fds, _, _ = socket.recv_fds(control, _MAX_LINE, 16)
        if not data:
            return
        *lines, unread = (unread + data).split(b"\n")
        for line in lines:
            order = json.loads(line)
            if "fork" in order:
                _fork(control, order["fork"], fds.pop(0), live_fd, workers)
            elif order["kill"] in workers:
                # Only what was not reaped yet: its number cannot be somebody else's.
                os.kill(order["kill"], signal.SIGKILL)


def _reap(control: socket.socket, workers: set[int]) -> None:
    while workers:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        workers.discard(pid)
        code = os.waitstatus_to_exitcode(status)
        _tell(control, {"pid": pid, "signal": -code if code < 0 else None, "status": code})


def _fork(
    control: socket.socket, slot: int, worker_fd: int, live_fd: int, workers: set[int]
) -> None:
    parent = os.getpid()
    try:
        pid = os.fork()
    except OSError as exc:
        os.close(worker_fd)
        _tell(control, {"slot": slot, "error": str(exc)})
        return
    if pid:
        os.close(worker_fd)
        workers.add(pid)
        _tell(control, {"slot": slot, "pid": pid})
        return
    status = 1
    try:
        control.close()
        _die_with(parent)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _work(socket.socket(fileno=worker_fd), slot, live_fd)
        status = 0
    finally:
        # Never return into the zygote's loop, and skip its exit handlers.
        sys.stderr.flush()
        os._exit(status)


def _work(driver: socket.socket, slot: int, live_fd: int) -> None:
    """Run invocations until the driver closes the socket."""
    from serverless_bench.job.spec import InvocationSpec  # noqa: PLC0415
    from serverless_bench.worker.invocation import run_invocation  # noqa: PLC0415 - loaded before the fork

    counters = memoryview(mmap.mmap(live_fd, 0)).cast("Q")

    def on_moved(count: int) -> None:
        counters[slot] += count

    with driver.makefile("rwb") as stream:
        for line in stream:
            invocation = InvocationSpec.from_json(json.loads(line))
            record = run_invocation(invocation, on_moved=on_moved)
            stream.write(json.dumps(record.to_json()).encode() + b"\n")
            stream.flush()


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
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
