"""Bodies of requests and responses that are small, or that are kept."""

import threading


class MemorySource:
    """Bytes as the body of a request."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    def readinto_at(self, offset: int, buffer: memoryview) -> None:
        """Fill ``buffer`` with the bytes from ``offset`` on."""
        buffer[:] = self._data[offset : offset + len(buffer)]


class MemorySink:
    """Keeps the body of a response; threads may write ranges of it at once."""

    def __init__(self) -> None:
        self.data = bytearray()
        self._lock = threading.Lock()

    def write_at(self, offset: int, data: memoryview) -> None:
        """Keep ``data``, which stands at ``offset``."""
        end = offset + len(data)
        with self._lock:
            if end > len(self.data):
                self.data.extend(bytes(end - len(self.data)))
            self.data[offset:end] = data
