"""The listening server, which passes each request to the handler of its operation."""

import json
import resource
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from serverless_bench.base.clock import wall_ns
from serverless_bench.base.errors import UsageError
from serverless_bench.features.loopback.connection import S3Connection
from serverless_bench.features.loopback.operations import OPERATIONS
from serverless_bench.features.loopback.s3 import STATISTICS, S3Error
from serverless_bench.features.loopback.state import SHAPED_BLOCK, LoopbackSettings, StoreState
from serverless_bench.features.loopback.threaded_server import ThreadedServer

_SPARE_FILES: Final = 32
"""Open files other than connections: the log, the witness, the standard streams."""


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
        self.state.witness.start(self.witnessed)
        try:
            name = request.operation()
            self.witnessed.operation = name
            self.state.counters.count("requests", name)
            self.state.sessions.check(request, name, wall_ns())
            self.check_limits(name)
            self.plan_fault(name)
            OPERATIONS[name](self)
        except S3Error as exc:
            self.reply_error(exc)
        finally:
            self.state.witness.finish(self.witnessed)

    do_DELETE = do_GET = do_HEAD = do_POST = do_PUT = serve  # noqa: N815 - stdlib's names


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
        if files == resource.RLIM_INFINITY:
            files = sys.maxsize
        try:
            super().__init__(
                (settings.host, settings.port),
                lambda connection, address, server: LoopbackConnection(
                    connection, address, server, self.state
                ),
                connections=max(files - _SPARE_FILES, 1),
            )
        except OSError as exc:
            host_and_port = f"{settings.host}:{settings.port}"
            raise UsageError(f"cannot listen on {host_and_port}: {exc.strerror or exc}") from exc

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
        """Bring the witness up to date, every half second."""
        self.state.witness.flush()

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
