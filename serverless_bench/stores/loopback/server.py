"""Listens, and holds what the connections share."""

import socket
import socketserver
import ssl
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from serverless_bench.clock import utc_stamp, wall_ns
from serverless_bench.errors import UsageError
from serverless_bench.stores.loopback.connection import BLOCK, SHAPED_BLOCK, http_date
from serverless_bench.stores.loopback.counts import Counts
from serverless_bench.stores.loopback.faults import FaultLog, FaultPlan
from serverless_bench.stores.loopback.handler import Handler
from serverless_bench.stores.loopback.objects import Objects
from serverless_bench.stores.loopback.settings import Check, Settings
from serverless_bench.stores.loopback.shaping import Shaper
from serverless_bench.stores.loopback.witness import Witness
from serverless_bench.units import NS_PER_S


class LoopbackServer(socketserver.ThreadingTCPServer):
    """The server; ``serve_forever`` runs it, one thread per connection.

    Parameters
    ----------
    settings
        How it behaves.

    Raises
    ------
    UsageError
        If it cannot listen, or a file that it is told of cannot be used.
    """

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    # A thousand workers may connect at once.
    request_queue_size = 4096

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.tls = _tls_context(settings)
        self.looks = settings.check is Check.FULL
        self.objects = Objects(strict=settings.strict)
        self.plan = FaultPlan(settings.seed, settings.rates)
        self.log = FaultLog(settings.log)
        self.witness = Witness(settings.witness)
        self.shaper = Shaper(settings.shape)
        self.counts = Counts()
        self.numbers = count(1)
        self.connection_numbers = count(1)
        self.block_bytes = SHAPED_BLOCK if settings.shape.slows_bytes else BLOCK
        self.start_date = http_date(wall_ns() / NS_PER_S)
        self.start_stamp = utc_stamp(separators=True)
        self.address_family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        try:
            super().__init__((settings.host, settings.port), Handler)
        except OSError as exc:
            where = f"{settings.host}:{settings.port}"
            raise UsageError(f"cannot listen on {where}: {exc.strerror or exc}") from exc

    @property
    def endpoint_url(self) -> str:
        """What clients are told."""
        host, port = self.server_address[:2]
        name = f"[{host!s}]" if ":" in str(host) else str(host)
        return f"{'https' if self.tls else 'http'}://{name}:{port}"

    def statistics(self) -> dict[str, Any]:
        """Return what happened so far."""
        return {**self.counts.to_json(), "objects": self.objects.count()}

    def server_bind(self) -> None:
        """Bind, with small buffers where bytes are to be slow.

        The kernel would take megabytes at once, and a client's progress would not show
        the rate.
        """
        if self.settings.shape.slows_bytes:
            for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
                self.socket.setsockopt(socket.SOL_SOCKET, option, SHAPED_BLOCK)
        super().server_bind()

    def shutdown_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        """Close without a FIN of its own: the handler has ended the connection as it should."""
        self.close_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Say what a bug is; clients that go away in a handshake are none."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    def service_actions(self) -> None:
        """Have the witness up to date, every half second."""
        self.witness.flush()

    def server_close(self) -> None:
        """Stop listening and close the files."""
        super().server_close()
        self.log.close()
        self.witness.close()


@contextmanager
def serving(settings: Settings | None = None) -> Iterator[LoopbackServer]:
    """Run a server in a thread for the length of a block."""
    with LoopbackServer(settings or Settings()) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def _tls_context(settings: Settings) -> ssl.SSLContext | None:
    if settings.tls is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(settings.tls)
    except OSError as exc:
        raise UsageError(
            f"cannot use --tls {settings.tls}: {exc.strerror or exc}",
            hint="one PEM file with a certificate and its key",
        ) from exc
    return context
