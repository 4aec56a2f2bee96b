"""Find out whether the other end of a connection belongs to a process of this user.

A Unix socket knows its peer; a TCP connection does not, but the kernel knows the owner of the
socket at the other end while that is open (sock_diag(7), which needs no privileges).

This module imports only the standard library, because LocalStack runs it where sbench is not
installed.
"""

import os
import socket
import struct
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Final

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
        with nullcontext(kernel) if kernel is not None else diagnosis() as query_socket:
            owner = _owner(peer, own, query_socket)
    except OSError:
        owner = _listed_owner(peer, own)
    return owner == os.getuid()


def diagnosis() -> socket.socket:
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
