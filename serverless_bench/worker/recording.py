"""A client that also holds what its reads bring, for whoever wants it."""

import threading
from typing import Any

from serverless_bench.clients.base import Client, Exchange, Sink


class RecordingClient:
    """Passes everything on to a client, and keeps what comes back.

    Parameters
    ----------
    client
        Does the work.
    offset
        Where the range begins that is to be held.
    hold
        Whether to hold the bytes of objects.
    after
        Key behind which a listing begins.
    """

    def __init__(
        self, client: Client, *, offset: int = 0, hold: bool = False, after: str = ""
    ) -> None:
        self._client = client
        self._offset = offset
        self._hold = hold
        self._after = after
        self._lock = threading.Lock()
        self.data = bytearray()
        """The bytes of what was read, from ``offset`` on."""
        self.size = 0
        """What the last head gave."""
        self.keys: list[str] = []
        self.more = False
        """What the last listing gave, and whether it goes on."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the client has
        return getattr(self._client, name)

    def get(
        self,
        key: str,
        sink: Sink,
        exchange: Exchange,
        *,
        offset: int = 0,
        length: int | None = None,
    ) -> None:
        """See ``Client``."""
        into = _Tee(sink, self, offset - self._offset) if self._hold else sink
        self._client.get(key, into, exchange, offset=offset, length=length)

    def head(self, key: str, exchange: Exchange) -> int:
        """See ``Client``."""
        self.size = self._client.head(key, exchange)
        return self.size

    def list_keys(self, prefix: str, after: str, exchange: Exchange) -> tuple[list[str], bool]:
        """See ``Client``."""
        found = self._client.list_keys(prefix, after or self._after, exchange)
        self.keys, self.more = found
        return found

    def take(self, offset: int, data: memoryview) -> None:
        """Hold ``data`` at ``offset``; threads may call it at once."""
        end = offset + len(data)
        with self._lock:
            if end > len(self.data):
                self.data.extend(bytes(end - len(self.data)))
            self.data[offset:end] = data


class _Tee:
    def __init__(self, sink: Sink, held: RecordingClient, offset: int) -> None:
        self._sink = sink
        self._held = held
        self._offset = offset

    def write_at(self, offset: int, data: memoryview) -> None:
        """See ``Sink``."""
        self._sink.write_at(offset, data)
        self._held.take(self._offset + offset, data)
