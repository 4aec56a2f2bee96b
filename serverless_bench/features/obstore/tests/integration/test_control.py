"""Operations of claims, records and the driver on a bucket through obstore."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import Any

import obstore
import pytest

from serverless_bench.base.errors import DeadlineExceeded, NotFound, OperationError, StoreError
from serverless_bench.base.units import MIB
from serverless_bench.clients import open_client
from serverless_bench.driver.bucket import Bucket
from serverless_bench.driver.store_errors import explained
from serverless_bench.driver.target import ensure, resolve
from serverless_bench.features.remote.claims import claim, claim_name, get_claim
from serverless_bench.features.testing.client_parts import EndedMeter, PatientMeter, RangeOf
from serverless_bench.features.testing.reference import open_reference
from serverless_bench.job.target import StoreProtocol, Target, Transfer
from serverless_bench.worker.object_io import ObjectIO
from tests.commands.processes import PATIENCE_S
from tests.stores.servers import Server, credentials, loopback

SOON_S = PATIENCE_S


@pytest.fixture(scope="module")
def google(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The loopback store, with Google's protocol."""
    with loopback("--strict", log=tmp_path_factory.mktemp("google") / "out") as server:
        yield replace(server, protocol=StoreProtocol.GS)


@pytest.fixture(params=["azurite", "google"])
def server(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(request.param)
    return found


AZURE_ALONE = pytest.mark.parametrize("server", ["azurite"], indirect=True)
"""The loopback store has every bucket."""


@pytest.fixture
def target(server: Server, prefix: str) -> Iterator[Target]:
    with credentials(server.environment):
        yield Target(
            bucket=server.bucket,
            protocol=server.protocol,
            endpoint_url=server.endpoint_url,
            prefix=prefix,
        )


@pytest.fixture
def objects(target: Target) -> Iterator[ObjectIO]:
    with closing(ObjectIO(target)) as found:
        yield found


@pytest.fixture
def bucket(target: Target) -> Iterator[Bucket]:
    with closing(Bucket(target)) as found:
        yield found


def test_of_many_claims_one_wins(objects: ObjectIO) -> None:
    name = claim_name(3, 0)

    def claimed(number: int) -> str:
        mine = {"delivery": f"{number:032x}", "held_s": 1.0, "until_ns": 1}
        return str(claim(objects, name, mine, timeout_s=SOON_S)["delivery"])

    with ThreadPoolExecutor(8) as threads:
        winners = Counter(threads.map(claimed, range(16)))
    assert list(winners.values()) == [16]
    found = get_claim(objects, 3, 0, timeout_s=SOON_S)
    assert found is not None
    assert found["delivery"] in winners
    assert get_claim(objects, 4, 0, timeout_s=SOON_S) is None


def test_existing_keys_are_refused_with_one_status_on_all_clouds(objects: ObjectIO) -> None:
    objects.put("one", b"first", if_absent=True, timeout_s=SOON_S)
    with pytest.raises(OperationError) as caught:
        objects.put("one", b"second", if_absent=True, timeout_s=SOON_S)
    assert caught.value.status == 412
    assert objects.get("one", timeout_s=SOON_S) == b"first"


@pytest.mark.parametrize("data", [b"", b"x", bytes(300)])
def test_only_inspected_versions_are_deleted(
    objects: ObjectIO, target: Target, data: bytes
) -> None:
    objects.put("one", data, timeout_s=SOON_S)
    head = objects.head("one", 256, timeout_s=SOON_S)
    assert (head.data, head.size, bool(head.etag)) == (data[:256], len(data), True)
    # The same bytes again are another object.
    objects.put("one", data, timeout_s=SOON_S)
    with pytest.raises(OperationError) as caught:
        objects.delete("one", etag=head.etag, timeout_s=SOON_S)
    assert caught.value.status == 412
    assert open_reference(target).get(f"{target.prefix}one") == data
    now = objects.head("one", 256, timeout_s=SOON_S)
    objects.delete("one", etag=now.etag, timeout_s=SOON_S)
    with pytest.raises(NotFound):
        objects.delete("one", etag=now.etag, timeout_s=SOON_S)
    with pytest.raises(NotFound):
        objects.head("one", 256, timeout_s=SOON_S)
    # Deleting without a version is not an error, as on S3.
    objects.delete("one", etag="", timeout_s=SOON_S)


def test_an_object_filled_during_inspection_is_inspected_again(
    objects: ObjectIO, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty object has no range, so its version needs a second request."""
    objects.put("one", b"", timeout_s=SOON_S)
    head = obstore.head

    def late(store: Any, key: str) -> Any:
        open_reference(target).put(key, b"theirs")
        return head(store, key)

    monkeypatch.setattr(obstore, "head", late)
    found = objects.head("one", 256, timeout_s=SOON_S)
    assert (found.data, found.size) == (b"theirs", 6)


def test_a_listing_is_of_pages(objects: ObjectIO, bucket: Bucket, target: Target) -> None:
    names = [f"{number:04}" for number in range(1003)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda name: objects.put(f"f/{name}", b"+", timeout_s=SOON_S), names))
    assert [len(page) for page in objects.list_pages("f/", timeout_s=SOON_S)] == [1000, 3]
    assert list(bucket.keys(f"{target.prefix}f/")) == [f"{target.prefix}f/{name}" for name in names]
    assert bucket.survey(target.prefix) == (
        dict.fromkeys([f"{target.prefix}f/{name}" for name in names], (1, "")),
        True,
    )
    # Azure accepts 256 per request, and reports the first one that is missing.
    keys = [f"{target.prefix}f/{name}" for name in names[:303]]
    with closing(open_client(target, Transfer())) as client:
        client.delete_many(keys[3:], PatientMeter())
        client.delete_many([keys[0], f"{target.prefix}none", *keys[1:3]], PatientMeter())
    assert bucket.survey(target.prefix) == (
        dict.fromkeys([f"{target.prefix}f/{name}" for name in names[303:]], (1, "")),
        True,
    )


@AZURE_ALONE
def test_a_bucket_that_is_gone_is_no_deletion(target: Target) -> None:
    here = replace(target, bucket="nowhere")
    with closing(open_client(here, Transfer())) as client:
        with pytest.raises(NotFound):
            client.delete("one", PatientMeter())
        with pytest.raises(NotFound):
            client.delete_many(["one", "two"], PatientMeter())


def test_a_bucket_tells_its_time(bucket: Bucket) -> None:
    date = bucket.ask()
    assert date is not None
    assert date.endswith("GMT")


@AZURE_ALONE
def test_a_bucket_is_made_once(target: Target) -> None:
    here = replace(target, bucket=target.prefix.strip("/")[:20])
    with pytest.raises(StoreError, match="does not exist"):
        resolve(here)
    for _ in range(2):
        ensure(here)
    assert resolve(here) == here


@AZURE_ALONE
def test_no_list_of_open_uploads(bucket: Bucket, target: Target) -> None:
    """Uncommitted blocks are not objects; Azure discards them after a week."""
    options = (("multipart", "yes"),)
    key = f"{target.prefix}object"
    with closing(open_client(replace(target, client_option=options), Transfer())) as client:
        with pytest.raises(DeadlineExceeded):
            client.put(key, RangeOf(key, 0, 16 * MIB), EndedMeter(12 * MIB))
        with pytest.raises(NotFound):
            client.head(key, PatientMeter())
    assert bucket.uploads(target.prefix) is None
    assert bucket.survey(target.prefix) == ({}, True)


@AZURE_ALONE
def test_listing_uploads_of_a_missing_bucket_is_not_found(target: Target) -> None:
    here = replace(target, bucket="nowhere")
    with (
        pytest.raises(StoreError, match="bucket 'az://nowhere' does not exist"),
        explained(here),
        closing(Bucket(here)) as bucket,
    ):
        bucket.uploads("")
