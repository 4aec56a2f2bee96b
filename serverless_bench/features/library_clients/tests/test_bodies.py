"""Bodies in memory."""

import pytest

from serverless_bench.base.errors import TimedOut
from serverless_bench.base.units import KIB
from serverless_bench.clients.base import ClientInfo
from serverless_bench.features.library_clients.bodies import InMemoryClient
from serverless_bench.job.target import Target, Transfer
from tests.unit.meters import patient_meter


class Letters:
    """A body that repeats one letter."""

    def __init__(self, letter: bytes, size: int) -> None:
        self._letter = letter
        self.size = size

    def readinto_at(self, _: int, buffer: memoryview) -> None:
        buffer[:] = self._letter * len(buffer)


class Uploader(InMemoryClient[object]):
    """Keeps the memory that the library of a client would be given."""

    info = ClientInfo(attempts="exact", progress="none", signing="none", checksum="none")

    def _open(self) -> None:
        self.failing = False

    def put(self, body: Letters) -> tuple[bytes, object]:
        """Return the bytes of a body, and the memory that they stood in."""
        with self._in_memory(body, patient_meter()) as whole:
            if self.failing:
                raise TimedOut("")
            return bytes(whole), whole.obj


@pytest.fixture
def uploader() -> Uploader:
    target = Target(bucket="any", endpoint_url="http://127.0.0.1:1")
    return Uploader(target, Transfer(block_size=KIB))


def test_a_body_has_its_own_bytes_in_memory_that_is_used_again(uploader: Uploader) -> None:
    long, room = uploader.put(Letters(b"a", 3000))
    short, again = uploader.put(Letters(b"b", 1025))
    longer, other = uploader.put(Letters(b"c", 3001))
    assert (long, short, longer) == (b"a" * 3000, b"b" * 1025, b"c" * 3001)
    assert again is room
    assert other is not room


def test_memory_of_a_body_that_failed_is_left_to_the_library(uploader: Uploader) -> None:
    _, room = uploader.put(Letters(b"a", 10))
    uploader.failing = True
    with pytest.raises(TimedOut):
        uploader.put(Letters(b"b", 10))
    uploader.failing = False
    assert uploader.put(Letters(b"c", 10))[1] is not room
