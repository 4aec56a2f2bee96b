"""A hedged read: two requests for the same bytes, and the first successful response.

There are no threads: the sockets are polled. Nothing here waits for one connection while the other
may have a response, not even for the handshakes of the second.
"""

import errno
import os
import select
import socket
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from serverless_bench.base.errors import Hedged, OperationError, TimedOut
from serverless_bench.clients.base import HedgedExchange
from serverless_bench.clients.wire.connect import TICK_S, set_options, ticks
from serverless_bench.clients.wire.connection import WireConnection
from serverless_bench.clients.wire.response import Response

Answer = tuple[WireConnection, HedgedExchange, Response]
"""The head of a response, and the request that it answers."""


class _OvertakenError(Exception):
    """The first request was answered while the second connection opened."""


class Race:
    """The requests of a hedged read.

    While the second connection opens, it stands in for the exchange of the second request.

    Parameters
    ----------
    connection, exchange
        Those of the first request, which is not sent yet.
    timeout_s
        Time limit for a wait without a response, from the first request on.
    refusal
        Returns the error of a response that is not a success.
    """

    def __init__(
        self,
        connection: WireConnection,
        exchange: HedgedExchange,
        timeout_s: float,
        refusal: Callable[[WireConnection, HedgedExchange, Response], OperationError],
    ) -> None:
        self._first = self._second = exchange
        self._connection = connection
        self._timeout_s = timeout_s
        self._refusal = refusal
        self._running: dict[WireConnection, HedgedExchange] = {}
        self._answer: Answer | None = None
        self._failure: OperationError | None = None
        self._line: socket.socket | None = None

    def run(self, head: bytes, open_second: Callable[["Race"], WireConnection]) -> Answer:
        """Send a request with this head, and another when it is due, and return the answer.

        ``open_second`` returns the second connection.

        Raises
        ------
        OperationError
            The error of the request that failed first, if all failed.
        """
        exchange = self._first
        try:
            self._ask(self._connection, exchange, head)
            # The time limit of the rest: a wait begins when the request was sent.
            self._timeout_s -= exchange.wait_s()
            while self._answer is None and (wait_s := exchange.wait_s()) > 0:
                self._look(wait_s)
            if self._answer is None:
                self._hedge(head, open_second)
            while self._answer is None:
                self._look(TICK_S)
        except BaseException:
            for connection in self._running:
                connection.close()
            raise
        for connection, exchange in self._running.items():
            if connection is not self._answer[0]:
                connection.give_up(exchange)
                exchange.lost(Hedged("the other request was answered first"))
        return self._answer

    def connect(self, timeout_s: float) -> socket.socket:
        """Return a socket for the second connection, to the address of the first."""
        self._line = connect_beside(self._connection.socket, timeout_s, partial(self._look, TICK_S))
        return self._line

    def connected(self, remote: str, *, reused: bool) -> None:
        """Start the exchange of the second request."""
        self._second = self._first.second()
        self._second.connected(remote, reused=reused)

    def moved(self, count: int) -> None:  # noqa: ARG002
        """Wait a tick for the second connection, or for the response to the first request."""
        self._look(TICK_S, self._line, select.POLLIN)

    def _hedge(self, head: bytes, open_second: Callable[["Race"], WireConnection]) -> None:
        try:
            connection = open_second(self)
        except _OvertakenError:
            return
        except OperationError as exc:
            if not self._running:
                raise
            self._first.second().lost(exc)
        else:
            self._ask(connection, self._second, head)

    def _ask(self, connection: WireConnection, exchange: HedgedExchange, head: bytes) -> None:
        self._running[connection] = exchange
        try:
            connection.ask(head, exchange)
        except OperationError as exc:
            self._drop(connection, exc)

    def _look(self, wait_s: float, line: socket.socket | None = None, event: int = 0) -> bool:
        """Wait up to a tick for responses, or an event of another socket; return whether it came.

        Raises
        ------
        _OvertakenError
            If there is another socket, and the first request was answered.
        """
        poll = select.poll()
        for connection in self._running:
            poll.register(connection.socket, select.POLLIN)
        if line is not None:
            poll.register(line, event)
        ready = dict(poll.poll(min(wait_s, TICK_S) * 1e3))
        for connection, exchange in tuple(self._running.items()):
            # If both have a response, take that to the first request.
            if self._answer is None:
                self._take(connection, exchange, arrived=connection.socket.fileno() in ready)
        if self._answer is None and -self._first.wait_s() > self._timeout_s:
            raise TimedOut("no response within the timeout")
        if line is not None and self._answer is not None:
            raise _OvertakenError
        return line is not None and line.fileno() in ready

    def _take(self, connection: WireConnection, exchange: HedgedExchange, *, arrived: bool) -> None:
        """Take a response, of which something has ``arrived``, if it is complete."""
        try:
            exchange.moved(0)
            if arrived and (response := connection.take_response(exchange)) is not None:
                exchange.answered(response.status, response.headers)
                if response.status >= 300:
                    raise self._refusal(connection, exchange, response)
                self._answer = connection, exchange, response
        except OperationError as exc:
            self._drop(connection, exc)

    def _drop(self, connection: WireConnection, error: OperationError) -> None:
        """Go on without a request that failed, if another remains."""
        connection.close()
        self._running.pop(connection).lost(error)
        self._failure = self._failure or error
        if not self._running:
            raise self._failure


def connect_beside(
    other: socket.socket, timeout_s: float, wait: Callable[[socket.socket, int], bool]
) -> socket.socket:
    """Return a socket that never blocks, connected to the peer of another.

    ``wait`` waits up to a tick for an event of the socket, and returns whether it came.

    Raises
    ------
    OSError
        If the connection fails.
    """
    with ExitStack() as opened:
        line = opened.enter_context(socket.socket(other.family, socket.SOCK_STREAM))
        set_options(line)
        line.settimeout(0)
        code = line.connect_ex(other.getpeername())
        for _ in ticks(timeout_s):
            if code == errno.EINPROGRESS and wait(line, select.POLLOUT):
                code = line.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            code = errno.ETIMEDOUT if code == errno.EINPROGRESS else code
            raise OSError(code, os.strerror(code))
        opened.pop_all()
    return line
