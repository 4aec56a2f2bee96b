"""What clients have in common: options, an endpoint, and how they move to another one."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Final, Generic, TypeVar
from urllib.parse import urlsplit

from serverless_bench.clients.base import ClientInfo, Exchange, Sink, Source, is_virtual
from serverless_bench.clients.options import parse
from serverless_bench.errors import BadResponse, OperationError, WrongRegion
from serverless_bench.job.endpoint import redirected
from serverless_bench.job.target import Target
from serverless_bench.job.transfer import Transfer
from serverless_bench.process import user_agent
from serverless_bench.units import KIB, MIB

K = TypeVar("K")

_CONNECT_S: Final = 10.0
"""A connection that takes longer to come about is given up."""
PAGE: Final = 1000
"""Keys of one response to a listing."""
SHORT_TEXT: Final = 64 * KIB
"""Responses that are read into memory (errors, ids) are at most this long."""
LONG_TEXT: Final = 8 * MIB
"""But for those with a thousand keys of 1,024 bytes, each of which may be encoded as three."""


class LibraryClient(Generic[K]):
    """A client whose library is opened for one endpoint: to move, it opens it again.

    Parameters
    ----------
    target, transfer
        Where objects live and how they are moved.
    called
        What the client calls itself; empty for what all of this process do.

    Raises
    ------
    UsageError
        If an option of the target is none of the library's.
    """

    info: ClassVar[ClientInfo]

    def __init__(self, target: Target, transfer: Transfer, *, called: str = "") -> None:
        self._target = target
        self._bucket = target.bucket
        self._transfer = transfer
        self._name = called or user_agent()
        self._connect_s = min(transfer.timeout, _CONNECT_S)
        self._rooms: list[bytearray] = []
        self._options: K = parse(self.info.options, target)
        self._go_to(target.region, target.endpoint_url)

    def move(self, *, region: str | None, endpoint_url: str | None) -> None:
        """Send later requests elsewhere, because the store redirected us.

        Raises
        ------
        WrongRegion
            If that is another store: our signature is not for it.
        """
        there = moved_endpoint(self._endpoint_url, self._region, region, endpoint_url)
        self._go_to(region or self._region, there)

    def close(self) -> None:
        """Release connections; by default that is left to whoever forgets the library."""

    def _go_to(self, region: str, endpoint_url: str) -> None:
        self._region, self._endpoint_url = region, endpoint_url
        self._endpoint = urlsplit(endpoint_url)
        name, server = self._endpoint.hostname or "", self._endpoint.netloc
        self._virtual = is_virtual(self._target.addressing, name, self._bucket)
        self._host = f"{self._bucket}.{server}" if self._virtual else server
        self._open()

    def _open(self) -> None:
        """Open the library for ``_region`` and ``_endpoint``."""
        raise NotImplementedError

    def _blocks(self, source: Source) -> Iterator[memoryview]:
        """Yield the body of a request, block after block, in a buffer that is used again."""
        with self._room(min(self._transfer.block_size, source.size)) as buffer:
            for offset in range(0, source.size, len(buffer) or 1):
                block = buffer[: source.size - offset]
                source.readinto_at(offset, block)
                yield block

    @contextmanager
    def _in_memory(self, source: Source, exchange: Exchange) -> Iterator[memoryview]:
        """Yield the body of a request as a whole, for a library that takes no other."""
        with self._room(source.size) as body:
            for offset in range(0, source.size, self._transfer.block_size):
                source.readinto_at(offset, body[offset : offset + self._transfer.block_size])
                exchange.moved(0)
            yield body

    @contextmanager
    def _room(self, size: int) -> Iterator[memoryview]:
        """Yield memory that serves later requests, too.

        To be given new one by the kernel, page by page, costs several times the bytes in it.
        After a failure the library might still be reading.
        """
        try:
            room = self._rooms.pop()
        except IndexError:
            room = bytearray()
        if len(room) < size:
            room = bytearray(size)
        yield memoryview(room)[:size]
        self._rooms.append(room)


@contextmanager
def translating(
    raised: tuple[type[Exception], ...], error_of: Callable[[str], OperationError]
) -> Iterator[None]:
    """Raise what the text of an exception of a library stands for, in its place."""
    try:
        yield
    except raised as exc:
        raise error_of(str(exc)) from exc


def moved_endpoint(url: str, old_region: str, region: str | None, new_url: str | None) -> str:
    """Return where to go on when the store named another region, another endpoint or both.

    Raises
    ------
    WrongRegion
        If that is another store.
    """
    there = redirected(url, new_url, old_region, region)
    if there is None:
        where = (new_url or f"region {region}")[:200]
        raise WrongRegion(
            f"the store redirects to {where!r}, which is not followed: requests are signed for"
            f" {url}"
        )
    return there


def check_page(keys: Sequence[str], prefix: str, *, more: bool) -> None:
    """Refuse a page of a listing that is not what was asked for.

    Raises
    ------
    BadResponse
        If it holds other keys, or says that there are more behind none.
    """
    if more and not keys:
        raise BadResponse("the store lists no keys, and says that there are more", status=200)
    if not all(key.startswith(prefix) for key in keys):
        raise BadResponse(f"the store lists keys that do not begin with {prefix!r}", status=200)


def lower(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers with their names in lower case."""
    return {name.lower(): value for name, value in headers.items()}


def hand_on(chunks: Iterable[Any], sink: Sink, exchange: Exchange, *, position: int = 0) -> int:
    """Give a body, from ``position`` on, to a sink as it comes, and return where it ends."""
    for chunk in chunks:
        data = memoryview(chunk)
        exchange.moved(len(data))
        sink.write_at(position, data)
        position += len(data)
    return position


def read_text(response: Any, exchange: Exchange | None) -> Iterator[bytes]:  # noqa: ANN401
    """Yield the body of a response as it comes, not unpacked.

    Parameters
    ----------
    response
        Of urllib3 or botocore's own; nothing of its body has been read.
    exchange
        Told of each piece, so that the deadline is minded.

    Raises
    ------
    BadResponse
        If it is longer than anything that S3 sends.
    """
    left = LONG_TEXT
    while piece := response.read1(min(left, 64 * KIB), decode_content=False):
        yield piece
        if exchange is not None:
            exchange.moved(0)
        left -= len(piece)
        if not left:
            response.close()
            raise BadResponse("the store's response is too long", status=response.status)
