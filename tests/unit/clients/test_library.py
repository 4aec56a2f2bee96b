"""Common parts of clients: bodies in memory, redirects, and XML."""

import pytest

from serverless_bench.base.errors import BadResponse, TimedOut
from serverless_bench.base.units import KIB
from serverless_bench.clients.base import ClientInfo
from serverless_bench.clients.library import LibraryClient, check_range, moved_endpoint
from serverless_bench.clients.s3_http import element, parse_xml, texts
from serverless_bench.job.target import Target
from serverless_bench.job.transfer import Transfer
from tests.unit.meters import patient_meter


class Letters:
    """A body that repeats one letter."""

    def __init__(self, letter: bytes, size: int) -> None:
        self._letter = letter
        self.size = size

    def readinto_at(self, _: int, buffer: memoryview) -> None:
        buffer[:] = self._letter * len(buffer)


class Uploader(LibraryClient[object]):
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


def test_elements_have_any_namespace() -> None:
    text = b'<a xmlns="urn:x"><Key>1</Key><b><Key>2</Key></b><Key/></a>'
    root = parse_xml(text)
    assert root is not None
    assert texts(root, "Key") == ["1", "2", ""]
    assert element(text, "None") == element(b"no XML", "Key") == element(b"<a", "Key") == ""
    assert parse_xml(b"no XML") is parse_xml(b"<a") is None


@pytest.mark.parametrize(
    ("region", "told", "where"),
    [
        ("eu-1", None, "https://s3.eu-1.amazonaws.com"),
        ("eu-1", "https://s3-eu-1.amazonaws.com", "https://s3-eu-1.amazonaws.com"),
        (None, None, "https://s3.us-1.amazonaws.com"),
    ],
)
def test_on_aws_the_region_says_where(region: str | None, told: str | None, where: str) -> None:
    assert moved_endpoint("https://s3.us-1.amazonaws.com", "us-1", region, told) == where


def test_elsewhere_the_region_says_nothing() -> None:
    assert moved_endpoint("http://store", "us-1", "eu-1", None) == "http://store"


@pytest.mark.parametrize(
    ("wanted", "headers", "is_right"),
    [
        ("bytes=0-99", {"content-range": "bytes 0-99/100"}, True),
        ("bytes=0-99", {"content-length": "100"}, True),
        ("bytes=0-99", {"content-length": "50"}, True),
        ("bytes=0-99", {"content-length": "101"}, False),
        ("bytes=0-99", {}, False),
        ("bytes=50-99", {"content-length": "50"}, False),
        ("", {"content-length": "101"}, True),
    ],
)
def test_a_whole_object_answers_a_range_that_covers_it(
    wanted: str,
    headers: dict[str, str],
    is_right: bool,  # noqa: FBT001 - of a table
) -> None:
    if is_right:
        check_range(wanted, 200, headers)
    else:
        with pytest.raises(BadResponse):
            check_range(wanted, 200, headers)
