"""Bodies of requests and responses, between the library of a client and the measured bytes."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from serverless_bench.clients.base import Exchange, Sink, Source
from serverless_bench.clients.library import K, LibraryClient


class InMemoryClient(LibraryClient[K]):
    """A client whose library does not accept a stream."""

    @contextmanager
    def _in_memory(self, source: Source, exchange: Exchange) -> Iterator[memoryview]:
        """Yield the full body of a request."""
        with self._room(source.size) as body:
            for offset in range(0, source.size, self._transfer.block_size):
                source.readinto_at(offset, body[offset : offset + self._transfer.block_size])
                exchange.moved(0)
            yield body


def hand_on(chunks: Iterable[Any], sink: Sink, exchange: Exchange, *, position: int = 0) -> int:
    """Pass a body, from ``position`` on, to a sink as it arrives, and return the end."""
    for chunk in chunks:
        data = memoryview(chunk)
        exchange.moved(len(data))
        sink.write_at(position, data)
        position += len(data)
    return position
