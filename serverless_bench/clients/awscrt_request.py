"""One request of the AWS Common Runtime: its callbacks, and how to wait for its end."""

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from awscrt.exceptions import AwsCrtError
from awscrt.s3 import S3Request

from serverless_bench.clients.base import Exchange, Sink, Source
from serverless_bench.clients.s3_errors import crt_error
from serverless_bench.errors import TimedOut
from serverless_bench.payload.keystream import KeystreamFile

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_TICK_S: Final = 0.25
"""How often a waiting caller reports to the exchange that nothing moved."""


class CrtRequest:
    """What the runtime's threads report of one request, and what the caller reads after.

    Parameters
    ----------
    exchange
        Receives the progress of the request, from one thread at a time.
    sink
        Takes the body of the response; None collects it in ``text``.
    start
        Where in the object the body begins.
    """

    def __init__(self, exchange: Exchange, *, sink: Sink | None = None, start: int = 0) -> None:
        self._exchange = exchange
        self._sink = sink
        self._start = start
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._moves = 0
        self._failure: BaseException | None = None
        self.status = 0
        """Of the response."""
        self.headers: dict[str, str] = {}
        """Of the response; names are lower case."""
        self.text = b""
        """The body of a response that went to no sink."""
        self.refused = False
        """Whether the response is an error."""

    def on_headers(
        self, *, status_code: int, headers: Sequence[tuple[str, str]], **_: object
    ) -> None:
        """The head of the response is here."""
        with self._lock:
            self._answered(status_code, headers)

    def on_body(self, *, chunk: bytes, offset: int, **_: object) -> None:
        """A piece of the body is here; pieces come in order."""
        if self._sink is None:
            self.text += chunk
            return
        self.moved(len(chunk))
        self._sink.write_at(offset - self._start, memoryview(chunk))

    def on_done(
        self,
        *,
        error: BaseException | None,
        status_code: int | None,
        error_headers: Sequence[tuple[str, str]] | None,
        error_body: bytes | None,
        **_: object,
    ) -> None:
        """The request has ended, one way or another."""
        if error is not None and status_code and error_headers is not None:
            self.refused = True
            self.text = error_body or b""
            with self._lock:
                self._answered(status_code, error_headers)
        elif self._failure is None:
            self._failure = error
        self._done.set()

    def moved(self, count: int) -> None:
        """``count`` bytes of a body were read, the request's or the response's."""
        with self._lock:
            self._exchange.moved(count)
            self._moves += 1

    def give_up(self, failure: BaseException) -> None:
        """The request's body cannot be read any further."""
        self._failure = failure

    def wait(self, request: S3Request, timeout_s: float) -> None:
        """Return when there is a response, and all of it.

        Raises
        ------
        OperationError
            If there is none, or no byte moved for ``timeout_s``.
        """
        try:
            self._wait(timeout_s)
        except BaseException as exc:  # noqa: BLE001 - the sink is not used after this
            self._failure = exc
            request.cancel()
            self._done.wait()
        if isinstance(self._failure, AwsCrtError):
            raise crt_error(self._failure.name, self._failure.message) from self._failure
        if self._failure is not None:
            raise self._failure

    def _wait(self, timeout_s: float) -> None:
        quiet_s, seen = 0.0, 0
        while not self._done.wait(_TICK_S):
            quiet_s = quiet_s + _TICK_S if self._moves == seen else 0.0
            seen = self._moves
            with self._lock:
                self._exchange.moved(0)
            if quiet_s >= timeout_s:
                raise TimedOut(f"no byte moved for {timeout_s:g} s")

    def _answered(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        self.status = status
        self.headers = {name.lower(): value for name, value in headers}
        self._exchange.answered(status, self.headers)


class CrtRequestBody(KeystreamFile):
    """The body of a request, as the runtime reads it."""

    def __init__(self, crt_request: CrtRequest, source: Source) -> None:
        super().__init__(source, source.size)
        self._request = crt_request

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        """Fill ``buffer``; a body that ends too early is one that the runtime does not send."""
        try:
            count = super().readinto(buffer)
            self._request.moved(count)
        except BaseException as exc:  # noqa: BLE001 - the runtime would print it
            self._request.give_up(exc)
            return 0
        return count
