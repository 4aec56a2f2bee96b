"""What the body asks of a storage library, and what it hands to it."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, Literal, Protocol

from serverless_bench.job.spec import Addressing
from serverless_bench.rundir.record import Shown

AWS_HOST: Final = ".amazonaws.com"
"""What the host names of Amazon's S3 have in common."""

ALL_OPERATIONS: Final = frozenset(
    {"put", "get", "range", "multipart", "head", "list", "delete", "delete_many", "copy"}
)
"""What a client may offer: ``range`` is a get of a part of an object, ``multipart`` an upload
in parts that are requests of their own."""


class Source(Protocol):
    """The body of one request: a range of one object's keystream."""

    @property
    def size(self) -> int:
        """Bytes in the body."""

    def readinto_at(self, offset: int, buffer: memoryview) -> None:
        """Fill ``buffer`` with the body's bytes from ``offset`` on; threads may share it."""


class Sink(Protocol):
    """Takes the body of one response, compares it and keeps nothing."""

    def write_at(self, offset: int, data: memoryview) -> None:
        """Take ``data``, which stands at ``offset`` of the body; each byte once."""


class Exchange(Protocol):
    """One HTTP try, as the client tells it; the clock is on the other side.

    A client calls a method when it happens, or not at all: what it learns of only later it keeps
    to itself (``Client.shows``).
    """

    def connected(self, remote: str, *, reused: bool) -> None:
        """A connection to ``remote`` stands; ``reused`` if it carried a request before."""

    def moved(self, count: int) -> None:
        """``count`` more bytes of the body went out or came in; 0 while waiting.

        Raises
        ------
        DeadlineExceeded
            When the function has to stop; let it pass.
        """

    def sent(self) -> None:
        """The last byte of the request was handed to the network.

        Never later: the store's time to acknowledge would look shorter than it was. Called
        again, the last call counts.
        """

    def answered(self, status: int, headers: Mapping[str, str]) -> None:
        """The head of the answer is here; header names are lower case.

        Of a range, ``content-range`` is among them, if the client shows it.
        """

    def first_byte(self) -> None:
        """The first byte of the response body is here; a body without bytes has none.

        Never earlier: the head may come long before.
        """


class Client(Protocol):
    """One storage library, reduced to single attempts of single requests.

    A client reads no clock, logs nothing, never tries again by itself, and raises only
    ``OperationError``. Threads may call it at once; it keeps as many connections as it
    has calls in flight. It gets its credentials from its environment. One whose library
    starts threads of its own says ``forkable = False``, and is then opened only where no
    process is forked any more.
    """

    attempts: ClassVar[Literal["exact", "hidden"]]
    """Whether one call is exactly one HTTP request; reports say so when it is not."""
    progress: ClassVar[Literal["wire", "body", "none"]]
    """What ``moved`` means: bytes at the socket, bytes asked of the body, or nothing."""
    shows: ClassVar[frozenset[Shown]]
    """What the exchange is told besides, at its true instant. The rest is not told."""
    signing: ClassVar[str]
    """How requests are signed, for the run's provenance."""
    checksum: ClassVar[str]
    """Which checksums the library adds, for the run's provenance."""
    operations: ClassVar[frozenset[str]]
    """What the library offers, of ``ALL_OPERATIONS``; the methods for the rest are not called,
    and need not be there."""
    options: ClassVar[Mapping[str, str]]
    """The library's own knobs, and what each does: what ``Target.options`` may name."""

    def put(self, key: str, source: Source, exchange: Exchange) -> None:
        """Write one object in one request."""

    def get(
        self,
        key: str,
        sink: Sink,
        exchange: Exchange,
        *,
        offset: int = 0,
        length: int | None = None,
    ) -> None:
        """Read one object, or ``length`` bytes of it from ``offset`` on.

        The sink sees the offsets of the body, from 0. Fewer bytes than asked for are no
        error here if the store says so; a connection that ends before is one.
        """

    def create_multipart(self, key: str, exchange: Exchange) -> str:
        """Begin an upload in parts and return its id."""

    def upload_part(
        self, key: str, upload_id: str, number: int, source: Source, exchange: Exchange
    ) -> str:
        """Write one part, numbered from 1, and return its entity tag."""

    def complete_multipart(
        self, key: str, upload_id: str, etags: Sequence[str], exchange: Exchange
    ) -> None:
        """Make one object of all parts; ``etags`` are in part order."""

    def abort_multipart(self, key: str, upload_id: str, exchange: Exchange) -> None:
        """Give an upload up, and its parts with it."""

    def head(self, key: str, exchange: Exchange) -> int:
        """Return the size of one object in bytes."""

    def list_keys(self, prefix: str, after: str, exchange: Exchange) -> tuple[list[str], bool]:
        """Return up to a thousand keys behind ``after``, and whether there are more."""

    def delete(self, key: str, exchange: Exchange) -> None:
        """Delete one object; one that is not there is no error."""

    def delete_many(self, keys: Sequence[str], exchange: Exchange) -> None:
        """Delete up to a thousand objects in one request."""

    def copy(self, source: str, key: str, exchange: Exchange) -> None:
        """Make an object of the bytes of another one, inside the store."""

    def move(self, *, region: str | None, endpoint_url: str | None) -> None:
        """Send later requests elsewhere, because the store said so."""

    def close(self) -> None:
        """Release connections."""


def is_virtual(addressing: Addressing, host: str, bucket: str) -> bool:
    """Tell whether the bucket belongs into the host name.

    A bucket with a dot does not match the certificate of ``*.s3.amazonaws.com``.
    """
    if addressing is Addressing.AUTO:
        return AWS_HOST in host and "." not in bucket
    return addressing is Addressing.VIRTUAL
