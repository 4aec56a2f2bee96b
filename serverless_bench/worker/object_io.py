"""Small objects that are not measured: claims, records, heads of objects to delete.

Requests use the thin client for S3, and obstore for other providers, whichever client is measured.
They are retried until the caller's timeout.
"""

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pkgutil import resolve_name
from typing import Final, Protocol, Self, TypeVar, cast

from serverless_bench.base.clock import monotonic_ns
from serverless_bench.base.errors import BadResponse
from serverless_bench.base.units import KIB, MIB, NS_PER_S, whole_number
from serverless_bench.clients import CLIENTS
from serverless_bench.clients.base import Client, Exchange, Source
from serverless_bench.clients.wire import WireClient
from serverless_bench.job.target import StoreProtocol, Target, Transfer
from serverless_bench.worker.in_memory import MemorySink, MemorySource
from serverless_bench.worker.meter import Meter
from serverless_bench.worker.retry import Retrier


class ControlClient(Client, Protocol):
    """A client with conditional requests."""

    def put(self, key: str, source: Source, exchange: Exchange, *, if_absent: bool = False) -> None:
        """Write an object; with ``if_absent``, an existing one causes an error with status 412."""

    def get_head(self, key: str, length: int, exchange: Exchange) -> tuple[bytes, str, str]:
        """Return the first bytes of an object, its entity tag and its ``Content-Range``.

        Length 0 requests the full object, which has to be small: an empty object has no first byte.
        If a provider identifies versions by another header, its value replaces the tag.
        """

    def delete(self, key: str, exchange: Exchange, *, etag: str = "") -> bool:
        """Delete an object; with an entity tag, only if the object still has that tag.

        Returns
        -------
        bool
            Whether the bucket keeps it as an older version, which continues to cost money.
        """


def open_control_client(
    target: Target, transfer: Transfer, *, s3: type[WireClient] = WireClient, called: str = ""
) -> ControlClient:
    """Return the client for small objects of a target that are not measured.

    Parameters
    ----------
    target, transfer
        As for any client; the options of the target are ignored.
    s3
        Client class for S3.
    called
        User agent of the client; empty for the default of this process.
    """
    # The options belong to the measured library.
    target = replace(target, client="", client_option=())
    if target.protocol is StoreProtocol.S3:
        return s3(target, transfer, called=called)
    # It supports no uploads in parts, which are not needed here.
    control_class = resolve_name(CLIENTS.load(target.client).info.control)
    return cast("ControlClient", control_class(target, transfer, called=called))


_TRANSFER: Final = Transfer(block_size=64 * KIB, timeout=30.0, retries=20)
"""The caller's timeout limits the retries, not their number."""

GIVE_UP_S: Final = 40.0
"""Longer than all attempts of a request to a store that sends no response."""
MOST_PAGES: Final = 3000
"""Upper limit for listings by sbench: claims and records of a million functions need fewer."""

T = TypeVar("T")


def pages(list_after: Callable[[str], tuple[list[str], bool]]) -> Iterator[list[str]]:
    """Yield the pages of a listing.

    Parameters
    ----------
    list_after
        Returns the page after a key, and whether there are further pages.

    Raises
    ------
    BadResponse
        If the store repeats a page, or never reaches the last page.
    """
    after, last_names = "", set[str]()
    for _ in range(MOST_PAGES):
        names, has_more = list_after(after)
        yield names
        if not has_more:
            return
        after = names[-1]
        if after in last_names:
            raise BadResponse("the store lists the same keys repeatedly", status=200)
        last_names.add(after)
    raise BadResponse(f"the store lists more than {MOST_PAGES} pages", status=200)


@dataclass(frozen=True, slots=True)
class Head:
    """The first bytes of an object."""

    data: bytes
    etag: str
    """Entity tag; empty if the store sends none."""
    size: int
    """Size of the full object."""

    @classmethod
    def from_response(cls, data: bytes, etag: str, content_range: str) -> Self:
        """Return a head from the values that ``ControlClient.get_head`` returns."""
        size = whole_number(content_range.rpartition("/")[2])
        return cls(data, etag, len(data) if size is None else size)


class ObjectIO:
    """Small objects below a prefix; threads may share it.

    Parameters
    ----------
    target
        Bucket and prefix; names are keys without the prefix.
    transfer
        Number of attempts, and the timeout of each.
    opener
        Returns the client.
    give_up_s
        Default timeout of a request, with all its attempts.
    """

    def __init__(
        self,
        target: Target,
        *,
        transfer: Transfer = _TRANSFER,
        opener: Callable[[Target, Transfer], ControlClient] = open_control_client,
        give_up_s: float = GIVE_UP_S,
    ) -> None:
        self._open = partial(opener, target, transfer)
        self._client: ControlClient = self._open()
        self._retries = transfer.retries
        self._give_up_s = give_up_s
        self._prefix = target.prefix
        self._rng = random.Random()
        self.date: str | None = None
        """The ``Date`` of the latest response."""
        self.requests: Counter[str] = Counter()
        """Billed requests so far, by kind; see ``Retrier.billed``."""
        self._counting = threading.Lock()

    def put(
        self, name: str, data: bytes, *, timeout_s: float | None = None, if_absent: bool = False
    ) -> None:
        """Write an object; with ``if_absent``, an existing object gives an error with status 412.

        Raises
        ------
        OperationError
            If that did not succeed within ``timeout_s``.
        """
        call = partial(self._client.put, self._prefix + name, MemorySource(data))
        self._run("put", partial(call, if_absent=if_absent), timeout_s)

    def get(self, name: str, *, most: int = MIB, timeout_s: float) -> bytes:
        """Return an object of at most ``most`` bytes.

        Raises
        ------
        NotFound
            If it does not exist.
        TooLong
            If it is longer.
        OperationError
            If it could not be read within ``timeout_s``.
        """

        def get(meter: Meter) -> bytes:
            sink = MemorySink(most)
            self._client.get(self._prefix + name, sink, meter)
            return bytes(sink.data)

        return self._run("get", get, timeout_s)

    def head(self, name: str, length: int, *, timeout_s: float) -> Head:
        """Return the first ``length`` bytes of an object (0 for all), its entity tag and its size.

        Raises
        ------
        NotFound, OperationError
            As ``get``.
        """
        call = partial(self._client.get_head, self._prefix + name, length)
        return Head.from_response(*self._run("get", call, timeout_s))

    def delete(self, name: str, *, etag: str, timeout_s: float | None = None) -> bool:
        """Delete an object if it still has this entity tag.

        Returns
        -------
        bool
            Whether the bucket keeps it as an older version, which is still billed.

        Raises
        ------
        OperationError
            With status 412 if the tag differs, in stores with conditional deletes.
        """
        call = partial(self._client.delete, self._prefix + name, etag=etag)
        return self._run("delete", call, timeout_s)

    def list_page(self, folder: str, after: str, *, timeout_s: float) -> tuple[list[str], bool]:
        """Return up to a thousand names in ``folder`` after ``after``, without the folder.

        Returns
        -------
        list of str, bool
            The names, and whether there are further names.
        """
        prefix = self._prefix + folder
        call = partial(self._client.list_keys, prefix, prefix + after)
        keys, has_more = self._run("list", call, timeout_s)
        return [key.removeprefix(prefix) for key in keys], has_more

    def list_pages(self, folder: str, *, timeout_s: float) -> Iterator[list[str]]:
        """Yield the names in ``folder``, page by page."""
        return pages(lambda after: self.list_page(folder, after, timeout_s=timeout_s))

    def renew(self) -> None:
        """Reload the credentials: those of a profile may have been renewed."""
        # This loads botocore, which most processes never need.
        from serverless_bench.clients.aws_credentials import forget_credentials

        forget_credentials()
        before, self._client = self._client, self._open()
        before.close()

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    def _run(self, request: str, call: Callable[[Meter], T], timeout_s: float | None = None) -> T:
        limit_s = self._give_up_s if timeout_s is None else timeout_s
        deadline_ns = monotonic_ns() + round(limit_s * NS_PER_S)
        retrier = Retrier(self._client, self._retries, deadline_ns, self._rng)
        try:
            return retrier.run(request, call)
        finally:
            with self._counting:
                self.requests += retrier.billed()
            self.date = next((m.date for m, _ in reversed(retrier.done) if m.date), self.date)
