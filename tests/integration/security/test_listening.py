"""Sockets of our servers: allowed users, limits of connections, and a lack of descriptors."""

import asyncio
import resource
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import pytest

from serverless_bench.features.loopback import connection
from serverless_bench.features.loopback.listener import (
    OwnListener,
    Shortage,
    report_unless_shortage,
)
from serverless_bench.features.loopback.server import ThreadedServer, serving
from tests.commands.other_user import Stranger
from tests.commands.processes import PATIENCE_S, until


@contextmanager
def no_more_files() -> Iterator[None]:
    """Have no descriptor left for this process in the block."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def accepted(listener: socket.socket) -> socket.socket:
    """Return the next connection."""

    def accept() -> socket.socket | None:
        try:
            return listener.accept()[0]
        except BlockingIOError:
            return None

    taken = until(accept)
    assert taken is not None
    return taken


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1"])
@pytest.mark.parametrize("network", [False, True])
def test_on_loopback_this_users_connections_are_accepted(
    host: str, nobody: Stranger, *, network: bool
) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.create_server((host, 0), family=family)
    with OwnListener.from_socket(bound, network=network) as listener:
        address = listener.getsockname()[:2]
        nobody.hold(*address)
        with socket.create_connection(address) as mine, accepted(listener) as taken:
            assert taken.getpeername() == mine.getsockname()
        with pytest.raises(BlockingIOError):
            listener.accept()


@pytest.mark.parametrize("network", [False, True])
def test_over_the_network_everybodys_are_where_that_was_wanted(
    nobody: Stranger, *, network: bool
) -> None:
    addresses = [
        a.address for links in psutil.net_if_addrs().values() for a in links if a.family == 2
    ]
    others = [address for address in addresses if not address.startswith("127.")]
    if not others:
        pytest.skip("this machine has no address but loopback's")
    bound = socket.create_server(("0.0.0.0", 0))  # noqa: S104 - what it is about
    with OwnListener.from_socket(bound, network=network) as listener:
        theirs = nobody.hold(others[0], listener.getsockname()[1])
        if network:
            with accepted(listener) as taken:
                assert list(taken.getpeername()) == theirs
        else:
            with pytest.raises(BlockingIOError):
                listener.accept()


def connected(server: socketserver.TCPServer) -> socket.socket:
    host, port = server.server_address[:2]
    return socket.create_connection((str(host), port), timeout=PATIENCE_S)


class Counting(OwnListener):
    calls = 0

    def accept(self) -> tuple[socket.socket, Any]:
        self.calls += 1
        return super().accept()


def test_without_descriptors_asyncio_pauses_silently(
    caplog: pytest.LogCaptureFixture,
) -> None:
    listener = Counting.from_socket(socket.create_server(("127.0.0.1", 0)))

    async def serve() -> bytes:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(report_unless_shortage)
        answered = asyncio.Event()

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"hi")
            writer.close()
            answered.set()

        with socket.create_connection(listener.getsockname()) as mine:
            mine.settimeout(PATIENCE_S)
            with no_more_files():
                # It exists already, and uses no descriptor of its own.
                server = await asyncio.start_server(answer, sock=listener)
                while not listener.calls:
                    await asyncio.sleep(0)
            await asyncio.wait_for(answered.wait(), PATIENCE_S)
            server.close()
            return mine.recv(10)

    assert asyncio.run(serve()) == b"hi"
    # Some versions of Python would try a hundred times without the pause.
    assert listener.calls < 8
    assert caplog.text == ""


class Echo(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        while data := self.request.recv(10):
            self.request.sendall(data)


def echoes(line: socket.socket) -> bool:
    line.sendall(b"hi")
    return line.recv(10) == b"hi"


def test_without_descriptors_a_server_of_threads_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shortages = list[OSError]()
    pauses = list[float]()
    paused = threading.Event()
    accept = OwnListener.accept

    def watched(listener: OwnListener) -> tuple[socket.socket, Any]:
        try:
            return accept(listener)
        except Shortage as exc:
            shortages.append(exc)
            raise

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        paused.set()
        threading.Event().wait(seconds)

    monkeypatch.setattr(OwnListener, "accept", watched)
    monkeypatch.setattr("serverless_bench.features.loopback.server.sleep", pause)
    server = ThreadedServer(("127.0.0.1", 0), Echo, connections=10)
    line = socket.socket()
    with server.running(), line:
        with no_more_files():
            line.connect(server.server_address)
            assert paused.wait(PATIENCE_S)
        line.settimeout(PATIENCE_S)
        assert echoes(line)
    assert shortages
    assert len([seconds for seconds in pauses if seconds]) >= len(shortages)


def test_one_connection_more_than_there_may_be_waits_for_another_ones_end() -> None:
    server = ThreadedServer(("127.0.0.1", 0), Echo, connections=2)
    with server.running():
        lines = [connected(server) for _ in range(3)]
        lines[2].sendall(b"hi")
        assert all(echoes(line) for line in lines[:2] * 10)
        lines[2].settimeout(0)
        with pytest.raises(BlockingIOError):
            lines[2].recv(10)
        lines[0].close()
        lines[2].settimeout(PATIENCE_S)
        assert lines[2].recv(10) == b"hi"
        for line in lines:
            line.close()


@pytest.mark.parametrize("reported", [b"", b"GET / HTTP/1.1\r\nHost:"])
def test_a_connection_without_a_request_is_closed(
    reported: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "FIRST_REQUEST_S", 0.01)
    with serving() as store, connected(store) as line:
        line.sendall(reported)
        assert line.recv(10) == b""
