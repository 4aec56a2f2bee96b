"""Bodies of requests and responses that are small, or that are kept."""

import threading

from serverless_bench.base.errors import BadResponse
from serverless_bench.base.units import format_size


class TooLong(BadResponse):
    """The store sends more bytes than the caller allows."""

    retryable = False


class MemorySource:
    """Bytes as the body of a request."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    def readinto_at(self, offset: int, buffer: memoryview) -> None:
        """Fill ``buffer`` with the bytes from ``offset`` on."""
        buffer[:] = self._data[offset : offset + len(buffer)]


class MemorySink:
    """Keeps the body of a response; threads may write ranges of it at the same time.

    Parameters
    ----------
    most
        Most bytes accepted; None for no limit.
    """

    def __init__(self, most: int | None = None) -> None:
        self.data = bytearray()
        self._most = most
        self._lock = threading.Lock()

    def write_at(self, offset: int, data: memoryview) -> None:
        """Keep ``data`` at ``offset``.

        Raises
        ------
        TooLong
            If the body exceeds the limit.
        """
        end = offset + len(data)
        if self._most is not None and end > self._most:
            raise TooLong(f"the response has more than {format_size(self._most)}")
        with self._lock:
            if end > len(self.data):
                self.data.extend(bytes(end - len(self.data)))
            self.data[offset:end] = data
