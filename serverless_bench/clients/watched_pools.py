"""Connections of urllib3 whose socket can be asked what of an upload has arrived."""

import threading
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from serverless_bench.clients.send_queue import SendQueue

if TYPE_CHECKING:
    from urllib3 import HTTPConnectionPool


class _Here(threading.local):
    connection: "Watched | None" = None
    """Over which this thread sends the body of its request; None until it does."""


_HERE = _Here()


class Watched:
    """Mixin for classes of connections: one that sends a body is known to the thread."""

    sock: Any
    queue: SendQueue | None = None

    def request(self, method: str, *args: Any, **settings: Any) -> None:  # noqa: ANN401 - urllib3's
        _HERE.connection = self if method == "PUT" else None
        super().request(method, *args, **settings)  # type: ignore[misc]

    def waiting(self) -> Callable[[], int]:
        """Return what says how much of a body that begins now is not acknowledged."""
        self.queue = SendQueue(self.sock)
        return self.queue.look

    def close(self) -> None:
        if self.queue is not None:
            # The last chance to ask.
            self.queue.look()
        super().close()  # type: ignore[misc]


@cache
def watched(pool: "type[HTTPConnectionPool]") -> "type[HTTPConnectionPool]":
    """Return a class of pools, as another one, whose connections can be asked."""
    connection = type("WatchedConnection", (Watched, pool.ConnectionCls), {})
    return type(pool.__name__, (pool,), {"ConnectionCls": connection})


def prepare_here() -> None:
    """Note that this thread's next body is not sent yet, though it may be read."""
    _HERE.connection = None


def sending_here() -> Watched | None:
    """Return the connection over which what is read of this thread's body now is sent, if it is."""
    # botocore reads on, and sends nothing, if the store has answered before it had the body.
    connection = _HERE.connection
    return None if getattr(connection, "_response_received", False) else connection
