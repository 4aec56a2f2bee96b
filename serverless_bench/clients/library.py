"""Common base of the clients: options, an endpoint, and following a move to another one."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Final, Generic, TypeVar
from urllib.parse import urlsplit

from serverless_bench.base.errors import BadResponse, WrongRegion
from serverless_bench.base.process import user_agent
from serverless_bench.base.units import KIB, MIB, whole_number
from serverless_bench.clients.base import ClientInfo, Exchange, Source, is_virtual
from serverless_bench.clients.options import parse
from serverless_bench.job.endpoint import redirected, without_default_port
from serverless_bench.job.target import Target, Transfer

K = TypeVar("K")

_CONNECT_S: Final = 10.0
"""Time limit for opening a connection."""
PAGE: Final = 1000
"""Keys in one response to a listing."""
SHORT_TEXT: Final = 64 * KIB
"""Size limit of responses that are read into memory (errors, ids)."""
LONG_TEXT: Final = 8 * MIB
"""Size limit of responses with 1,000 keys of 1,024 bytes, each of which may be encoded as three."""


class LibraryClient(Generic[K]):
    """A client whose library is opened for one endpoint: to move, it opens the library again.

    Parameters
    ----------
    target, transfer
        Location of the objects and settings of the transfer.
    called
        User agent of the client; empty for the default of this process.

    Raises
    ------
    UsageError
        If the library does not have an option of the target.
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
        """Send later requests to another region or endpoint after a redirect by the store.

        Raises
        ------
        WrongRegion
            If the redirect leads to a different store: the signature must not be sent there.
        """
        new_url = moved_endpoint(self._endpoint_url, self._region, region, endpoint_url)
        self._go_to(region or self._region, new_url)

    def close(self) -> None:
        """Release connections; by default this happens when the library object is deleted."""

    def _go_to(self, region: str, endpoint_url: str) -> None:
        self._region, self._endpoint_url = region, without_default_port(endpoint_url)
        self._endpoint = urlsplit(self._endpoint_url)
        name, server = self._endpoint.hostname or "", self._endpoint.netloc
        self._virtual = is_virtual(self._target.addressing, name, self._bucket)
        self._host = f"{self._bucket}.{server}" if self._virtual else server
        self._server = urlsplit(f"{self._endpoint.scheme}://{self._host}")
        self._open()

    def _open(self) -> None:
        """Open the library for ``_region`` and ``_endpoint``."""
        raise NotImplementedError

    def _blocks(self, source: Source) -> Iterator[memoryview]:
        """Yield the body of a request in blocks, in a reused buffer."""
        with self._room(min(self._transfer.block_size, source.size)) as buffer:
            for offset in range(0, source.size, len(buffer) or 1):
                block = buffer[: source.size - offset]
                source.readinto_at(offset, block)
                yield block

    @contextmanager
    def _room(self, size: int) -> Iterator[memoryview]:
        """Yield memory that is reused by later requests.

        Getting new memory from the kernel, page by page, costs several times as much as producing
        the bytes in it. After a failure the memory is dropped, because the library might still be
        reading it.
        """
        try:
            room = self._rooms.pop()
        except IndexError:
            room = bytearray()
        if len(room) < size:
            room = bytearray(size)
        yield memoryview(room)[:size]
        self._rooms.append(room)


def moved_endpoint(url: str, old_region: str, region: str | None, new_url: str | None) -> str:
    """Return the new endpoint after the store named another region, another endpoint or both.

    Raises
    ------
    WrongRegion
        If the redirect leads to a different store.
    """
    endpoint_url = redirected(url, new_url, old_region, region)
    if endpoint_url is None:
        where = (new_url or f"region {region}")[:200]
        raise WrongRegion(
            f"the store redirects to {where!r}, which is not followed: requests are signed for"
            f" {url}"
        )
    return endpoint_url


def check_page(keys: Sequence[str], prefix: str, *, more: bool) -> None:
    """Reject a page of a listing that does not match the request.

    Raises
    ------
    BadResponse
        If it holds other keys, or is empty although the listing continues.
    """
    if more and not keys:
        raise BadResponse("the store lists no keys but marks the page as truncated", status=200)
    if not all(key.startswith(prefix) for key in keys):
        raise BadResponse(f"the store lists keys that do not begin with {prefix!r}", status=200)


def check_range(wanted: str, status: int, headers: Mapping[str, str]) -> None:
    """Reject a response to a request for a range that holds something else.

    A store may send the whole object (RFC 9110, section 14.2), which is right if the range begins
    at its first byte and is at least as long.

    Parameters
    ----------
    wanted
        The ``Range`` header of the request; empty for a whole object.
    status, headers
        The head of the response; names are lower case.

    Raises
    ------
    BadResponse
        If the store ignored the range.
    """
    if not wanted or "content-range" in headers:
        return
    size, last = whole_number(headers.get("content-length", "")), wanted.partition("=0-")[2]
    if size is None or not last or size > int(last) + 1:
        raise BadResponse("the store ignored the range", status=status)


def lower(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers with their names in lower case."""
    return {name.lower(): value for name, value in headers.items()}


def read_text(response: Any, exchange: Exchange | None) -> Iterator[bytes]:
    """Yield the body of a response as it arrives, without decoding.

    Parameters
    ----------
    response
        Response of urllib3 or botocore; its body must be unread.
    exchange
        Receives a call for each piece, which checks the deadline.

    Raises
    ------
    BadResponse
        If the body is longer than any response of S3.
    """
    remaining = LONG_TEXT
    while piece := response.read1(min(remaining, 64 * KIB), decode_content=False):
        yield piece
        if exchange is not None:
            exchange.moved(0)
        remaining -= len(piece)
        if not remaining:
            response.close()
            raise BadResponse("the store's response is too long", status=response.status)
