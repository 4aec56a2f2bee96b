"""Reads from Google Cloud Storage, compared with fake-gcs-server, which is written in Go.

It only supports reads and lists of the XML API;
serverless_bench/features/google/README.md describes the differences.
"""

import json
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from urllib.parse import quote

import pytest

from serverless_bench.base.errors import NotFound
from serverless_bench.clients import open_client
from serverless_bench.features.testing.client_parts import Collector, PatientMeter
from serverless_bench.job.keys import object_key
from serverless_bench.job.target import StoreProtocol, Target, Transfer
from serverless_bench.payload.keystream import Keystream
from tests.stores.built import FAKE_GCS, program
from tests.stores.servers import DIRECT, free_port, running

pytestmark = pytest.mark.full
SIZE = 300_001
NUMBER = 5


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    address = f"127.0.0.1:{(port := free_port())}"
    url = f"http://{address}"
    command = [
        *(str(program(FAKE_GCS)), "-backend", "memory", "-scheme", "http", "-host", "127.0.0.1"),
        *("-port", str(port), "-public-host", address, "-log-level", "warn"),
    ]
    with running(command, f"{url}/_internal/healthcheck", tmp_path_factory.mktemp("fake") / "log"):
        reported(f"{url}/storage/v1/b?project=any", json.dumps({"name": "test"}).encode())
        yield Target(bucket="test", protocol=StoreProtocol.GS, endpoint_url=url)


def reported(url: str, body: bytes) -> None:
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    DIRECT.open(request).close()


def content(key: str) -> bytes:
    data = bytearray(SIZE)
    Keystream(key).readinto_at(0, data)
    return bytes(data)


@pytest.fixture(scope="module")
def keys(target: Target) -> list[str]:
    """Objects that were written by the JSON API."""
    made = [
        object_key(prefix="sbench/", run_id="r", index=0, launch=0, number=number, size=SIZE)
        for number in range(NUMBER)
    ]
    for key in made:
        query = f"uploadType=media&name={quote(key, safe='')}"
        reported(f"{target.endpoint_url}/upload/storage/v1/b/test/o?{query}", content(key))
    return sorted(made)


def test_existing_objects_are_read_and_listed(target: Target, keys: list[str]) -> None:
    with closing(open_client(target, Transfer())) as client:
        for key in keys:
            whole, part = Collector(), Collector()
            client.get(key, whole, PatientMeter())
            client.get(key, part, PatientMeter(), offset=1000, length=70_000)
            assert whole.joined() == content(key)
            assert part.joined() == content(key)[1000:71_000]
            assert client.head(key, PatientMeter()) == SIZE
        assert client.list_keys("sbench/", "", PatientMeter()) == (keys, False)
        assert client.list_keys("sbench/", keys[1], PatientMeter()) == (keys[2:], False)


def test_what_is_not_there_is_not_found(target: Target) -> None:
    for here in (target, replace(target, bucket="nowhere")):
        with closing(open_client(here, Transfer())) as client, pytest.raises(NotFound):
            client.get("sbench/none", Collector(), PatientMeter())
