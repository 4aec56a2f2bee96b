"""Connections of urllib3 whose socket can be asked what of an upload has arrived."""

import threading
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from urllib3 import HTTPConnectionPool
from urllib3.util import wait_for_read

from serverless_bench.clients.base import Exchange
from serverless_bench.clients.send_queue import SendQueue

_TICK_S: Final = 0.05


class _Here(threading.local):
    """The request of this thread, as the connections and bodies below a library have to know it.

    Threads that a library starts by itself have the values that stand here.
    """

    connection: "Watched | None" = None
    """Over which a body is sent; None until it is."""
    exchange: Exchange | None = None
    whole = True
    """Whether the body of one request is all of it: its last byte is the last one then."""
    response: Any = None
    """The last one to this thread, a ``BaseHTTPResponse``, if the pool keeps it."""


HERE: Final = _Here()


class Watched:
    """Mixin for classes of connections: one that sends a body is known to the thread."""

    sock: Any
    queue: SendQueue | None = None
    """Of the body that is being sent."""

    def request(self, method: str, *args: Any, **settings: Any) -> None:  # noqa: ANN401 - urllib3's
        HERE.connection = self if method == "PUT" else None
        super().request(method, *args, **settings)  # type: ignore[misc]

    def watch(self, exchange: Exchange, counted: Callable[[], int]) -> None:
        """Have ``exchange`` ask how much of a body that begins now is not acknowledged.

        ``counted`` returns what of the body ``exchange`` has been told, which may be ahead.
        """
        queue = SendQueue(self.sock)
        self.exchange, self.queue, self.handed = exchange, queue, 0
        exchange.sending(lambda: max(0, counted() - self.handed + queue.look()))

    def send(self, data: Any) -> None:  # noqa: ANN401 - urllib3's
        super().send(data)  # type: ignore[misc]
        if self.queue is not None:
            self.handed += len(data)
            self.exchange.moved(0)

    def getresponse(self) -> Any:  # noqa: ANN401 - urllib3's
        if self.queue is not None:
            for wait_s in self.queue.early_looks():
                if wait_for_read(self.sock, wait_s):
                    break
                self.exchange.moved(0)
            # Its kernel may send for as long again; what came with TLS's handshake ends it sooner.
            for _ in range(max(round((self.sock.gettimeout() or 0) / _TICK_S), 1)):
                if not self.queue.look() or wait_for_read(self.sock, _TICK_S):
                    break
                self.exchange.moved(0)
            else:
                raise TimeoutError
        response = super().getresponse()  # type: ignore[misc]
        self.queue = None
        return response

    def close(self) -> None:
        if self.queue is not None:
            # The last chance to ask.
            self.queue.look()
        super().close()  # type: ignore[misc]


@cache
def watched(pool: type[HTTPConnectionPool]) -> type[HTTPConnectionPool]:
    """Return a class of pools, as another one, whose connections can be asked."""
    connection = type("WatchedConnection", (Watched, pool.ConnectionCls), {})
    return type(pool.__name__, (pool,), {"ConnectionCls": connection})


def sending_here() -> Watched | None:
    """Return the connection over which what is read of this thread's body now is sent, if it is."""
    # botocore reads on, and sends nothing, if the store has answered before it had the body.
    connection = HERE.connection
    return None if getattr(connection, "_response_received", False) else connection
