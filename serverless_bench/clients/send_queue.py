"""The number of bytes of an upload that the peer's kernel has not acknowledged.

A socket's ``send`` returns once the local kernel has the bytes, possibly megabytes before they are
sent. The kernel reports how many of them were acknowledged.
"""

import socket
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from serverless_bench.base.units import KIB, MIB, NS_PER_S
from serverless_bench.clients.base import Exchange

AT_ONCE: Final = 12 * KIB
"""Size up to which a body is sent in one go: with its head it fits into the initial window of ten
segments (RFC 6928). The queue is not checked for such bodies."""
_TCP_INFO: Final = struct.Struct("=16xI8xI88xQ16xI52xQQ")
"""Fields of Linux's ``struct tcp_info`` (linux/tcp.h): tcpi_snd_mss, tcpi_sacked, tcpi_bytes_acked,
tcpi_notsent_bytes, and since Linux 4.19 tcpi_bytes_sent and tcpi_bytes_retrans."""
EARLY_LOOKS_S: Final = (0.002, 0.004, 0.008, 0.016, 0.032)
"""Intervals between checks of the queue of an upload that was sent completely and is not answered:
they determine within a factor of two how long its bytes took."""
STAMPED_FROM: Final = 4 * MIB
"""Size from which the acknowledgement of a body is timestamped, at the cost of several system
calls."""
_SO_TIMESTAMPING: Final = 37
"""Also the type of the control messages (asm-generic/socket.h)."""
_REPORTED: Final = 1 << 4 | 1 << 11
"""SOF_TIMESTAMPING_SOFTWARE and _OPT_TSONLY: timestamps are delivered without the packet."""
_STAMPED: Final = _REPORTED | 1 << 9
"""With SOF_TIMESTAMPING_TX_ACK: the last byte of each send is timestamped at its
acknowledgement."""
_TIMESPEC: Final = struct.Struct("=qq")
_SO_NWRITE: Final = 0x1024
"""Bytes in the send buffer on macOS (sys/socket.h)."""


class SendQueue:
    """The bytes of a connection that wait to be acknowledged.

    Parameters
    ----------
    line
        The connected socket. After it is closed, the last result remains valid.
    """

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        # Larger than any upload: no byte is known to have arrived.
        self._waiting = 1 << 62
        self.is_stamped = False
        """Whether a requested timestamp has not been read yet."""

    def look(self) -> int:
        """Return the number of waiting bytes; larger than any upload if the kernel reports none."""
        with suppress(OSError, struct.error):
            self._waiting = _unacknowledged(self._line)
        return self._waiting

    def wait_early(self, wait: Callable[[float], object], exchange: Exchange) -> None:
        """Let ``exchange`` look at the queue while bytes wait, until the response comes.

        ``wait`` takes a number of seconds, and returns whether the response has come by then.
        """
        for wait_s in EARLY_LOOKS_S:
            if not self._waiting or wait(wait_s):
                return
            exchange.moved(0)

    def stamp(self, *, on: bool) -> None:
        """Switch timestamps of the acknowledgements of later sends on or off (Linux only)."""
        if sys.platform == "linux":
            with suppress(OSError):
                flags = _STAMPED if on else _REPORTED
                self._line.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING, flags)
                self.is_stamped = True

    def take_stamp(self) -> int | None:
        """Return the wall-clock time at which the last timestamped byte was acknowledged, or None.

        This empties the queue of timestamps: a poll would report it as an error.
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
        # Untested: this has never run on a Mac.
        return line.getsockopt(socket.SOL_SOCKET, _SO_NWRITE)
    segment_bytes, sacked, acked, unsent, sent, again = _TCP_INFO.unpack(
        line.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
    )
    # The peer also has the bytes that it acknowledged selectively, after a gap. The result is not
    # below 0: a SYN is acknowledged, too, and the last segment may be shorter.
    return int(max(0, unsent + sent - again - acked - sacked * segment_bytes))
