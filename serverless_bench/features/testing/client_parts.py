"""Parts of the contract of storage clients: bodies, sinks, stopwatches, fixtures."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import pytest

from serverless_bench.base.errors import DeadlineExceeded, NotFound
from serverless_bench.clients import CLIENTS, open_client
from serverless_bench.clients.base import Client, ClientInfo
from serverless_bench.job.target import Target, Transfer
from serverless_bench.payload.keystream import Keystream
from serverless_bench.worker.in_memory import MemorySource
from serverless_bench.worker.meter import Meter, unseen

F = TypeVar("F", bound=Callable[..., Any])
SIZE = 3_000_001
"""Three blocks, and one byte of a fourth."""


class RangeOf(MemorySource):
    """A range of a keystream as a request body."""

    def __init__(self, key: str, offset: int, size: int) -> None:
        super().__init__(content(key, size, offset))


class Collector:
    """A sink that keeps the bytes it receives, by offset."""

    def __init__(self) -> None:
        self.pieces: dict[int, bytes] = {}

    def write_at(self, offset: int, data: memoryview) -> None:
        assert offset not in self.pieces
        self.pieces[offset] = bytes(data)

    def joined(self) -> bytes:
        """Return all bytes, and check that none is missing between them."""
        whole = b""
        for offset in sorted(self.pieces):
            assert offset == len(whole)
            whole += self.pieces[offset]
        return whole


class PatientMeter(Meter):
    """A meter without a deadline that keeps the headers of the response."""

    def __init__(self) -> None:
        super().__init__("test", part=0, number=0, wait_ns=0, deadline_ns=1 << 62, on_moved=unseen)
        self.headers: Mapping[str, str] = {}

    def answered(self, status: int, headers: Mapping[str, str]) -> None:
        super().answered(status, headers)
        self.headers = dict(headers)


class EndedMeter(PatientMeter):
    """The meter of a function that reaches its deadline once ``at`` bytes have moved.

    Parameters
    ----------
    at
        Number of bytes; 0 stops the first call of the client.
    """

    def __init__(self, at: int = 1) -> None:
        super().__init__()
        self._at = at

    def moved(self, count: int) -> None:
        self.bytes += count
        if self.bytes >= self._at:
            raise DeadlineExceeded("the function's deadline has passed")


def fetched(client: Client, key: str, **extent: int) -> bytes:
    """Return the bytes that a client gets, of the full object or of a range."""
    sink = Collector()
    client.get(key, sink, PatientMeter(), **extent)
    return sink.joined()


def check_not_found(client: Client, request: Callable[[Meter], object]) -> None:
    """Check that a request raises NotFound."""
    meter = PatientMeter()
    with pytest.raises(NotFound) as caught:
        request(meter)
    check_status(client, meter.status or caught.value.status, 404)


def content(key: str, size: int = SIZE, offset: int = 0) -> bytes:
    """Return the expected content of an object."""
    data = bytearray(size)
    Keystream(key).readinto_at(offset, data)
    return bytes(data)


def needs(*operations: str) -> Callable[[F], F]:
    """Return a decorator that skips a test unless client and store support ``operations``."""

    def declare(test: F) -> F:
        vars(test)["operations"] = operations
        return test

    return declare


def check_status(client: Client, status: int | None, *expected: int) -> None:
    """Check an HTTP status, if the client reports all of its requests."""
    if client.info.attempts == "exact":
        assert status in expected


class ClientFixtures:
    """The fixtures of the contract; inherit ``features.testing.clients.ClientContract``."""

    store_checks_credentials = True
    """False for a store that accepts any credentials."""
    wrong_credentials: ClassVar[Mapping[str, str]] = {"AWS_SECRET_ACCESS_KEY": "wrong"}
    """Environment variables that make the credentials invalid."""
    needed_credentials: ClassVar[Sequence[str]] = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    """Variables required for access; none for a store without credentials."""

    def lacks(self, client: str) -> frozenset[str]:
        """Return the operations that the store does not support, or not with this client."""
        return frozenset()

    def deviations(self, client: str) -> Mapping[str, str]:
        """Return tests that fail because the store differs from S3, with the difference."""
        return {}

    @pytest.fixture(autouse=True)
    def declared_deviation(self, request: pytest.FixtureRequest, target: Target) -> None:
        """Run a test that is declared to fail, and add the reason to the report.

        It may also pass: an object may become visible only after the test has looked.
        """
        if reason := self.deviations(target.client).get(request.node.originalname):
            request.node.add_marker(pytest.mark.xfail(reason=reason, strict=False))

    @pytest.fixture(autouse=True)
    def needed_operations(self, request: pytest.FixtureRequest, target: Target) -> None:
        """Skip a test unless client and store support all operations that it ``needs``."""
        offered = CLIENTS.load(target.client).info.operations - self.lacks(target.client)
        if missing := sorted({*getattr(request.function, "operations", ())} - offered):
            pytest.skip(f"no {', '.join(missing)} with the client {target.client!r} here")

    @abstractmethod
    @pytest.fixture
    def target(self) -> Target:
        """Return an empty prefix of a bucket, and the client's name."""

    @pytest.fixture
    def declared(self, target: Target) -> ClientInfo:
        """Return the declaration of the client under test."""
        return CLIENTS.load(target.client).info

    @pytest.fixture
    def client(self, target: Target) -> Iterator[Client]:
        """Open the client under test."""
        client = open_client(target, Transfer(connections=4, timeout=20))
        yield client
        client.close()

    @pytest.fixture
    def key(self, target: Target) -> str:
        """Return a key that has no object yet."""
        return f"{target.prefix}object"
