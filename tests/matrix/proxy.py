"""A proxy in front of a store or of the Lambda host that answers some requests by itself."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from serverless_bench.base.clock import monotonic_ns
from serverless_bench.base.units import NS_PER_S
from tests.commands.processes import PATIENCE_S


@dataclass(frozen=True)
class Refusal:
    """Answer in place of the server."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    performed: bool = False
    """Whether the server executes the request anyway."""


Rule = Callable[[str, str], Refusal | None]
"""Maps method and path to a refusal; None to pass the request on."""


def passes(method: str, path: str) -> None:
    """Refuse nothing."""


def s3_refusal(status: int, code: str, message: str = "") -> Refusal:
    words = f"<Message>{message}</Message>" if message else ""
    return Refusal(status, f"<Error><Code>{code}</Code>{words}</Error>".encode())


HOLD = replace(s3_refusal(503, "SlowDown"), headers={"Retry-After": "1"})
"""Holds a function that retries, and lets it go on within a second."""


class Proxy:
    """Its address, and the current rule."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.rule: Rule = passes
        self.refused = 0
        self.accepted = Counter[tuple[str, str]]()
        """Conditional writes that the server answered with success, by path and condition."""
        self._lock = threading.Lock()

    def decide(self, method: str, path: str) -> Refusal | None:
        with self._lock:
            refusal = self.rule(method, path)
            self.refused += refusal is not None
        return refusal

    def note(self, path: str, condition: str | None, status: int) -> None:
        if condition is not None and status < 300:
            with self._lock:
                self.accepted[path, condition] += 1


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: "_Server"

    def setup(self) -> None:
        super().setup()
        self.onward = HTTPConnection(self.server.netloc, timeout=PATIENCE_S)

    def finish(self) -> None:
        self.onward.close()
        super().finish()

    def handle(self) -> None:
        # A client may hang up between two requests.
        with suppress(ConnectionError):
            super().handle()

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        refusal = self.server.proxy.decide(self.command, self.path)
        if refusal is not None and not refusal.performed:
            self._say(refusal.status, refusal.headers, refusal.body)
            return
        # Host and all else unchanged, because it is signed.
        self.onward.request(self.command, self.path, body, dict(self.headers.items()))
        answer = self.onward.getresponse()
        if refusal is not None:
            answer.read()
            self._say(refusal.status, refusal.headers, refusal.body)
            return
        if self.command == "PUT":
            condition = self.headers.get("If-Match", self.headers.get("If-None-Match"))
            self.server.proxy.note(self.path, condition, answer.status)
        self._say(answer.status, dict(answer.headers.items()), answer.read())

    def _say(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            if name.lower() not in {"connection", "content-length", "transfer-encoding"}:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = answer  # noqa: N815


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    """With a queue of five, the connection of a sixth client takes a second or three."""

    def __init__(self, server_url: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.netloc = urlsplit(server_url).netloc
        self.proxy = Proxy(f"http://127.0.0.1:{self.server_address[1]}")


@contextmanager
def proxy_of(server_url: str) -> Iterator[Proxy]:
    """Run a proxy of a server for the length of a block."""
    with _Server(server_url) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server.proxy
        finally:
            server.shutdown()
            thread.join()


def refuses_claims(refusal: Refusal) -> Rule:
    """Refuse the first attempt to make each claim: a function's, before its driver's."""
    tried: set[str] = set()

    def rule(method: str, path: str) -> Refusal | None:
        if method != "PUT" or "/claims/0" not in path or path in tried:
            return None
        tried.add(path)
        return refusal

    return rule


def refuses_records(refusal: Refusal, *indexes: int, times: int | None = None) -> Rule:
    """Refuse the records of first attempts; ``times`` for each of them, or for ever."""
    folders = {f"/records/{index:08}/0/": 0 for index in indexes}

    def rule(method: str, path: str) -> Refusal | None:
        for folder, seen in folders.items():
            if method == "PUT" and folder in path and (times is None or seen < times):
                folders[folder] += 1
                return refusal
        return None

    return rule


def expires(
    refusal: Refusal, concerns: Callable[[str, str], bool], *, after: int, s: float
) -> Rule:
    """Refuse requests that ``concerns`` selects for ``s`` seconds, after the first ``after``."""
    seen, began_ns = 0, 0

    def rule(method: str, path: str) -> Refusal | None:
        nonlocal seen, began_ns
        if not concerns(method, path):
            return None
        seen += 1
        if seen <= after:
            return None
        began_ns = began_ns or monotonic_ns()
        return refusal if monotonic_ns() - began_ns < s * NS_PER_S else None

    return rule
