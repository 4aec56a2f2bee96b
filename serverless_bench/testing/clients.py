"""What every storage client does, against any store.

Inherit ``ClientContract``, say where an empty prefix is, and get the tests::

    class TestMyClient(ClientContract):
        @pytest.fixture
        def target(self) -> Target:
            return Target(client="mine", bucket="test", endpoint_url=..., prefix=...)

The environment has to hold the store's credentials. What is stored is looked at with
botocore, not with the client under test.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from serverless_bench.bucket import open_s3
from serverless_bench.clients import open_client
from serverless_bench.clients.base import Client
from serverless_bench.errors import AccessDenied, ConnectionLost, NotFound, OperationError
from serverless_bench.keystream import Keystream
from serverless_bench.meter import Meter
from serverless_bench.spec import MIN_PART_BYTES, Target, Transfer

SIZE = 3_000_001
"""Three blocks, and one byte of a fourth."""


class RangeOf:
    """A range of a keystream as a request body."""

    def __init__(self, key: str, offset: int, size: int) -> None:
        self._keystream = Keystream(key)
        self._offset = offset
        self.size = size

    def readinto_at(self, offset: int, buffer: memoryview) -> None:
        """See ``Source``."""
        self._keystream.readinto_at(self._offset + offset, buffer)


class Collector:
    """A sink that keeps what it is given, where it was given."""

    def __init__(self) -> None:
        self.pieces: dict[int, bytes] = {}

    def write_at(self, offset: int, data: memoryview) -> None:
        """See ``Sink``."""
        assert offset not in self.pieces
        self.pieces[offset] = bytes(data)

    def joined(self) -> bytes:
        """Return all bytes, and check that none is missing between them."""
        whole = b""
        for offset in sorted(self.pieces):
            assert offset == len(whole)
            whole += self.pieces[offset]
        return whole


def new_meter(on_moved: Callable[[int], None] = lambda _: None) -> Meter:
    """Return a meter without a deadline."""
    return Meter("test", part=0, number=0, wait_ns=0, give_up_ns=1 << 62, on_moved=on_moved)


def content(key: str, size: int = SIZE, offset: int = 0) -> bytes:
    """Return what belongs into an object."""
    data = bytearray(size)
    Keystream(key).readinto_at(offset, data)
    return bytes(data)


class ClientContract:
    """The tests; see the module."""

    store_checks_credentials = True
    """False for a store that lets everybody in."""

    @abstractmethod
    @pytest.fixture
    def target(self) -> Target:
        """Return an empty prefix of a bucket, and the client's name."""

    @pytest.fixture
    def client(self, target: Target) -> Iterator[Client]:
        """Open the client under test."""
        client = open_client(target, Transfer(connections=4, timeout_s=20))
        yield client
        client.close()

    @pytest.fixture
    def key(self, target: Target) -> str:
        """Return a key that has no object yet."""
        return f"{target.prefix}object"

    def test_put_stores_the_body(self, client: Client, target: Target, key: str) -> None:
        meter = new_meter()
        client.put(key, RangeOf(key, 0, SIZE), meter)
        stored = open_s3(target).get_object(Bucket=target.bucket, Key=key)["Body"].read()
        assert stored == content(key)
        assert meter.bytes == SIZE
        assert meter.status == 200
        assert meter.last_byte_sent_ns is not None

    def test_get_delivers_what_is_stored(self, client: Client, target: Target, key: str) -> None:
        open_s3(target).put_object(Bucket=target.bucket, Key=key, Body=content(key))
        sink, meter = Collector(), new_meter()
        client.get(key, sink, meter)
        assert sink.joined() == content(key)
        assert meter.bytes == SIZE
        assert meter.status == 200
        assert meter.first_byte_ns is not None

    @pytest.mark.parametrize(("offset", "length"), [(0, 1), (1, 2), (1_048_575, 1_048_578)])
    def test_a_range_is_half_open(
        self, client: Client, target: Target, key: str, offset: int, length: int
    ) -> None:
        open_s3(target).put_object(Bucket=target.bucket, Key=key, Body=content(key))
        sink, meter = Collector(), new_meter()
        client.get(key, sink, meter, offset=offset, length=length)
        assert sink.joined() == content(key)[offset : offset + length]
        # 206 by the book; rclone answers 200, with the right header and the right bytes.
        assert meter.status in {200, 206}

    def test_a_range_beyond_the_end_is_cut_off(
        self, client: Client, target: Target, key: str
    ) -> None:
        open_s3(target).put_object(Bucket=target.bucket, Key=key, Body=content(key, 100))
        sink = Collector()
        client.get(key, sink, new_meter(), offset=90, length=20)
        assert sink.joined() == content(key)[90:100]

    def test_parts_become_one_object(self, client: Client, target: Target, key: str) -> None:
        size = MIN_PART_BYTES + 1
        upload_id = client.create_multipart(key, new_meter())
        bodies = (RangeOf(key, 0, MIN_PART_BYTES), RangeOf(key, MIN_PART_BYTES, 1))
        etags = ["", ""]
        for number in (2, 1):
            meter = new_meter()
            body = bodies[number - 1]
            etags[number - 1] = client.upload_part(key, upload_id, number, body, meter)
            assert meter.bytes == body.size
        client.complete_multipart(key, upload_id, etags, new_meter())
        stored = open_s3(target).get_object(Bucket=target.bucket, Key=key)["Body"].read()
        assert stored == content(key, size)

    def test_an_aborted_upload_leaves_nothing(
        self, client: Client, target: Target, key: str
    ) -> None:
        upload_id = client.create_multipart(key, new_meter())
        client.upload_part(key, upload_id, 1, RangeOf(key, 0, 1000), new_meter())
        client.abort_multipart(key, upload_id, new_meter())
        s3 = open_s3(target)
        assert not s3.list_objects_v2(Bucket=target.bucket, Prefix=key).get("Contents")
        assert not s3.list_multipart_uploads(Bucket=target.bucket, Prefix=key).get("Uploads")

    def test_a_missing_object_is_not_found(self, client: Client, key: str) -> None:
        meter = new_meter()
        with pytest.raises(NotFound):
            client.get(key, Collector(), meter)
        assert meter.status == 404

    def test_a_missing_bucket_is_not_found(self, target: Target, key: str) -> None:
        client = open_client(replace(target, bucket="there-is-no-such-bucket"), Transfer())
        with pytest.raises(NotFound):
            client.get(key, Collector(), new_meter())
        client.close()

    def test_wrong_credentials_are_refused(
        self, target: Target, key: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if not self.store_checks_credentials:
            pytest.skip("this store lets everybody in")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
        client = open_client(target, Transfer())
        with pytest.raises(AccessDenied):
            client.put(key, RangeOf(key, 0, 10), new_meter())
        client.close()

    def test_a_closed_port_is_a_lost_connection(self, target: Target, key: str) -> None:
        client = open_client(replace(target, endpoint_url="http://127.0.0.1:1"), Transfer())
        with pytest.raises(ConnectionLost):
            client.get(key, Collector(), new_meter())
        client.close()

    def test_any_printable_key_works(self, client: Client, target: Target) -> None:
        key = f"{target.prefix}a b+c/d~e%20?&=\u00fc.7"
        client.put(key, RangeOf(key, 0, 7), new_meter())
        sink = Collector()
        client.get(key, sink, new_meter())
        assert sink.joined() == content(key, 7)
        listed = open_s3(target).list_objects_v2(Bucket=target.bucket, Prefix=target.prefix)
        assert [entry["Key"] for entry in listed.get("Contents", [])] == [key]

    def test_threads_share_a_client(self, client: Client, target: Target) -> None:
        keys = [f"{target.prefix}{number}" for number in range(8)]

        def there_and_back(key: str) -> bytes:
            client.put(key, RangeOf(key, 0, SIZE), new_meter())
            sink = Collector()
            client.get(key, sink, new_meter())
            return sink.joined()

        # Alone once: rclone fails if several requests make one directory at a time.
        there_and_back(f"{target.prefix}first")
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(there_and_back, keys)) == [content(key) for key in keys]

    def test_errors_are_of_our_own_tree(self, client: Client, key: str) -> None:
        with pytest.raises(OperationError):
            client.upload_part(key, "no-such-upload", 1, RangeOf(key, 0, 10), new_meter())

    def test_a_client_works_on_after_an_error(self, client: Client, key: str) -> None:
        with pytest.raises(NotFound):
            client.get(key, Collector(), new_meter())
        client.put(key, RangeOf(key, 0, 10), new_meter())
        sink = Collector()
        client.get(key, sink, new_meter())
        assert sink.joined() == content(key, 10)
