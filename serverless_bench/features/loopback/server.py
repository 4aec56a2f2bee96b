"""The listening server, which passes each request to the handler of its operation.

It has a thread per connection, and other users of this machine cannot exhaust it.
"""

import json
import resource
import socket
import socketserver
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from serverless_bench.base.clock import sleep, wall_ns
from serverless_bench.base.errors import UsageError
from serverless_bench.features.loopback.connection import S3Connection
from serverless_bench.features.loopback.listener import OwnListener, is_loopback
from serverless_bench.features.loopback.operations import OPERATIONS
from serverless_bench.features.loopback.s3 import STATISTICS, S3Error
from serverless_bench.features.loopback.state import SHAPED_BLOCK, LoopbackSettings, StoreState

_SPARE_FILES: Final = 32
"""Open files other than connections: the log, the request log, the standard streams."""
_SHORTAGE_S: Final = 0.1


class LoopbackConnection(S3Connection):
    """Handler of the requests on a connection."""

    def serve(self) -> None:
        """Handle a request."""
        if self.refused():
            return
        request = self.start_request()
        if request.path == STATISTICS:
            self.reply(200, json.dumps(self.state.statistics()).encode())
            return
        self.state.request_log.start(self.logged)
        try:
            name = request.operation()
            self.logged.operation = name
            self.state.counters.count("requests", name)
            self.state.sessions.check(request, name, wall_ns())
            self.check_limits(name)
            self.plan_fault(name)
            OPERATIONS[name](self)
        except S3Error as exc:
            self.reply_error(exc)
        finally:
            self.state.request_log.finish(self.logged)

    do_DELETE = do_GET = do_HEAD = do_POST = do_PUT = serve  # noqa: N815 - stdlib's names


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
        self.socket = OwnListener.from_socket(
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


class LoopbackServer(ThreadedServer):
    """Loopback store; ``serve_forever`` runs it, with one thread per connection.

    Parameters
    ----------
    settings
        Behaviour of the store.

    Raises
    ------
    UsageError
        If it cannot listen, or cannot use a file named in the settings.
    """

    def __init__(self, settings: LoopbackSettings) -> None:
        self.state = StoreState(settings)
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = sys.maxsize if files == resource.RLIM_INFINITY else files - _SPARE_FILES
        try:
            super().__init__(
                (settings.host, settings.port),
                lambda connection, address, server: LoopbackConnection(
                    connection, address, server, self.state
                ),
                connections=max(most, 1),
            )
        except OSError as exc:
            raise UsageError(
                f"cannot listen on {settings.host}:{settings.port}: {exc.strerror or exc}"
            ) from exc

    @property
    def endpoint_url(self) -> str:
        """URL that clients connect to."""
        host, port = self.server_address[:2]
        name = f"[{host!s}]" if ":" in str(host) else str(host)
        return f"{'https' if self.state.tls else 'http'}://{name}:{port}"

    def server_bind(self) -> None:
        """Bind, with small socket buffers if transfers are to be slow."""
        # A client counts bytes once this kernel has acknowledged them. If the kernel buffers
        # megabytes that the server has not read, the client measures the kernel's rate and not the
        # configured one.
        if self.state.settings.shape.slows_bytes:
            for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
                self.socket.setsockopt(socket.SOL_SOCKET, option, SHAPED_BLOCK)
        super().server_bind()

    def shutdown_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        """Close without another FIN: the handler has already closed the connection properly."""
        self.close_request(request)

    def service_actions(self) -> None:
        """Bring the request log up to date, every half second."""
        self.state.request_log.flush()

    def server_close(self) -> None:
        """Stop listening and close the files."""
        super().server_close()
        self.state.close()


@contextmanager
def serving(settings: LoopbackSettings | None = None) -> Iterator[LoopbackServer]:
    """Run a server in a thread for the length of a block."""
    server = LoopbackServer(settings or LoopbackSettings())
    with server.running():
        yield server
