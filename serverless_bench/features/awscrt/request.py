"""A request of the AWS Common Runtime: its callbacks, and waiting for its end."""

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from awscrt.exceptions import AwsCrtError
from awscrt.s3 import S3Request

from serverless_bench.base.errors import TimedOut
from serverless_bench.clients.base import Exchange, Sink, Source
from serverless_bench.features.library_clients.errors import crt_error
from serverless_bench.payload.keystream import KeystreamFile

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_TICK_S: Final = 0.25
"""Interval at which a waiting caller reports to the exchange that nothing moved."""


class CrtRequest:
    """State of a request, reported by the threads of the runtime and read by the caller.

    Parameters
    ----------
    exchange
        Receives the progress of the request, from one thread at a time.
    sink
        Takes the body of the response; None collects it in ``text``.
    start
        Offset of the body in the object.
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
        """HTTP status of the response."""
        self.headers: dict[str, str] = {}
        """Headers of the response; names are lower case."""
        self.text = b""
        """The body of a response without a sink."""
        self.refused = False
        """Whether the response is an error."""

    def on_headers(
        self, *, status_code: int, headers: Sequence[tuple[str, str]], **_: object
    ) -> None:
        """Handle the head of the response."""
        with self._lock:
            self._answered(status_code, headers)

    def on_body(self, *, chunk: bytes, offset: int, **_: object) -> None:
        """Handle a piece of the body; pieces arrive in order."""
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
        """Handle the end of the request, in success and in failure."""
        if error is not None and status_code and error_headers is not None:
            self.refused = True
            self.text = error_body or b""
            with self._lock:
                self._answered(status_code, error_headers)
        elif self._failure is None:
            self._failure = error
        self._done.set()

    def moved(self, count: int) -> None:
        """Report ``count`` bytes read from a body, of the request or the response."""
        with self._lock:
            self._exchange.moved(count)
            self._moves += 1

    def give_up(self, failure: BaseException) -> None:
        """Fail the request because its body cannot be read any further."""
        self._failure = failure

    def wait(self, request: S3Request, timeout_s: float) -> None:
        """Return when the response is complete.

        Raises
        ------
        OperationError
            If the request fails, or no byte moved for ``timeout_s``.
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
    """The body of a request, as read by the runtime."""

    def __init__(self, crt_request: CrtRequest, source: Source) -> None:
        super().__init__(source, source.size)
        self._request = crt_request

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        """Fill ``buffer``; the runtime does not send a body that is too short."""
        try:
            count = super().readinto(buffer)
            self._request.moved(count)
        except BaseException as exc:  # noqa: BLE001 - the runtime would print it
            self._request.give_up(exc)
            return 0
        return count
