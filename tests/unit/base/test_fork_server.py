"""The fork server, driven over its socket."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

SERVER = """
import os, signal, sys
from serverless_bench.base.fork_server import ForkServer

def run(order, fd):
    if fd is not None:
        os.write(fd, order["text"].encode())
    if order.get("wait"):
        signal.pause()
    sys.exit(order.get("status", 0))

ended = lambda order: print("ended", order["fork"], flush=True)
print("wanted", ForkServer(int(sys.argv[1]), run, ended=ended).serve())
"""


class Driver:
    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.lines = control.makefile("r")

    def send(self, *fds: int, **order: Any) -> None:
        socket.send_fds(self.control, [json.dumps(order).encode() + b"\n"], fds)

    def receive(self) -> dict[str, Any]:
        return dict(json.loads(self.lines.readline()))

    def start(self, *fds: int, **order: Any) -> int:
        self.send(*fds, fork=1, **order)
        return int(self.receive()["pid"])


@contextmanager
def server() -> Iterator[tuple[Driver, "subprocess.Popen[str]"]]:
    ours, theirs = socket.socketpair()
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, str(theirs.fileno())],
        pass_fds=(theirs.fileno(),),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        theirs.close()
        try:
            yield Driver(ours), process
        finally:
            ours.close()


def test_a_process_has_its_order_and_its_descriptor_and_its_status_is_known() -> None:
    read_end, write_end = os.pipe()
    with server() as (driver, process):
        pid = driver.start(write_end, text="hello", status=3)
        os.close(write_end)
        assert driver.receive() == {"pid": pid, "status": 3}
        # The server keeps no copy of the descriptor: the pipe has an end.
        assert os.read(read_end, 100) == b"hello"
        assert os.read(read_end, 100) == b""
        driver.send(end=True)
        assert process.communicate()[0] == "ended 1\nwanted True\n"
    os.close(read_end)


def test_a_process_is_killed_on_demand_and_no_other_one_is() -> None:
    with server() as (driver, process):
        pid = driver.start(wait=True)
        driver.send(kill=os.getpid())
        driver.send(kill=pid)
        assert driver.receive() == {"pid": pid, "status": -signal.SIGKILL}
        driver.send(end=True)
        assert process.communicate()[0] == "ended 1\nwanted True\n"


@pytest.mark.parametrize("wanted", [True, False])
def test_all_end_with_the_server(wanted: bool) -> None:  # noqa: FBT001 - parametrized
    with server() as (driver, process):
        pids = [driver.start(wait=True) for _ in range(3)]
        if wanted:
            driver.send(end=True)
        else:
            driver.lines.close()
            driver.control.close()
        assert process.communicate()[0] == "ended 1\n" * 3 + f"wanted {wanted}\n"
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
