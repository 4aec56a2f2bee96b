"""Single requests of the thin client, kept with any response."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from serverless_bench.base.clock import monotonic_ns
from serverless_bench.base.errors import OperationError, without_secrets
from serverless_bench.base.units import MIB
from serverless_bench.clients.s3_http import element
from serverless_bench.clients.wire import WireClient
from serverless_bench.clients.wire.connection import WireConnection
from serverless_bench.worker.meter import Meter, unseen

_MOST_BYTES: Final = 32 * MIB
"""More than any object or listing here has."""
_NEVER_NS: Final = 1 << 62
_BEGINNING: Final = 200
"""Bytes of a response in a proof."""
_SHOWN: Final = 2000
"""Bytes of a body in a proof; longer bodies repeat it."""


class LostResponse(StrEnum):
    """The moment at which the client closes the connection, so that a response is lost."""

    BODY = "before the last byte was sent"
    SENT = "after the last byte was sent"
    ANSWERED = "after the answer arrived"


@dataclass(slots=True, kw_only=True)
class SentRequest:
    """A request and the response."""

    function: int
    method: str
    key: str
    headers: Mapping[str, str]
    """Without the signature."""
    body: bytes
    lost: LostResponse | None = None
    endpoint: str = ""
    path: str = ""
    """As sent, with the query."""
    status: int | None = None
    """None without a response."""
    code: str = ""
    """Code of an error of S3, or description of a broken connection."""
    answer: Mapping[str, str] = field(default_factory=dict)
    """Headers of the response, by name in lower case."""
    text: bytes = b""
    """Body of the response."""
    start_ns: int = 0
    end_ns: int = 0

    @property
    def ok(self) -> bool:
        """Whether the store says that it did as asked."""
        return self.status is not None and self.status < 300

    @property
    def etag(self) -> str:
        """Entity tag in the response; empty without one."""
        return self.answer.get("etag", "")

    @property
    def is_open(self) -> bool:
        """Whether the store may have acted although it did not say so."""
        return self.status is None or (self.status >= 500 and self.status != 501)

    def to_json(self, origin_ns: int) -> dict[str, Any]:
        """Return what is needed to send it again, with the response and times after an origin."""
        sent = self.body[:_SHOWN].decode("latin-1")
        # A store may echo parts of a request.
        begins = without_secrets(self.text[:_SHOWN].decode("latin-1"))[:_BEGINNING]
        return {
            "function": self.function,
            "start_s": round((self.start_ns - origin_ns) / 1e9, 6),
            "end_s": round((self.end_ns - origin_ns) / 1e9, 6),
            "endpoint": self.endpoint,
            "method": self.method,
            "path": self.path,
            "key": self.key,
            "headers": dict(self.headers),
            "body": {"bytes": len(self.body), "repeats": sent},
            "closed": self.lost,
            "status": self.status,
            "code": self.code,
            "etag": self.etag,
            "answer": {"bytes": len(self.text), "begins": begins},
        }


class AskingClient(WireClient):
    """The thin client for requests of any kind, with any response."""

    def ask(self, request: SentRequest, query: str, begin: Callable[[], object]) -> None:
        """Send a request and fill in the response; ``begin`` is called just before it is sent."""
        meter = Meter(request.method, 0, 0, 0, _NEVER_NS, unseen)
        connection: WireConnection | None = None
        idle = self._idle
        try:
            signing, path = self._signing("GetObject", meter), self._path(request.key)
            request.path = f"{path}?{query}" if query else path
            connection = self._connect(meter, idle)
            parts = (request.method, path, query, request.headers, request.body, connection)
            head = self._head(signing, *parts)
            begin()
            request.start_ns = monotonic_ns()
            if request.lost in {LostResponse.BODY, LostResponse.SENT}:
                data = head + request.body
                connection.ask(data[:-1] if request.lost is LostResponse.BODY else data, meter)
                return
            response = connection.send_request(request.method, head, request.body, meter)
            request.text = connection.read(response, _MOST_BYTES, meter)
            request.status, request.answer = response.status, response.headers
            is_error = b"<Error" in request.text
            code = without_secrets(element(request.text, "Code")) if is_error else ""
            request.code = code[:_BEGINNING]
            if request.ok and request.code and request.method != "GET":
                # S3 begins to respond before it has combined parts, or copied an object.
                request.status = 500
        except OperationError as exc:
            request.code = str(exc)
        finally:
            request.end_ns = monotonic_ns()
            if connection is not None and connection.is_reusable and not request.lost:
                idle.append(connection)
            elif connection is not None:
                connection.close()


class LyingClient(AskingClient):
    """A client that signs the hash of another body than it sends."""

    def _hash(self, body: object) -> str:
        del body
        return hashlib.sha256(b"another body").hexdigest()
