"""Access control for servers on this machine: only processes of the same user, and no web page.

Any user of this machine can connect to a port on loopback, and a browser does so on behalf of the
page it shows. A Unix socket knows its peer; a TCP connection does not, but the kernel knows the
owner of the socket at the other end while that is open (sock_diag(7), which needs no privileges).
All servers of sbench listen with an ``OwnListener``, which checks the owner when it accepts: a
connection of another user costs 50 us and no descriptor, even if nothing is sent.

This module imports only the standard library, because LocalStack runs it where sbench is not
installed.
"""

import errno
import os
import re
import socket
import struct
import sys
from contextlib import nullcontext, suppress
from functools import lru_cache
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

Address = tuple[str, int] | tuple[str, int, int, int]
"""A numeric host, and a port; IPv6 has two more fields, which are ignored here."""

_SOCK_DIAG: Final = 4
_BY_FAMILY: Final = 20
_REQUEST: Final = 1
_ERROR: Final = 2
_HEADER: Final = struct.Struct("=IHHII")
_ASKED: Final = struct.Struct("=BBBBI")
_NO_INTERFACE_NO_COOKIE: Final = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
_ANY_STATE: Final = 0xFFFFFFFF
_LISTENS: Final = 10
_OWNER_AT: Final = _HEADER.size + 4 + 48 + 12
"""Offset after the state and the identity of the socket, its expiry and its two queues."""
_HOST: Final = re.compile(r"\[?(.*?)\]?(:\d+)?")
_SHORTAGES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
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
    def of(cls, bound: socket.socket, *, network: bool = False) -> Self:
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
                listener._kernel = _diagnosis()
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
                if exc.errno not in _SHORTAGES:
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


def same_user(peer: Address, own: Address, kernel: socket.socket | None = None) -> bool:
    """Return whether the other end of a local connection belongs to this user.

    A closed end belongs to no user. Where the kernel cannot be queried, on systems other than
    Linux, all connections are accepted.

    Parameters
    ----------
    peer, own
        Addresses of the connection, as this end sees them.
    kernel
        Socket for queries, for servers that query often; None to open a temporary socket.
    """
    if sys.platform != "linux":
        return True
    try:
        with nullcontext(kernel) if kernel is not None else _diagnosis() as query_socket:
            owner = _owner(peer, own, query_socket)
    except OSError:
        owner = _listed_owner(peer, own)
    return owner == os.getuid()


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


def _diagnosis() -> socket.socket:
    """Return a socket for queries to the kernel."""
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG)


def _owner(peer: Address, own: Address, kernel: socket.socket) -> int | None:
    """Return the owner of the socket at the other end; None if it no longer has any."""
    family = socket.AF_INET6 if ":" in peer[0] else socket.AF_INET
    ends = [socket.inet_pton(family, end[0]).ljust(16, b"\0") for end in (peer, own)]
    ports = struct.pack("!HH", peer[1], own[1])
    query = _ASKED.pack(family, socket.IPPROTO_TCP, 0, 0, _ANY_STATE)
    query += ports + b"".join(ends) + _NO_INTERFACE_NO_COOKIE
    kernel.send(_HEADER.pack(_HEADER.size + len(query), _BY_FAMILY, _REQUEST, 0, 0) + query)
    answer = kernel.recv(1 << 12)
    if _HEADER.unpack_from(answer)[1] == _ERROR:
        (number,) = struct.unpack_from("=i", answer, _HEADER.size)
        if -number == 2:  # ENOENT: closed
            return None
        raise OSError(-number, os.strerror(-number))
    state = answer[_HEADER.size + 1]
    # A closed connection is not found, but a listener on the same port may be.
    if state == _LISTENS or answer[_HEADER.size + 4 : _HEADER.size + 8] != ports:
        return None
    owner, inode = struct.unpack_from("=II", answer, _OWNER_AT)
    # For a socket without a process, the kernel reports root as the owner.
    return int(owner) if inode else None


def _listed_owner(peer: Address, own: Address) -> int | None:
    """Return the same from the kernel's table, which takes a hundred times as long to read."""
    table = "tcp6" if ":" in peer[0] else "tcp"
    wanted = [_spelled(peer), _spelled(own)]
    try:
        lines = Path("/proc/net", table).read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        return None
    for words in map(str.split, lines):
        if words[1:3] == wanted:
            return int(words[7]) if int(words[9]) else None
    return None


def _spelled(end: Address) -> str:
    packed = socket.inet_pton(socket.AF_INET6 if ":" in end[0] else socket.AF_INET, end[0])
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return f"{''.join(f'{word:08X}' for word in words)}:{end[1]:04X}"
