"""A server with a thread per connection that other users of this machine cannot exhaust."""

import socket
import socketserver
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from serverless_bench.base.clock import sleep
from serverless_bench.features.loopback.listener import OwnListener, is_loopback

FIRST_REQUEST_S: Final = 30.0
"""Time after which a connection is closed if it has sent no request."""
_SHORTAGE_S: Final = 0.1


class ThreadedServer(socketserver.ThreadingTCPServer):
    """A server for processes of this user; if it listens on the network, for others as well.

    Parameters
    ----------
    address
        Host and port.
    handler
        Handler class for connections, as in ``socketserver``.
    connections
        Most concurrent connections; further ones wait until a connection closes.

    Raises
    ------
    OSError
        If it cannot listen.
    """

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    # A thousand workers may connect at the same time.
    request_queue_size = 4096

    def __init__(
        self,
        address: tuple[str, int],
        handler: Callable[..., socketserver.BaseRequestHandler],
        *,
        connections: int,
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._places = threading.Semaphore(connections)
        super().__init__(address, handler)

    def server_activate(self) -> None:
        """Listen, for processes of this user."""
        self.socket = OwnListener.of(
            self.socket, network=not is_loopback(self.socket.getsockname())
        )
        super().server_activate()

    def get_request(self) -> tuple[socket.socket, Any]:
        """Return a connection; raise OSError if there is none at the moment."""
        if not self._places.acquire(timeout=_SHORTAGE_S):
            raise BlockingIOError
        try:
            return super().get_request()
        except OSError as exc:
            self._places.release()
            if not isinstance(exc, BlockingIOError):
                sleep(_SHORTAGE_S)
            raise

    def close_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        """Close a connection, and free its place for the next."""
        super().close_request(request)
        self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Show errors that are bugs; disconnected clients are not."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Serve in a thread for the duration of a block, then close."""
        with self:
            thread = threading.Thread(
                target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
            )
            thread.start()
            try:
                yield
            finally:
                self.shutdown()
                thread.join()
