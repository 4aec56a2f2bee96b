"""Small objects that are not measured: claims, records, heads of objects to delete.

Requests go through the client for control (``clients.control``) whatever client is measured, and
are retried until the caller's timeout.
"""

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final, Self, TypeVar

from serverless_bench.clients.control import ControlClient, open_control_client
from serverless_bench.clock import monotonic_ns
from serverless_bench.errors import BadResponse
from serverless_bench.job.target import Target
from serverless_bench.job.transfer import Transfer
from serverless_bench.units import KIB, MIB, NS_PER_S, whole_number
from serverless_bench.worker.in_memory import MemorySink, MemorySource
from serverless_bench.worker.meter import Meter
from serverless_bench.worker.retry import Retrier

_TRANSFER: Final = Transfer(block_size=64 * KIB, timeout=30.0, retries=20)
"""Retries end with the timeout of the caller, not with a count."""

GIVE_UP_S: Final = 40.0
"""Longer than all attempts of a request take, of a store that sends nothing."""
MOST_PAGES: Final = 3000
"""Of a listing of ours: claims and records of a million functions are fewer."""

T = TypeVar("T")


def pages(list_after: Callable[[str], tuple[list[str], bool]]) -> Iterator[list[str]]:
    """Yield every page of a listing.

    Parameters
    ----------
    list_after
        Returns the page behind a key, and whether there are more.

    Raises
    ------
    BadResponse
        If the store goes round in a circle, or on without end.
    """
    after, ends = "", set[str]()
    for _ in range(MOST_PAGES):
        names, more = list_after(after)
        yield names
        if not more:
            return
        after = names[-1]
        if after in ends:
            raise BadResponse("the store lists the same keys again and again", status=200)
        ends.add(after)
    raise BadResponse(f"the store lists more than {MOST_PAGES} pages", status=200)


@dataclass(frozen=True, slots=True)
class Head:
    """How an object begins."""

    data: bytes
    etag: str
    """Empty if the store sends none."""
    size: int
    """Of the whole object."""

    @classmethod
    def of(cls, data: bytes, etag: str, content_range: str) -> Self:
        """Return how an object begins, by what ``ControlClient.get_head`` returns."""
        size = whole_number(content_range.rpartition("/")[2])
        return cls(data, etag, len(data) if size is None else size)


class ObjectIO:
    """Small objects below a prefix; threads may share it.

    Parameters
    ----------
    target
        Bucket and prefix; names are keys without the prefix.
    transfer
        Attempts, and how long each may take.
    opener
        Returns the client.
    give_up_s
        How long one request may take with all of its attempts, if it does not say so itself.
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
        self._rng = random.Random()  # noqa: S311 - jitter is no secret
        self.date: str | None = None
        """The ``Date`` of the latest response."""
        self.requests: Counter[str] = Counter()
        """Billed requests so far, by kind; see ``Retrier.billed``."""
        self._counting = threading.Lock()

    def put(
        self, name: str, data: bytes, *, timeout_s: float | None = None, if_absent: bool = False
    ) -> None:
        """Write one object; with ``if_absent``, one that is there is refused with 412.

        Raises
        ------
        OperationError
            If that did not succeed within ``timeout_s``.
        """
        key = self._prefix + name
        put = partial(self._client.put, key, MemorySource(data), if_absent=if_absent)
        self._run("put", put, timeout_s)

    def get(self, name: str, *, most: int = MIB, timeout_s: float) -> bytes:
        """Return one object of at most so many bytes.

        Raises
        ------
        NotFound
            If it is not there.
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
        """Return the first ``length`` bytes of an object (0 for all), and what identifies it.

        Raises
        ------
        NotFound, OperationError
            As ``get``.
        """
        call = partial(self._client.get_head, self._prefix + name, length)
        return Head.of(*self._run("get", call, timeout_s))

    def delete(self, name: str, *, etag: str, timeout_s: float | None = None) -> bool:
        """Delete an object if it still is the one with this entity tag.

        Returns
        -------
        bool
            Whether the bucket keeps it as an older version, which goes on costing.

        Raises
        ------
        OperationError
            With status 412 if it is another one, where the store has conditional deletes.
        """
        call = partial(self._client.delete, self._prefix + name, etag=etag)
        return self._run("delete", call, timeout_s)

    def list_page(self, folder: str, after: str, *, timeout_s: float) -> tuple[list[str], bool]:
        """Return up to a thousand names in ``folder`` after ``after``, without the folder.

        Returns
        -------
        list of str, bool
            The names, and whether there are more.
        """
        prefix = self._prefix + folder
        call = partial(self._client.list_keys, prefix, prefix + after)
        keys, more = self._run("list", call, timeout_s)
        return [key.removeprefix(prefix) for key in keys], more

    def list_pages(self, folder: str, *, timeout_s: float) -> Iterator[list[str]]:
        """Yield every name in ``folder``, a page at a time."""
        return pages(lambda after: self.list_page(folder, after, timeout_s=timeout_s))

    def renew(self) -> None:
        """Look for credentials again: those of a profile may have been renewed."""
        # It loads botocore, which most processes never need.
        from serverless_bench.clients.aws_credentials import forget_credentials  # noqa: PLC0415

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
