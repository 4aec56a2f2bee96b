"""Which callers a server on this machine answers: processes of its own user, and no web page.

Whoever can log in here can connect to a port on loopback, and a browser does so for the page
that it shows. A Unix socket knows its peer; a TCP connection does not, but the kernel knows
whose socket the other end is (sock_diag(7), which has no privileges in it), as long as that end
is open. Every server of ours listens with an ``OwnListener``, which asks when it accepts: a
connection of another user costs 50 us and no descriptor, whether anything comes over it or not.

Nothing is imported here but the standard library: LocalStack runs this where sbench is not
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
"""A host in digits, and a port; of IPv6 two more, which are no matter here."""

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
"""After the state and the identity of the socket, its expiry and its two queues."""
_HOST: Final = re.compile(r"\[?(.*?)\]?(:\d+)?")
_SHORTAGES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_AT_ONCE: Final = 100
"""Strangers that are turned away before the server looks at anything else: some 5 ms."""


class Shortage(OSError):
    """No descriptor or memory is left for a connection: it waits, and accepting pauses."""


class OwnListener(socket.socket):
    """A listening socket that accepts connections of this user's processes only.

    It does not block: ``accept`` raises ``BlockingIOError`` where there is no connection of this
    user's at the moment. ``socketserver`` and asyncio take it for any other socket.
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
            Whether it was bound to let other machines in: connections to other addresses than
            loopback are accepted then, whoever makes them.
        """
        listener = cls(fileno=bound.detach())
        listener.settimeout(0)
        listener._network = network
        if sys.platform == "linux":
            # Without it, the table of connections has to do.
            with suppress(OSError):
                listener._kernel = _diagnosis()
        return listener

    def accept(self) -> tuple[socket.socket, Any]:
        """Return the next connection of this user's, and its address.

        Raises
        ------
        BlockingIOError
            If there is none, or so many of other users that something else comes first.
        Shortage
            If there is no descriptor for it.
        """
        if self._pauses:
            # Some versions of asyncio go on asking when they have been told to pause.
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
        """Close it, and what it asks the kernel with."""
        super().close()
        if self._kernel is not None:
            self._kernel.close()


def report_unless_shortage(loop: "AbstractEventLoop", context: dict[str, Any]) -> None:
    """Handle asyncio's errors as it does itself, but say nothing of a pause in accepting."""
    if not isinstance(context.get("exception"), Shortage):
        loop.default_exception_handler(context)


def is_loopback(own: Address) -> bool:
    """Tell whether a connection came to an address that only this machine reaches."""
    return ip_address(own[0]).is_loopback


def same_user(peer: Address, own: Address, kernel: socket.socket | None = None) -> bool:
    """Tell whether the other end of a connection within this machine is this user's.

    An end that has been closed is nobody's. Where the kernel cannot be asked, which is anywhere
    but on Linux, nobody is refused.

    Parameters
    ----------
    peer, own
        Of the connection, as this end sees them.
    kernel
        What it is asked with, for a server that asks often; None opens a socket for it.
    """
    if sys.platform != "linux":
        return True
    try:
        with nullcontext(kernel) if kernel is not None else _diagnosis() as asked:
            owner = _owner(peer, own, asked)
    except OSError:
        owner = _listed_owner(peer, own)
    return owner == os.getuid()


def from_a_page(host: str, origin: str | None) -> bool:
    """Tell whether a request comes from a web page, as its browser lets everybody know.

    A page of another origin says which one. One whose own name was led to this machine (DNS
    rebinding) has that name in its requests, where ours are called by number or ``localhost``.

    Parameters
    ----------
    host, origin
        Headers of the request; no host is nobody's name, and None no origin.
    """
    return origin is not None or not _is_local(host)


# A store is asked a thousand times a second, and by the same name.
@lru_cache(maxsize=64)
def _is_local(host: str) -> bool:
    found = _HOST.fullmatch(host)
    name = found[1].lower() if found else host
    try:
        ip_address(name)
    except ValueError:
        # Clients that are led here sign for AWS' names, which lead no browser to this machine.
        return name in {"", "localhost"} or name.endswith((".localhost", ".amazonaws.com"))
    return True


def _diagnosis() -> socket.socket:
    """Return a socket to ask the kernel with."""
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG)


def _owner(peer: Address, own: Address, kernel: socket.socket) -> int | None:
    """Return whose socket the other end is; None if it is nobody's any more."""
    family = socket.AF_INET6 if ":" in peer[0] else socket.AF_INET
    ends = [socket.inet_pton(family, end[0]).ljust(16, b"\0") for end in (peer, own)]
    ports = struct.pack("!HH", peer[1], own[1])
    asked = _ASKED.pack(family, socket.IPPROTO_TCP, 0, 0, _ANY_STATE)
    asked += ports + b"".join(ends) + _NO_INTERFACE_NO_COOKIE
    kernel.send(_HEADER.pack(_HEADER.size + len(asked), _BY_FAMILY, _REQUEST, 0, 0) + asked)
    answer = kernel.recv(1 << 12)
    if _HEADER.unpack_from(answer)[1] == _ERROR:
        (number,) = struct.unpack_from("=i", answer, _HEADER.size)
        if -number == 2:  # ENOENT: it has gone
            return None
        raise OSError(-number, os.strerror(-number))
    state = answer[_HEADER.size + 1]
    # A connection that has gone is not found, but who listens on its port may be.
    if state == _LISTENS or answer[_HEADER.size + 4 : _HEADER.size + 8] != ports:
        return None
    owner, inode = struct.unpack_from("=II", answer, _OWNER_AT)
    # Of a socket without a process, the kernel says that it is the administrator's.
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
