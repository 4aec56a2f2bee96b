"""How much of an upload the peer's kernel does not have yet.

A socket's ``send`` returns once the kernel on this side has the bytes, which may be megabytes
before they are on their way. The kernel tells which of them were acknowledged.
"""

import socket
import struct
import sys
from contextlib import suppress
from typing import Final

from serverless_bench.units import KIB, MIB, NS_PER_S

AT_ONCE: Final = 12 * KIB
"""A body up to this size is sent at once: with its head it fits into the ten segments that may go
out unasked (RFC 6928). Nobody looks at the queue for it."""
_TCP_INFO: Final = struct.Struct("=16xI8xI88xQ16xI52xQQ")
"""Fields of Linux's ``struct tcp_info`` (linux/tcp.h): tcpi_snd_mss, tcpi_sacked, tcpi_bytes_acked,
tcpi_notsent_bytes, and since Linux 4.19 tcpi_bytes_sent and tcpi_bytes_retrans."""
STAMPED_FROM: Final = 4 * MIB
"""From this size on the acknowledgement of a body is stamped, which takes several system calls."""
_SO_TIMESTAMPING: Final = 37
"""Also the kind of the control messages (asm-generic/socket.h)."""
_REPORTED: Final = 1 << 4 | 1 << 11
"""SOF_TIMESTAMPING_SOFTWARE and _OPT_TSONLY: stamps are handed out, without the packet."""
_STAMPED: Final = _REPORTED | 1 << 9
"""With SOF_TIMESTAMPING_TX_ACK: the last byte of each send is stamped when it is acknowledged."""
_TIMESPEC: Final = struct.Struct("=qq")
_SO_NWRITE: Final = 0x1024
"""On macOS: bytes in the send buffer (sys/socket.h)."""


class SendQueue:
    """The bytes of one connection that wait to be acknowledged.

    Parameters
    ----------
    line
        The connected socket. Once it is closed the last answer stands.
    """

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        # More than any upload: nothing of it is known to have arrived.
        self._waiting = 1 << 62
        self.is_stamped = False
        """Whether an acknowledgement was asked for that nobody has taken."""

    def look(self) -> int:
        """Return how many bytes wait; more than any upload has if the kernel does not say."""
        with suppress(OSError, struct.error):
            self._waiting = _unacknowledged(self._line)
        return self._waiting

    def stamp(self, *, on: bool) -> None:
        """Have what is sent from now on stamped when it is acknowledged, where Linux does that."""
        if sys.platform == "linux":
            with suppress(OSError):
                flags = _STAMPED if on else _REPORTED
                self._line.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING, flags)
                self.is_stamped = True

    def take_stamp(self) -> int | None:
        """Return when the last stamped byte was acknowledged, by the wall clock; None if unknown.

        The queue of stamps is empty then: a poll would take one for an error.
        """
        self.is_stamped, instant_ns = False, None
        with suppress(OSError):
            while True:
                flags = socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT
                for _, kind, data in self._line.recvmsg(0, 256, flags)[1]:
                    if kind == _SO_TIMESTAMPING:
                        seconds, ns = _TIMESPEC.unpack_from(data)
                        instant_ns = seconds * NS_PER_S + ns
        return instant_ns


def _unacknowledged(line: socket.socket) -> int:
    if sys.platform == "darwin":
        # Never run: nobody has tried this on a Mac yet.
        return line.getsockopt(socket.SOL_SOCKET, _SO_NWRITE)
    segment_bytes, sacked, acked, unsent, sent, again = _TCP_INFO.unpack(
        line.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
    )
    # The peer has what it acknowledged selectively, behind a hole. Not below 0: a SYN is
    # acknowledged, too, and the last segment may be shorter.
    return int(max(0, unsent + sent - again - acked - sacked * segment_bytes))
