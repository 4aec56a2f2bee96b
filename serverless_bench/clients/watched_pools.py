"""Connections of urllib3 with a socket that reports how much of an upload has arrived."""

import threading
from collections.abc import Callable
from functools import cache, partial
from typing import Any, Final

from urllib3 import HTTPConnectionPool
from urllib3.util import wait_for_read

from serverless_bench.clients.base import Exchange
from serverless_bench.clients.send_queue import SendQueue

_TICK_S: Final = 0.05


class _Here(threading.local):
    """The current request of this thread, for the connections and bodies below a library.

    Threads started by a library see the defaults below.
    """

    connection: "Watched | None" = None
    """Connection over which a body is sent; None before the upload starts."""
    exchange: Exchange | None = None
    whole = True
    """Whether the body of a request is complete: its last byte then is the last of all."""
    response: Any = None
    """Last ``BaseHTTPResponse`` of this thread, if the pool keeps it."""


HERE: Final = _Here()


class Watched:
    """Mixin for connection classes: a connection that sends a body registers with its thread."""

    sock: Any
    queue: SendQueue | None = None
    """Send queue of the body that is being sent."""

    def request(self, method: str, *args: Any, **settings: Any) -> None:
        HERE.connection = self if method == "PUT" else None
        super().request(method, *args, **settings)  # type: ignore[misc]

    def watch(self, exchange: Exchange, counted: Callable[[], int]) -> None:
        """Let ``exchange`` query the unacknowledged bytes of a body that starts now.

        ``counted`` returns how many bytes were reported to ``exchange``, which may be ahead.
        """
        queue = SendQueue(self.sock)
        self.exchange, self.queue, self.handed = exchange, queue, 0
        exchange.sending(lambda: max(0, counted() - self.handed + queue.look()))

    def send(self, data: Any) -> None:
        super().send(data)  # type: ignore[misc]
        if self.queue is not None:
            self.handed += len(data)
            self.exchange.moved(0)

    def getresponse(self) -> Any:
        if self.queue is not None:
            self.queue.wait_early(partial(wait_for_read, self.sock), self.exchange)
            # The kernel may need as long again to send; leftovers of the TLS handshake end this
            # sooner.
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
            # The last chance to query the queue.
            self.queue.look()
        super().close()  # type: ignore[misc]


@cache
def watched(pool: type[HTTPConnectionPool]) -> type[HTTPConnectionPool]:
    """Return a variant of a pool class with connections that can be queried."""
    connection = type("WatchedConnection", (Watched, pool.ConnectionCls), {})
    return type(pool.__name__, (pool,), {"ConnectionCls": connection})


def sending_here() -> Watched | None:
    """Return the connection that sends the body that this thread is reading; None if none does."""
    # If the store answers before it has the body, botocore reads on but sends nothing.
    connection = HERE.connection
    return None if getattr(connection, "_response_received", False) else connection
