"""What the body asks of a storage library, and what it hands to it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal, Protocol

from serverless_bench.job.target import Addressing, StoreProtocol, Target
from serverless_bench.job.transfer import Transfer
from serverless_bench.rundir.record import Shown

AWS_HOST: Final = ".amazonaws.com"
"""What the host names of Amazon's S3 have in common, but for those of ``SOVEREIGN_HOST``."""
SOVEREIGN_HOST: Final = ".amazonaws.eu"
"""AWS European Sovereign Cloud."""

ALL_OPERATIONS: Final = frozenset(
    {"put", "get", "range", "multipart", "head", "list", "delete", "delete_many", "copy"}
)
"""What a client may offer: ``range`` is a get of a part of an object, ``multipart`` an upload
in parts that are requests of their own."""

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
"""What a library does otherwise than most, for tests to excuse and for nobody else to know:

* ``bare_puts``: a put says nothing of its body before it, by no hash and no checksum
* ``follows_redirects``: it goes where a location says by itself, without its signature
* ``ignores_no_proxy``, ``ignores_proxies``: it minds only some of the variables for proxies
* ``looks_up_names``: it asks for the addresses of hosts without Python, or its proxy does
* ``one_store``: a process has one endpoint, one set of credentials and one timeout
* ``own_attempts``: it makes attempts and requests of its own, with its retries off, too
* ``partial_status``: it takes a range whose status is not 206 for the whole object
* ``plain_listings``: it does not ask for keys in URL encoding
* ``ranges_always``: it asks for ranges even of a small object
* ``strict_listings``: it reads no listing without entity tags
* ``strict_uploads``: it understands what S3 answers to an upload in parts, and no other words
* ``takes_all``: it takes into memory whatever comes, until the deadline
"""


@dataclass(frozen=True)
class NoOptions:
    """The options of a client that has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientInfo:
    """What a client declares: for checks before anything starts, and for a run's provenance."""

    attempts: Literal["exact", "hidden"]
    """Whether one call is exactly one HTTP request; reports say so when it is not."""
    attempts_hidden_by: frozenset[str] = frozenset()
    """Options that make attempts hidden, when they are set."""
    progress: Literal["wire", "body", "none"]
    """What ``moved`` means: bytes at the socket, bytes read from the body, or nothing."""
    shows: frozenset[Shown] = frozenset()
    """What the exchange receives besides, at its true instant; the rest it never receives."""
    signing: str
    """How requests are signed."""
    checksum: str
    """Which checksums the library adds."""
    operations: frozenset[str] = ALL_OPERATIONS
    """What the library offers; the methods for the rest are not called, and may be missing."""
    options: type = NoOptions
    """What ``Target.options`` may set, as a dataclass (see ``clients.options``)."""
    protocols: frozenset[StoreProtocol] = frozenset({StoreProtocol.S3})
    """What stores it speaks with."""
    express: bool = False
    """Whether it makes sessions with directory buckets (S3 Express One Zone)."""
    conditional: bool = False
    """Whether it writes on conditions, and shows entity tags: see ``ConditionalClient``."""
    control: str = ""
    """``module:attribute`` of the class for small requests that are not measured, of a client that
    is the default of a protocol other than S3."""
    forkable: bool = True
    """False where the library starts threads: it is opened only where nothing forks any more."""
    bucket_names: str = ".*"
    """Regular expression of the names of buckets that the library sends requests for."""
    quirks: frozenset[Quirk] = frozenset()
    """What a test has to excuse, wherever it stands."""

    def with_options(self, options: Iterable[tuple[str, str]]) -> "ClientInfo":
        """Return what is true with some options set: a library that splits a put hides more."""
        if not self.attempts_hidden_by & {name for name, text in options if text.lower() != "none"}:
            return self
        return replace(self, attempts="hidden", shows=self.shows - {Shown.ACKNOWLEDGED})


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
    """One HTTP attempt, as the client reports it; the clock is on the other side.

    A client calls a method when it happens, or not at all: what it learns of only later it keeps
    to itself (``ClientInfo.shows``).
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

    def sending(self, waiting: Callable[[], int]) -> None:
        """A body that does not go out at once (``send_queue.AT_ONCE``) is about to be sent.

        From now on ``moved`` counts what the kernel takes, and ``waiting`` returns how much of
        that the store has not acknowledged; it is called until the request is answered or over.
        """

    def sent(self) -> None:
        """The last byte of the request was handed to the kernel.

        Never later: the store's time to acknowledge would look shorter than it was. Called
        again, the last call counts.
        """

    def acknowledged(self, at_ns: int) -> None:
        """The store's kernel had the last byte at this instant of the wall clock."""

    def answered(self, status: int, headers: Mapping[str, str]) -> None:
        """The head of the response is here; header names are lower case.

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
    has calls in flight. It gets its credentials from its environment.
    """

    info: ClassVar[ClientInfo]

    def put(self, key: str, source: Source, exchange: Exchange) -> None:
        """Write one object in one request.

        What ``exchange.moved`` stops before the last byte has left leaves no object.
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
        """Read one object, or ``length`` bytes of it from ``offset`` on.

        The sink sees the offsets of the body, from 0. Fewer bytes than requested are no
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

    def delete(self, key: str, exchange: Exchange) -> object:
        """Delete one object; one that is not there is no error."""

    def delete_many(self, keys: Sequence[str], exchange: Exchange) -> None:
        """Delete up to a thousand objects in one request."""

    def copy(self, source: str, key: str, exchange: Exchange) -> None:
        """Make an object of the bytes of another one, inside the store."""

    def move(self, *, region: str | None, endpoint_url: str | None) -> None:
        """Send later requests elsewhere, because the store redirected us."""

    def close(self) -> None:
        """Release connections."""


class ConditionalClient(Client, Protocol):
    """A client that writes on conditions; its ``info`` says ``conditional``."""

    def get_tagged(self, key: str, sink: Sink, exchange: Exchange) -> str:
        """Read one object as ``get`` does, and return its entity tag as the store sent it."""

    def put_if(self, key: str, source: Source, exchange: Exchange, *, etag: str | None) -> None:
        """Write one object if what is there has this entity tag; for None, if nothing is there.

        What the condition forbids is refused with status 412, or 409 where two came at once.
        """


class ClientClass(Protocol):
    """What stands in the table of clients."""

    info: ClassVar[ClientInfo]

    def __call__(self, target: Target, transfer: Transfer) -> Client:
        """Return a client for the objects of ``target``."""


def is_virtual(addressing: Addressing, host: str, bucket: str) -> bool:
    """Tell whether the bucket belongs into the host name."""
    if addressing is Addressing.AUTO:
        # A bucket with a dot does not match the certificate of ``*.s3.amazonaws.com``.
        return (AWS_HOST in host or SOVEREIGN_HOST in host) and "." not in bucket
    return addressing is Addressing.VIRTUAL
