"""Access control for servers on this machine: only processes of the same user, and no web page.

Any user of this machine can connect to a port on loopback, and a browser does so on behalf of the
page it shows. All servers of sbench listen with an ``OwnListener``, which checks the owner when it
accepts: a connection of another user costs 50 us and no descriptor, even if nothing is sent.

This module imports only the standard library and ``base.callers``, because LocalStack runs it
where sbench is not installed.
"""

import errno
import re
import socket
import sys
from contextlib import suppress
from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final, Self

from serverless_bench.base.callers import Address, diagnosis, same_user

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

_HOST: Final = re.compile(r"\[?(.*?)\]?(:\d+)?")
_AT_ONCE: Final = 100
"""Most connections of other users to reject in one call: about 5 ms."""


class Shortage(OSError):
    """No descriptor or memory is left for a connection, so accepting pauses."""


class OwnListener(socket.socket):
    """A listening socket that accepts only connections from this user's processes.

    It does not block: ``accept`` raises ``BlockingIOError`` if there is currently no connection
    from this user. ``socketserver`` and asyncio can use it like any other socket.
    """

    _network = False
    _kernel: socket.socket | None = None
    _pauses = False

    @classmethod
    def from_socket(cls, bound: socket.socket, *, network: bool = False) -> Self:
        """Take over a bound socket, which is then closed.

        Parameters
        ----------
        bound
            The socket.
        network
            Whether it is bound for use by other machines: then connections to non-loopback
            addresses are accepted from any user.
        """
        listener = cls(fileno=bound.detach())
        listener.settimeout(0)
        listener._network = network
        if sys.platform == "linux":
            # If this fails, the kernel's table of connections is used instead.
            with suppress(OSError):
                listener._kernel = diagnosis()
        return listener

    def accept(self) -> tuple[socket.socket, Any]:
        """Return the next connection from this user, and the address.

        Raises
        ------
        BlockingIOError
            If there is none, or after too many connections of other users.
        Shortage
            If there is no descriptor for it.
        """
        if self._pauses:
            # Some versions of asyncio keep calling after the error that should make them pause.
            self._pauses = False
            raise BlockingIOError
        for _ in range(_AT_ONCE):
            try:
                connection, peer = super().accept()
            except OSError as exc:
                if exc.errno not in {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}:
                    raise
                self._pauses = True
                raise Shortage(exc.errno, exc.strerror) from exc
            own = connection.getsockname()
            is_of_network = self._network and not is_loopback(own)
            if is_of_network or same_user(peer, own, self._kernel):
                connection.settimeout(None)
                return connection, peer
            connection.close()
        raise BlockingIOError

    def close(self) -> None:
        """Close the socket, and the one for queries to the kernel."""
        super().close()
        if self._kernel is not None:
            self._kernel.close()


def report_unless_shortage(loop: "AbstractEventLoop", context: dict[str, Any]) -> None:
    """Handle errors like asyncio itself, but without a message when accepting pauses."""
    if not isinstance(context.get("exception"), Shortage):
        loop.default_exception_handler(context)


def is_loopback(own: Address) -> bool:
    """Return whether a connection came to an address that only this machine can reach."""
    return ip_address(own[0]).is_loopback


def from_a_page(host: str, origin: str | None) -> bool:
    """Return whether a request comes from a web page, according to its browser's headers.

    Pages of another origin send that origin. A page whose host name was redirected to this machine
    (DNS rebinding) sends that name, whereas sbench uses numbers or ``localhost``.

    Parameters
    ----------
    host, origin
        Headers of the request; an empty host is local, and None means no origin.
    """
    return origin is not None or not _is_local(host)


# A store receives thousands of requests per second with the same host.
@lru_cache(maxsize=64)
def _is_local(host: str) -> bool:
    match = _HOST.fullmatch(host)
    name = match[1].lower() if match else host
    try:
        ip_address(name)
    except ValueError:
        # Redirected clients sign for AWS' names, which no browser resolves to this machine.
        return name in {"", "localhost"} or name.endswith((".localhost", ".amazonaws.com"))
    return True
