"""The interface between the function body and a storage library."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final, Literal, Protocol

from serverless_bench.base.errors import OperationError
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.target import Addressing, StoreProtocol, Target, Transfer

if TYPE_CHECKING:
    from serverless_bench.rundir.record import Shown

AWS_HOST: Final = ".amazonaws.com"
"""Common suffix of Amazon's S3 host names, except those of ``SOVEREIGN_HOST``."""
SOVEREIGN_HOST: Final = ".amazonaws.eu"
"""Suffix of the host names of the AWS European Sovereign Cloud."""

ALL_OPERATIONS: Final = frozenset(
    {"put", "get", "range", "multipart", "head", "list", "delete", "delete_many", "copy"}
)
"""Operations that a client may offer. ``range`` is a get of a part of an object; ``multipart`` is
an upload in parts, each sent in a separate request."""


_NEEDS: Final = {
    OperationKind.GET_RANGE: "range",
    OperationKind.SCAN: "range",
    OperationKind.LIST_ALL: "list",
    OperationKind.WAIT: "list",
}


def needs(kind: OperationKind) -> str:
    """Return the member of ``ALL_OPERATIONS`` that a client has to support for an operation."""
    return _NEEDS.get(kind, kind.value)


Quirk = Literal[
    "bare_puts",
    "follows_redirects",
    "ignores_no_proxy",
    "ignores_proxies",
    "looks_up_names",
    "one_store",
    "own_attempts",
    "partial_status",
    "plain_listings",
    "ranges_always",
    "strict_listings",
    "strict_uploads",
    "takes_all",
]
"""Deviations of a library from most others; only the tests use them, to skip or relax checks:

* ``bare_puts``: a put carries neither a hash nor a checksum of its body
* ``follows_redirects``: it follows a ``Location`` header by itself, without its signature
* ``ignores_no_proxy``, ``ignores_proxies``: it honours only some of the proxy variables
* ``looks_up_names``: it resolves host names outside Python, or lets its proxy resolve them
* ``one_store``: a process has a single endpoint, set of credentials and timeout
* ``own_attempts``: it sends additional attempts and requests even with its retries disabled
* ``partial_status``: it takes a ranged response whose status is not 206 for the full object
* ``plain_listings``: it does not request URL-encoded keys
* ``ranges_always``: it requests ranges even of a small object
* ``strict_listings``: it rejects listings without entity tags
* ``strict_uploads``: it accepts only the exact XML that S3 returns to an upload in parts
* ``takes_all``: it reads responses of any size into memory, until the deadline
"""


@dataclass(frozen=True)
class NoOptions:
    """The options of a client without any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientInfo:
    """Declared properties of a client, for checks before a run and for its provenance."""

    attempts: Literal["exact", "hidden"]
    """Whether one call is exactly one HTTP request; reports mention it otherwise."""
    attempts_hidden_by: frozenset[str] = frozenset()
    """Options that make attempts hidden when they are set."""
    progress: Literal["wire", "body", "none"]
    """Meaning of ``moved``: bytes at the socket, bytes read from the body, or nothing."""
    shows: "frozenset[Shown]" = frozenset()
    """Optional events that the exchange receives at the true time; it never receives the rest."""
    signing: str
    """Signing method of the requests."""
    checksum: str
    """Checksums that the library adds."""
    operations: frozenset[str] = ALL_OPERATIONS
    """Operations that the library offers; the methods of the rest are never called and may be
    missing."""
    options: type = NoOptions
    """Dataclass of the settings that ``Target.options`` may contain (see ``clients.options``)."""
    protocols: frozenset[StoreProtocol] = frozenset({StoreProtocol.S3})
    """Protocols of the stores that the client supports."""
    express: bool = False
    """Whether it creates sessions for directory buckets (S3 Express One Zone)."""
    conditional: bool = False
    """Whether it writes conditionally and returns entity tags: see ``ConditionalClient``."""
    encrypts: bool = False
    """Whether new objects are encrypted as ``Target.sse`` asks."""
    versions: bool = False
    """Whether it lists the versions of keys."""
    hedges: bool = False
    """Whether it can send a second request for a slow read: see ``HedgingClient``."""
    control: str = ""
    """``module:attribute`` of the class for small requests that are not measured, for a client that
    is the default of a protocol other than S3."""
    forkable: bool = True
    """False if the library starts threads: it is opened only after the last fork."""
    bucket_names: str = ".*"
    """Regular expression for the bucket names that the library accepts."""
    quirks: frozenset[Quirk] = frozenset()
    """Deviations that a test has to excuse for this client."""

    def with_options(self, options: Iterable[tuple[str, str]]) -> "ClientInfo":
        """Return the properties with some options set: splitting a put hides attempts."""
        if not self.attempts_hidden_by & {name for name, text in options if text.lower() != "none"}:
            return self
        # A job is checked without the records of its functions.
        from serverless_bench.rundir.record import Shown

        return replace(self, attempts="hidden", shows=self.shows - {Shown.ACKNOWLEDGED})


class Source(Protocol):
    """The body of a request: a range of an object's keystream."""

    @property
    def size(self) -> int:
        """Size of the body in bytes."""

    def readinto_at(self, offset: int, buffer: memoryview) -> None:
        """Fill ``buffer`` with the bytes of the body from ``offset`` on; threads may share it."""


class Sink(Protocol):
    """Takes the body of a response, verifies it and keeps nothing."""

    def write_at(self, offset: int, data: memoryview) -> None:
        """Take ``data``, located at ``offset`` of the body; each byte is passed exactly once."""


class Exchange(Protocol):
    """One HTTP attempt as reported by the client; the receiver takes the timestamps.

    A client calls a method at the moment of the event or not at all: it does not report events that
    it learns about only later (``ClientInfo.shows``).
    """

    def connected(self, remote: str, *, reused: bool) -> None:
        """Report a connection to ``remote``; ``reused`` if it carried an earlier request."""

    def moved(self, count: int) -> None:
        """Report ``count`` more bytes of the body sent or received; 0 while waiting.

        Raises
        ------
        DeadlineExceeded
            When the function has to stop; let it propagate.
        """

    def sending(self, waiting: Callable[[], int]) -> None:
        """Report that a body larger than ``send_queue.AT_ONCE`` is about to be sent.

        From now on ``moved`` counts the bytes accepted by the kernel, and ``waiting`` returns how
        many of them the store has not acknowledged. It is called until the request is answered or
        has failed.
        """

    def sent(self) -> None:
        """Report that the last byte of the request was passed to the kernel.

        Never call it later: the store's time to acknowledge would look shorter than it was. After
        several calls, the last call counts.
        """

    def acknowledged(self, at_ns: int) -> None:
        """Report the wall-clock time at which the store's kernel had the last byte."""

    def answered(self, status: int, headers: Mapping[str, str]) -> None:
        """Report the head of the response; header names are lower case.

        For a ranged response the headers include ``content-range`` if the client exposes it.
        """

    def first_byte(self) -> None:
        """Report the first byte of the response body; an empty body has none.

        Never call it earlier: the head may arrive long before the body.
        """


class HedgedExchange(Exchange, Protocol):
    """One of up to two requests for the same bytes."""

    def wait_s(self) -> float:
        """Return the seconds until the second request is due, after ``sent``; 0 or less if due."""

    def second(self) -> "HedgedExchange":
        """Return the exchange of the second request, which is about to be sent or has failed."""

    def lost(self, error: OperationError) -> None:
        """Report that this request is over without success: its error, or ``Hedged``."""


class Client(Protocol):
    """A storage library, reduced to single attempts of single requests.

    A client reads no clock, logs nothing, never retries by itself, and raises only
    ``OperationError``. Threads may call it concurrently; it keeps as many connections as it has
    calls in flight. It takes its credentials from its environment.
    """

    info: ClassVar[ClientInfo]

    def put(self, key: str, source: Source, exchange: Exchange) -> None:
        """Write an object in a single request.

        If ``exchange.moved`` raises before the last byte is sent, no object is created.
        """

    def get(
        self,
        key: str,
        sink: Sink,
        exchange: Exchange,
        *,
        offset: int = 0,
        length: int | None = None,
    ) -> None:
        """Read an object, or ``length`` bytes of it from ``offset`` on.

        The sink sees offsets in the body, from 0. Fewer bytes than requested are not an error here
        if the store announces them; a connection that breaks early is an error.
        """

    def create_multipart(self, key: str, exchange: Exchange) -> str:
        """Start an upload in parts and return the id."""

    def upload_part(
        self, key: str, upload_id: str, number: int, source: Source, exchange: Exchange
    ) -> str:
        """Write a part, numbered from 1, and return its entity tag."""

    def complete_multipart(
        self, key: str, upload_id: str, etags: Sequence[str], exchange: Exchange
    ) -> None:
        """Combine all parts into one object; ``etags`` are in part order."""

    def abort_multipart(self, key: str, upload_id: str, exchange: Exchange) -> None:
        """Abort an upload and discard the parts."""

    def head(self, key: str, exchange: Exchange) -> int:
        """Return the size of an object in bytes."""

    def list_keys(self, prefix: str, after: str, exchange: Exchange) -> tuple[list[str], bool]:
        """Return up to 1,000 keys after ``after``, and whether the listing continues."""

    def delete(self, key: str, exchange: Exchange) -> object:
        """Delete an object; a missing object is not an error."""

    def delete_many(self, keys: Sequence[str], exchange: Exchange) -> None:
        """Delete up to 1,000 objects in one request."""

    def copy(self, source: str, key: str, exchange: Exchange) -> None:
        """Copy an object inside the store."""

    def move(self, *, region: str | None, endpoint_url: str | None) -> None:
        """Send later requests to another region or endpoint after a redirect by the store."""

    def close(self) -> None:
        """Release connections."""


class ConditionalClient(Client, Protocol):
    """A client with conditional writes; its ``info`` sets ``conditional``."""

    def get_tagged(self, key: str, sink: Sink, exchange: Exchange) -> str:
        """Read an object like ``get`` and return the entity tag as sent by the store."""

    def put_if(self, key: str, source: Source, exchange: Exchange, *, etag: str | None) -> None:
        """Write an object if the current one has this entity tag; None requires that it is missing.

        A failed condition raises an error with status 412, or 409 for concurrent writes.
        """


class HedgingClient(Client, Protocol):
    """A client with second requests; its ``info`` sets ``hedges``."""

    def get_hedged(
        self,
        key: str,
        sink: Sink,
        exchange: HedgedExchange,
        *,
        offset: int = 0,
        length: int | None = None,
    ) -> None:
        """Read like ``get``, with a second request when ``exchange`` says that it is due.

        The first successful response wins, and only its body reaches the sink. The other request is
        given up at once, and its exchange is told of the bytes that had arrived. A second request
        that fails is no failure of the read. If both fail, the error is that of the first to fail.
        """


class ClientClass(Protocol):
    """An entry in the table of clients."""

    info: ClassVar[ClientInfo]

    def __call__(self, target: Target, transfer: Transfer) -> Client:
        """Return a client for the objects of ``target``."""


def is_virtual(addressing: Addressing, host: str, bucket: str) -> bool:
    """Return whether the bucket belongs into the host name."""
    if addressing is Addressing.AUTO:
        # A bucket with a dot does not match the certificate of ``*.s3.amazonaws.com``.
        return (AWS_HOST in host or SOVEREIGN_HOST in host) and "." not in bucket
    return addressing is Addressing.VIRTUAL
