"""TLS for the wire client, a megabyte at a time.

``ssl.SSLSocket`` hands the kernel one record of 16 KiB per call, and reads two calls per
record: 65,000 to 130,000 system calls per GiB, each of which gives the interpreter lock
away. Here OpenSSL works on memory, and the socket moves whole blocks. On one connection
that cost 0.67 instead of 0.85 core-s/GiB to send, on four 0.93 instead of 1.10 to receive
and compare (docs/decisions/0004-tls-in-memory.md).
"""

import socket
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, Final, cast

from serverless_bench.units import KIB

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_SEALED_AT_ONCE: Final = 7 * 16 * KIB
"""Bytes of plaintext encrypted at a time: seven records. Of all sizes that were tried it costs the
least; why is not known for certain (docs/decisions/0004)."""

_FRUITLESS: Final = 64
"""Receives that may end without a byte of plaintext; a record comes in twelve packets."""


class TlsStream:
    """A TLS connection over a socket, with the two methods of it that a connection calls.

    It is ready once ``shake_hands`` has returned True.

    Parameters
    ----------
    raw
        A connected socket; the caller closes it.
    context, host
        What the certificate is checked with and against.
    block_bytes
        Ciphertext received at a time.
    """

    def __init__(
        self, raw: socket.socket, context: ssl.SSLContext, host: str, *, block_bytes: int
    ) -> None:
        self._raw = raw
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._room = memoryview(bytearray(block_bytes))
        self._sealed = memoryview(b"")
        """Ciphertext that the socket has not taken yet."""
        self._plain = 0
        """Bytes of plaintext in there that ``send`` has not reported yet."""

    def shake_hands(self) -> bool:
        """Go on with the handshake as far as one receive leads; return whether it is done.

        Raises
        ------
        OSError
            If the certificate is not trusted, or the other end does not speak TLS
            (``ssl.SSLError``).
        """
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            with suppress(BlockingIOError):
                self._receive()
            return False
        self._flush()
        return True

    def send(self, data: bytes | memoryview) -> int:
        """Encrypt ``data`` and send some of it; call again with the rest.

        As ``socket.send``, and as ``SSLSocket.send`` after ``SSLWantWriteError``: what was
        taken once must come again at the front until it is reported.

        Returns
        -------
        int
            Bytes of plaintext whose ciphertext the socket has taken.
        """
        if not self._sealed:
            self._plain = self._tls.write(data[:_SEALED_AT_ONCE])
            self._sealed = memoryview(self._outgoing.read())
        before = len(self._sealed)
        self._sealed = self._sealed[self._raw.send(self._sealed) :]
        # In proportion, and whatever is left with the last of it.
        sent = self._plain * (before - len(self._sealed)) // before
        self._plain -= sent
        return sent

    def recv_into(self, buffer: "WriteableBuffer") -> int:
        """Fill ``buffer`` with what has arrived, waiting for some; 0 at the end."""
        view = memoryview(buffer).cast("B")
        filled = fruitless = 0
        while filled < len(view):
            # An exception costs more than to ask, and a small object would meet two.
            if not (self._incoming.pending or self._tls.pending()):
                if filled:
                    break
                self._receive()
            try:
                # With a buffer to fill, read() returns how much it filled.
                count = cast("int", self._tls.read(len(view) - filled, view[filled:]))
            except ssl.SSLWantReadError:
                # What came was less than a record, or nothing for us. The caller, who minds the
                # time, is told now and then.
                fruitless += 1
                if fruitless == _FRUITLESS:
                    raise BlockingIOError from None
                continue
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                break
            if not count:
                break
            filled += count
        return filled

    def _receive(self) -> None:
        count = self._raw.recv_into(self._room)
        if count:
            self._incoming.write(self._room[:count])
        else:
            self._incoming.write_eof()

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._raw.sendall(self._outgoing.read())
