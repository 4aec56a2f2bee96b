"""The loopback store in Google's language, as obstore's own ``GCSStore`` speaks it."""

import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from email.message import Message
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote

import boto3
import obstore
import pytest
from obstore.exceptions import AlreadyExistsError, GenericError, PreconditionError
from obstore.store import GCSStore

from serverless_bench.base.units import MIB
from serverless_bench.features.loopback.faults import FaultKind
from serverless_bench.features.loopback.server import LoopbackServer, serving
from serverless_bench.features.loopback.state import LoopbackSettings
from serverless_bench.job.keys import object_key
from serverless_bench.payload.keystream import Keystream
from tests.stores.servers import DIRECT, KEYS

SIZE = 100_001
BUCKET = "my-bucket.example"


def new_key(number: int, size: int = SIZE) -> str:
    prefix = "sbench/\u00fc +%25&/"
    return object_key(prefix=prefix, run_id="r", index=0, launch=0, number=number, size=size)


def content(key: str, size: int = SIZE) -> bytes:
    body = bytearray(size)
    Keystream(key).readinto_at(0, memoryview(body))
    return bytes(body)


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with serving(LoopbackSettings(strict=True)) as running:
        yield running


def opened(server: LoopbackServer) -> GCSStore:
    return GCSStore(
        BUCKET,
        config={"base_url": server.endpoint_url, "bearer_token": "anonymous"},
        client_options={"allow_http": True},
        retry_config={"max_retries": 0},
    )


@pytest.fixture
def store(server: LoopbackServer) -> GCSStore:
    return opened(server)


def put(store: GCSStore, key: str, body: bytes, **options: Any) -> str:
    version = obstore.put(store, key, body, use_multipart=False, **options)["version"]
    assert version is not None
    return version


def read(store: GCSStore, key: str) -> bytes:
    return bytes(obstore.get(store, key).bytes())


def test_objects_are_compared_and_read_back(server: LoopbackServer, store: GCSStore) -> None:
    key = new_key(0)
    version = put(store, key, content(key))
    assert read(store, key) == content(key)
    assert bytes(obstore.get_range(store, key, start=7, end=1000)) == content(key)[7:1000]
    head = obstore.head(store, key)
    assert (head["size"], head["version"]) == (SIZE, version)
    assert server.state.statistics()["checked_put_bytes"] == SIZE


def test_wrong_bytes_are_refused(server: LoopbackServer, store: GCSStore) -> None:
    key = new_key(0)
    with pytest.raises(GenericError, match="BadDigest"):
        put(store, key, b"\0" * SIZE)
    assert server.state.statistics()["bad_puts"] == 1


def test_parts_become_one_object(server: LoopbackServer, store: GCSStore) -> None:
    size = 11 * MIB
    key = new_key(0, size)
    written = obstore.put(store, key, content(key, size), use_multipart=True, chunk_size=5 * MIB)
    head = obstore.head(store, key)
    assert (head["size"], head["version"]) == (size, written["version"])
    assert server.state.statistics()["requests"]["upload_part"] == 3


def test_a_listing_has_the_keys_behind_a_key(store: GCSStore) -> None:
    keys = sorted(new_key(number) for number in range(5))
    for key in keys:
        put(store, key, content(key))
    folder = keys[0].rpartition("/")[0]
    pages = obstore.list(store, folder, offset=keys[1])
    assert [entry["path"] for page in pages for entry in page] == keys[2:]


def test_a_copy_is_an_object_of_its_own(store: GCSStore) -> None:
    source, target = new_key(0), "copies/of it"
    put(store, source, content(source))
    obstore.copy(store, source, target)
    obstore.delete(store, source)
    assert read(store, target) == content(source)
    with pytest.raises(AlreadyExistsError):
        obstore.copy(store, target, target, overwrite=False)
    with pytest.raises(FileNotFoundError):
        obstore.copy(store, source, "elsewhere")


def test_what_is_not_there_is_not_found(store: GCSStore) -> None:
    for act in (obstore.get, obstore.head, obstore.delete):
        with pytest.raises(FileNotFoundError):
            act(store, "nothing")


def test_an_object_is_created_once(store: GCSStore) -> None:
    def create(number: int) -> int | None:
        try:
            put(store, "claim", b"%d" % number, mode="create")
        except AlreadyExistsError:
            return None
        return number

    with ThreadPoolExecutor(8) as pool:
        [winner] = [number for number in pool.map(create, range(32)) if number is not None]
    assert read(store, "claim") == b"%d" % winner


def test_no_update_is_lost(store: GCSStore) -> None:
    put(store, "counter", b"0")

    def add(_: int) -> None:
        while True:
            found = obstore.get(store, "counter")
            version = found.meta["version"]
            assert version is not None
            try:
                put(
                    store,
                    "counter",
                    b"%d" % (int(bytes(found.bytes())) + 1),
                    mode={"version": version},
                )
            except PreconditionError:
                continue
            return

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(40)))
    assert read(store, "counter") == b"40"


def asked(server: LoopbackServer, method: str, key: str, **headers: str) -> tuple[int, Message]:
    """Status and headers of a request that obstore does not make."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(
        f"{server.endpoint_url}/{BUCKET}/{quote(key)}",
        method=method,
        headers={"Authorization": "Bearer any", **named},
    )
    try:
        with DIRECT.open(request) as response:
            return response.status, response.headers
    except HTTPError as error:
        with error:
            return error.code, error.headers


@pytest.mark.parametrize("key", [new_key(0), "marker"])
def test_only_the_generation_that_is_named_is_deleted(
    server: LoopbackServer, store: GCSStore, key: str
) -> None:
    first = put(store, key, content(key))
    second = put(store, key, content(key))
    assert asked(server, "DELETE", key, x_goog_if_generation_match=first)[0] == 412
    assert obstore.head(store, key)["version"] == second
    assert asked(server, "GET", key, x_goog_if_generation_match=first)[0] == 412
    assert asked(server, "DELETE", key, x_goog_if_generation_match=second)[0] == 204
    assert asked(server, "DELETE", key, x_goog_if_generation_match=second)[0] == 404


def test_responses_have_googles_headers_and_no_amazons(
    server: LoopbackServer, store: GCSStore
) -> None:
    version = put(store, "marker", b"x")
    status, headers = asked(server, "HEAD", "marker")
    assert (status, headers["x-goog-generation"], headers["x-goog-metageneration"]) == (
        200,
        version,
        "1",
    )
    assert headers["x-guploader-uploadid"]
    assert not [name for name in headers if name.lower().startswith("x-amz-")]


def test_both_languages_see_the_same_objects(
    server: LoopbackServer, store: GCSStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    s3 = boto3.session.Session().client(
        "s3", endpoint_url=server.endpoint_url, region_name="us-east-1"
    )
    version = put(store, "marker", b"Google's")
    found = s3.get_object(Bucket=BUCKET, Key="marker")
    assert found["Body"].read() == b"Google's"
    assert "x-goog-generation" not in found["ResponseMetadata"]["HTTPHeaders"]
    s3.put_object(Bucket=BUCKET, Key="marker", Body=b"S3's")
    assert read(store, "marker") == b"S3's"
    with pytest.raises(PreconditionError):
        put(store, "marker", b"late", mode={"version": version})


def test_faults_are_injected_in_this_language_too() -> None:
    key = new_key(0)
    with serving(LoopbackSettings(rates={FaultKind.FLIP: 1.0}, flip_bits=1)) as server:
        store = opened(server)
        put(store, key, content(key))
        wrong = [a ^ b for a, b in zip(read(store, key), content(key), strict=True) if a != b]
    assert [value.bit_count() for value in wrong] == [1]
