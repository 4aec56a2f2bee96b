"""Contract of storage clients, against any store.

Inherit ``ClientContract``, provide an empty prefix, and get the tests::

    class TestMyClient(ClientContract):
        @pytest.fixture
        def target(self) -> Target:
            return Target(client="mine", bucket="test", endpoint_url=..., prefix=...)

Tests of operations that a client does not declare (``ClientInfo.operations``) are skipped. Statuses
are checked where ``attempts`` is exact; a client has to show exactly the features in ``shows``;
bytes are always counted. The store's credentials must be in the environment. Stored objects are
inspected with the cloud's official library (``reference``), not with the client under test.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import cast

import pytest

from serverless_bench.base.clock import sleep
from serverless_bench.base.errors import (
    AccessDenied,
    ConnectionLost,
    DeadlineExceeded,
    NotFound,
    OperationError,
    UsageError,
)
from serverless_bench.clients import open_client, options
from serverless_bench.clients.base import ALL_OPERATIONS, Client, ClientInfo, ConditionalClient
from serverless_bench.features.testing.client_parts import (
    SIZE,
    ClientFixtures,
    Collector,
    EndedMeter,
    PatientMeter,
    RangeOf,
    check_not_found,
    check_status,
    content,
    fetched,
    needs,
)
from serverless_bench.features.testing.reference import open_reference
from serverless_bench.job.target import MIN_PART_BYTES, Target, Transfer
from serverless_bench.rundir.record import Shown

ODD = "a b+c/d~e%20?&=\u00fc.7"
"""A key that has to be escaped in a URL, in XML or in both."""


def store(target: Target, *names: str, size: int = 10) -> list[str]:
    """Write objects without the client under test, and return their keys, sorted."""
    keys = sorted(f"{target.prefix}{name}" for name in names)
    for key in keys:
        open_reference(target).put(key, content(key, size))
    return keys


def bytes_of(target: Target, key: str) -> bytes:
    """Return the bytes stored at a key."""
    return open_reference(target).get(key)


def stored(target: Target) -> list[str]:
    """Return the keys below the target's prefix."""
    return open_reference(target).keys(target.prefix)


class ClientContract(ClientFixtures):
    """Tests of a storage client; the module docstring describes them."""

    def test_it_says_what_it_is(self, declared: ClientInfo) -> None:
        assert declared.operations <= ALL_OPERATIONS
        assert {"put", "get"} <= declared.operations
        assert declared.attempts in {"exact", "hidden"}
        assert declared.progress in {"wire", "body", "none"}
        assert declared.shows <= frozenset(Shown)
        assert all((declared.signing, declared.checksum))
        for name, description in options.documented(declared.options).items():
            assert name.isidentifier()
            assert description.strip()
            assert "\n" not in description

    def test_an_unknown_option_is_refused(self, declared: ClientInfo, target: Target) -> None:
        with pytest.raises(UsageError) as caught:
            options.check(replace(target, client_option=(("no-such-option", "1"),)))
        assert all(name in caught.value.hint for name in options.documented(declared.options))

    def test_put_stores_the_body(self, client: Client, target: Target, key: str) -> None:
        meter = PatientMeter()
        client.put(key, RangeOf(key, 0, SIZE), meter)
        assert bytes_of(target, key) == content(key)
        assert meter.bytes == SIZE
        check_status(client, meter.status, 200)
        # A body that was handed over need not be acknowledged yet.
        assert meter.last_byte_sent_ns is None or Shown.ACKNOWLEDGED in client.info.shows

    def test_an_empty_object_is_an_object(self, client: Client, target: Target, key: str) -> None:
        client.put(key, RangeOf(key, 0, 0), PatientMeter())
        sink, meter = Collector(), PatientMeter()
        client.get(key, sink, meter)
        assert (sink.joined(), meter.bytes) == (b"", 0)
        assert stored(target) == [key]

    def test_get_delivers_what_is_stored(self, client: Client, target: Target, key: str) -> None:
        open_reference(target).put(key, content(key))
        sink, meter = Collector(), PatientMeter()
        client.get(key, sink, meter)
        assert sink.joined() == content(key)
        assert meter.bytes == SIZE
        check_status(client, meter.status, 200)
        assert (meter.first_byte_ns is not None) == (Shown.FIRST_BYTE in client.info.shows)

    @pytest.mark.parametrize(("offset", "length"), [(0, 1), (1, 2), (1_048_575, 1_048_578)])
    @needs("range")
    def test_a_range_is_half_open(
        self, client: Client, target: Target, key: str, offset: int, length: int
    ) -> None:
        open_reference(target).put(key, content(key))
        sink, meter = Collector(), PatientMeter()
        client.get(key, sink, meter, offset=offset, length=length)
        assert sink.joined() == content(key)[offset : offset + length]
        where = f"bytes {offset}-{offset + length - 1}/{SIZE}"
        is_shown = Shown.CONTENT_RANGE in client.info.shows
        assert meter.headers.get("content-range") == (where if is_shown else None)
        # S3 responds with 206; rclone with 200, but with the right header and bytes.
        check_status(client, meter.status, 200, 206)
        assert meter.bytes == length

    @needs("range")
    def test_a_range_beyond_the_end_is_cut_off(
        self, client: Client, target: Target, key: str
    ) -> None:
        open_reference(target).put(key, content(key, 100))
        assert fetched(client, key, offset=90, length=20) == content(key)[90:100]

    @needs("multipart")
    def test_parts_become_one_object(self, client: Client, target: Target, key: str) -> None:
        size = MIN_PART_BYTES + 1
        upload_id = client.create_multipart(key, PatientMeter())
        bodies = (RangeOf(key, 0, MIN_PART_BYTES), RangeOf(key, MIN_PART_BYTES, 1))
        etags = ["", ""]
        for number in (2, 1):
            meter = PatientMeter()
            part = bodies[number - 1]
            etags[number - 1] = client.upload_part(key, upload_id, number, part, meter)
            assert meter.bytes == part.size
        client.complete_multipart(key, upload_id, etags, PatientMeter())
        assert bytes_of(target, key) == content(key, size)

    @needs("multipart")
    def test_an_aborted_upload_leaves_nothing(
        self, client: Client, target: Target, key: str
    ) -> None:
        upload_id = client.create_multipart(key, PatientMeter())
        client.upload_part(key, upload_id, 1, RangeOf(key, 0, 1000), PatientMeter())
        client.abort_multipart(key, upload_id, PatientMeter())
        assert stored(target) == []
        assert open_reference(target).open_uploads(target.prefix) == []

    def test_a_missing_object_is_not_found(self, client: Client, key: str) -> None:
        check_not_found(client, lambda meter: client.get(key, Collector(), meter))

    def test_a_missing_bucket_is_not_found(self, target: Target, key: str) -> None:
        elsewhere = replace(target, bucket="there-is-no-such-bucket")
        with closing(open_client(elsewhere, Transfer())) as client, pytest.raises(NotFound):
            client.get(key, Collector(), PatientMeter())

    def test_wrong_credentials_are_refused(
        self, target: Target, key: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if not self.store_checks_credentials:
            pytest.skip("this store accepts any credentials")
        for name, value in self.wrong_credentials.items():
            monkeypatch.setenv(name, value)
        with closing(open_client(target, Transfer())) as client, pytest.raises(AccessDenied):
            client.put(key, RangeOf(key, 0, 10), PatientMeter())

    def test_missing_credentials_are_refused(
        self, target: Target, key: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if not self.needed_credentials:
            pytest.skip("this store needs none")
        for name in self.needed_credentials:
            monkeypatch.delenv(name)
        with closing(open_client(target, Transfer())) as client, pytest.raises(AccessDenied):
            client.put(key, RangeOf(key, 0, 10), PatientMeter())

    def test_a_closed_port_is_a_lost_connection(self, target: Target, key: str) -> None:
        nowhere = replace(target, endpoint_url="http://127.0.0.1:1")
        with closing(open_client(nowhere, Transfer())) as client, pytest.raises(ConnectionLost):
            client.get(key, Collector(), PatientMeter())

    def test_any_printable_key_works(self, client: Client, target: Target) -> None:
        key = f"{target.prefix}{ODD}"
        client.put(key, RangeOf(key, 0, 7), PatientMeter())
        assert fetched(client, key) == content(key, 7)
        assert stored(target) == [key]

    def test_threads_share_a_client(self, client: Client, target: Target) -> None:
        keys = [f"{target.prefix}{number}" for number in range(8)]

        def there_and_back(key: str) -> bytes:
            client.put(key, RangeOf(key, 0, SIZE), PatientMeter())
            return fetched(client, key)

        # Run once alone first: rclone fails if several requests create a directory at the same
        # time.
        there_and_back(f"{target.prefix}first")
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(there_and_back, keys)) == [content(key) for key in keys]

    @needs("multipart")
    def test_errors_are_of_our_own_tree(self, client: Client, key: str) -> None:
        with pytest.raises(OperationError):
            client.upload_part(key, "no-such-upload", 1, RangeOf(key, 0, 10), PatientMeter())

    def test_a_client_works_on_after_an_error(self, client: Client, key: str) -> None:
        with pytest.raises(NotFound):
            client.get(key, Collector(), PatientMeter())
        client.put(key, RangeOf(key, 0, 10), PatientMeter())
        assert fetched(client, key) == content(key, 10)

    def test_a_function_can_end_in_the_middle(
        self, client: Client, target: Target, key: str
    ) -> None:
        with pytest.raises(DeadlineExceeded):
            client.put(key, RangeOf(key, 0, SIZE), EndedMeter())
        open_reference(target).put(key, content(key))
        with pytest.raises(DeadlineExceeded):
            client.get(key, Collector(), EndedMeter())
        assert fetched(client, key) == content(key)

    @pytest.mark.parametrize("at", [0, SIZE // 2])
    def test_a_put_that_is_stopped_leaves_no_object(
        self, client: Client, target: Target, key: str, declared: ClientInfo, at: int
    ) -> None:
        """Stop the put at the start, and halfway."""
        if at and declared.progress == "none":
            pytest.skip("without progress, a put cannot be stopped after its body is made")
        with pytest.raises(DeadlineExceeded):
            client.put(key, RangeOf(key, 0, SIZE), EndedMeter(at))
        for _ in range(5):
            # A store may notice late that no more bytes are coming.
            sleep(0.1)
            assert stored(target) == []

    @needs("head")
    def test_head_tells_the_size(self, client: Client, target: Target) -> None:
        [key] = store(target, "object", size=12_345)
        meter = PatientMeter()
        assert client.head(key, meter) == 12_345
        check_status(client, meter.status, 200)
        assert meter.bytes == 0

    @needs("head")
    def test_head_of_a_missing_object_is_not_found(self, client: Client, key: str) -> None:
        check_not_found(client, lambda meter: client.head(key, meter))

    @needs("list")
    def test_a_listing_is_sorted_and_complete(self, client: Client, target: Target) -> None:
        keys = store(target, ODD, "2", "10", "deep/er/3")
        meter = PatientMeter()
        assert client.list_keys(target.prefix, "", meter) == (keys, False)
        check_status(client, meter.status, 200)
        assert meter.bytes == 0

    @needs("list")
    def test_a_listing_goes_on_behind_a_key(self, client: Client, target: Target) -> None:
        keys = store(target, "1", "2", "3")
        assert client.list_keys(target.prefix, keys[0], PatientMeter()) == (keys[1:], False)

    @needs("list")
    def test_a_listing_of_nothing_is_empty(self, client: Client, target: Target) -> None:
        assert client.list_keys(f"{target.prefix}none/", "", PatientMeter()) == ([], False)

    @needs("list")
    def test_a_prefix_is_no_directory(self, client: Client, target: Target) -> None:
        keys = store(target, "ab1", "ab2", "b")
        assert client.list_keys(f"{target.prefix}ab", "", PatientMeter()) == (keys[:2], False)

    @needs("delete")
    def test_delete_removes_one_object(self, client: Client, target: Target) -> None:
        gone, kept = store(target, ODD, "b")
        meter = PatientMeter()
        client.delete(gone, meter)
        assert stored(target) == [kept]
        check_status(client, meter.status, 200, 204)

    @needs("delete")
    def test_deleting_what_is_gone_is_no_error(self, client: Client, key: str) -> None:
        client.delete(key, PatientMeter())

    @needs("delete_many")
    def test_many_are_deleted_at_once(self, client: Client, target: Target) -> None:
        keys = store(target, ODD, "b&<c>\"'", "d", "e")
        meter = PatientMeter()
        client.delete_many([*keys[:3], f"{target.prefix}never-was"], meter)
        assert stored(target) == keys[3:]
        check_status(client, meter.status, 200)

    @needs("copy")
    def test_a_copy_has_the_same_bytes(self, client: Client, target: Target) -> None:
        [source] = store(target, ODD, size=54_321)
        copied = f"{target.prefix}z {ODD}"
        meter = PatientMeter()
        client.copy(source, copied, meter)
        assert bytes_of(target, copied) == content(source, 54_321)
        check_status(client, meter.status, 200)

    @needs("copy")
    def test_a_copy_of_nothing_is_not_found(self, client: Client, target: Target) -> None:
        source, copied = f"{target.prefix}none", f"{target.prefix}copy"
        check_not_found(client, lambda meter: client.copy(source, copied, meter))

    def test_a_write_takes_effect_only_if_its_condition_holds(
        self, client: Client, declared: ClientInfo, target: Target
    ) -> None:
        if not declared.conditional or "conditions" in self.lacks(target.client):
            pytest.skip("no conditional writes here")
        conditional = cast("ConditionalClient", client)
        # The key declares no size, so the content is up to the test.
        key = f"{target.prefix}register"

        def put(name: str, etag: str | None) -> None:
            conditional.put_if(key, RangeOf(name, 0, 100), PatientMeter(), etag=etag)

        def get() -> tuple[bytes, str]:
            sink, meter = Collector(), PatientMeter()
            etag = conditional.get_tagged(key, sink, meter)
            check_status(client, meter.status, 200)
            assert meter.bytes == 100
            return sink.joined(), etag

        with pytest.raises(NotFound):
            get()
        put("first", None)
        first, etag = get()
        assert first == content("first", 100)
        assert etag
        put("second", etag)
        second, newer = get()
        assert second == content("second", 100)
        assert newer != etag
        for refused in (None, etag):
            with pytest.raises(OperationError) as caught:
                put("third", refused)
            assert caught.value.status == 412
        assert get() == (second, newer)
