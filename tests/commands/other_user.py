"""Another user of this machine: a process of the user nobody, which executes commands.

It is started as root, loads its modules, and becomes nobody; from then on it has the rights of any
local user. Errors are answers: tests want to see refusals.
"""

import http.client
import json
import os
import resource
import select
import signal
import socket
import ssl
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

NOBODY: Final = 65534
CROWD: Final = 1000
CLOSED: Final = frozenset({"BrokenPipeError", "ConnectionResetError", "RemoteDisconnected"})
"""Result of a request over a connection that the server closes when it accepts it."""
_TIMEOUT_S: Final = 10


@dataclass(frozen=True)
class Stranger:
    """The process, from our side; each method returns its result, an error as its name."""

    process: "subprocess.Popen[str]"

    def request(
        self,
        url: str,
        method: str = "GET",
        body: str = "",
        headers: Mapping[str, str] | None = None,
        certificate: Path | None = None,
    ) -> tuple[int | str, str]:
        """Send an HTTP request; return status and body, or the name of the error and its text.

        To an https URL it shows the certificate in a file, with its key, if it has one.
        """
        shown = None if certificate is None else str(certificate)
        status, text = self._tell("request", url, method, body, headers or {}, shown)
        return status, text

    def hold(self, host: str, port: int) -> Any:
        """Open a connection and keep it; return its address."""
        return self._tell("hold", host, port)

    def crowd(self, *ports: int) -> None:
        """Open a thousand connections to each port, keep them open, and send nothing."""
        assert self._tell("crowd", *ports) == CROWD * len(ports)

    def turned_away(self) -> int:
        """Return how many connections of the last crowd the other end has closed."""
        count: int = self._tell("turned_away")
        return count

    def serve(self) -> str:
        """Serve HTTP, 200 to everything; return its URL."""
        return f"http://127.0.0.1:{self._tell('serve')}"

    def unix(self, path: Path | str) -> Any:
        """Connect to a Unix socket."""
        return self._tell("unix", str(path))

    def reaches(self, path: Path | str) -> list[str]:
        """Return which files at or below a path it can list, read or write."""
        found: list[str] = self._tell("reaches", str(path))
        return found

    def kill(self, pid: int) -> Any:
        """End a process."""
        return self._tell("kill", pid)

    def _tell(self, what: str, *arguments: object) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([what, *arguments]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@contextmanager
def stranger() -> Iterator[Stranger]:
    """Have such a process for the length of a block."""
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    with subprocess.Popen(
        [sys.executable, "-m", "tests.commands.other_user"],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Stranger(process)


def _request(
    url: str, method: str, body: str, headers: Mapping[str, str], certificate: str | None
) -> tuple[int | str, str]:
    parts = urlsplit(url)
    assert parts.hostname is not None
    line = http.client.HTTPConnection(parts.hostname, parts.port, timeout=_TIMEOUT_S)
    if parts.scheme == "https":
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        if certificate is not None:
            tls.load_cert_chain(certificate)
        line = http.client.HTTPSConnection(
            parts.hostname, parts.port, timeout=_TIMEOUT_S, context=tls
        )
    with closing(line):
        path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
        line.request(method, path, body.encode() or None, dict(headers))
        answer = line.getresponse()
        return answer.status, answer.read(1 << 16).decode(errors="replace")


def _unix(path: str) -> str:
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(path)
    return "connected"


def _reaches(path: str) -> list[str]:
    found = []
    below = [str(Path(at, name)) for at, _, names in os.walk(path) for name in names]
    for each in [path, *below]:
        if os.access(each, os.R_OK):
            found.append(f"read {each}")
        if os.access(each, os.W_OK):
            found.append(f"write {each}")
    return found


def _kill(pid: int) -> str:
    os.kill(pid, signal.SIGTERM)
    return "killed"


_held: list[socket.socket] = []


def _hold(host: str, port: int) -> Any:
    _held.append(socket.create_connection((host, port), timeout=_TIMEOUT_S))
    return _held[-1].getsockname()[:2]


_crowd: list[socket.socket] = []


def _open_crowd(*ports: int) -> int:
    _crowd.clear()
    patience_s, pause = 0.5, threading.Event()
    for port in ports * CROWD:
        # No faster than a server with a short queue accepts them.
        pause.wait(0.001)
        _crowd.append(socket.socket())
        _crowd[-1].settimeout(patience_s)
        if _crowd[-1].connect_ex(("127.0.0.1", port)):
            # The queue is full: the other connections wait.
            patience_s = 0
    return len(_crowd)


def _turned_away() -> int:
    # A connection in progress is neither readable nor ended.
    ends = select.poll()
    for line in _crowd:
        ends.register(line, select.POLLIN)
    return len(ends.poll(0))


def _serve() -> int:
    listener = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        while True:
            taken, _ = listener.accept()
            _held.append(taken)
            taken.recv(1 << 12)
            taken.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")

    threading.Thread(target=answer, daemon=True).start()
    return int(listener.getsockname()[1])


_DOES: Final[Mapping[str, Callable[..., Any]]] = {
    "crowd": _open_crowd,
    "hold": _hold,
    "kill": _kill,
    "reaches": _reaches,
    "request": _request,
    "serve": _serve,
    "turned_away": _turned_away,
    "unix": _unix,
}


def _obey() -> None:
    # Load a module now that only root can read later.
    "".encode("idna")
    traceback.format_exc()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    for line in sys.stdin:
        what, *arguments = json.loads(line)
        try:
            answer = _DOES[what](*arguments)
        except (OSError, http.client.HTTPException) as exc:
            error = type(exc).__name__
            answer = (error, str(exc)) if what == "request" else error
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _obey()
