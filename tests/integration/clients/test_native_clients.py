"""Libraries that make requests, attempts and threads of their own, with scripted servers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from serverless_bench.base.errors import (
    BadResponse,
    OperationError,
    PluginError,
    UsageError,
    WrongRegion,
)
from serverless_bench.base.units import MIB
from serverless_bench.clients import open_client
from serverless_bench.clients.base import Client
from serverless_bench.features.s3dlio import client as s3dlio
from serverless_bench.features.testing.client_parts import Collector, PatientMeter, RangeOf, content
from serverless_bench.job.target import Addressing, Target, Transfer
from tests.commands.command import Sbench
from tests.house.members import uses
from tests.stores import faulty as fault
from tests.stores.faulty import Answer, Exchange, FaultServer
from tests.stores.servers import KEYS

SIZE = 3 * MIB + 5
KEY = f"{'0' * 32}.{SIZE}"


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


def opened(server: FaultServer, name: str, *, timeout_s: float = 20, **options: object) -> Client:
    target = Target(
        client=name,
        bucket="bucket",
        endpoint_url=server.endpoint_url,
        client_option=tuple((name, str(value)) for name, value in options.items()),
    )
    return open_client(target, Transfer(timeout=timeout_s))


def ranged(exchange: Exchange) -> bool:
    """Answer a get of a range as S3 does."""
    data = exchange.content()
    first, _, last = exchange.headers["range"].removeprefix("bytes=").partition("-")
    piece = data[int(first) : int(last) + 1]
    where = f"bytes {first}-{int(first) + len(piece) - 1}/{len(data)}"
    exchange.say(206, piece, {"Content-Range": where, "ETag": '"etag"'})
    return True


FAULTS = [
    pytest.param(fault.fails(503, "SlowDown"), "throttled", id="slow down"),
    pytest.param(fault.fails(500, "InternalError"), "server_error", id="500"),
    pytest.param(fault.fails(404, "NoSuchKey"), "not_found", id="no such key"),
    pytest.param(fault.fails(403, "AccessDenied"), "access_denied", id="denied"),
    pytest.param(fault.resets_after(0), "connection_error", id="reset"),
]


@pytest.mark.parametrize(("answer", "error"), FAULTS)
@pytest.mark.parametrize(("name", "attempts"), [("awscrt", 1), ("s3torchconnector", 2)])
def test_a_fault_has_its_word(name: str, attempts: int, answer: Answer, error: str) -> None:
    with FaultServer([answer] * 9) as server:
        client = opened(server, name)
        with pytest.raises(OperationError) as caught:
            client.get(KEY, Collector(), PatientMeter())
        client.close()
    assert caught.value.code == error
    assert 1 <= len(server.seen) <= attempts


def test_a_missing_answer_ends_by_the_timeout() -> None:
    with FaultServer([fault.stalls_after(MIB)]) as server:
        client = opened(server, "awscrt", timeout_s=0.5, split="no")
        with pytest.raises(OperationError) as caught:
            client.get(KEY, Collector(), PatientMeter())
        client.close()
    assert caught.value.code == "timeout"


def test_an_early_end_is_a_lost_connection() -> None:
    with FaultServer([fault.truncates_after(MIB)]) as server:
        client = opened(server, "awscrt", split="no")
        with pytest.raises(OperationError) as caught:
            client.get(KEY, Collector(), PatientMeter())
        client.close()
    assert caught.value.code == "connection_error"


@pytest.mark.parametrize(("split", "requests"), [("yes", 4), ("no", 1)])
def test_the_runtime_splits_a_put_unless_told_not_to(split: str, requests: int) -> None:
    def answer(exchange: Exchange) -> bool:
        exchange.drain()
        kind = "InitiateMultipartUploadResult"
        started = f"<{kind}><UploadId>1</UploadId></{kind}>".encode()
        exchange.say(200, started if "uploads" in exchange.path else b"", {"ETag": '"etag"'})
        return True

    size = 6 * MIB
    with FaultServer([answer] * 9) as server:
        client = opened(server, "awscrt", part_mb=5, split=split)
        meter = PatientMeter()
        client.put(KEY, RangeOf(KEY, 0, size), meter)
        client.close()
    assert len(server.seen) == requests
    assert meter.bytes == size


def test_an_ignored_range_is_a_bad_answer() -> None:
    with FaultServer([fault.works]) as server:
        client = opened(server, "awscrt", split="no")
        with pytest.raises(BadResponse):
            client.get(KEY, Collector(), PatientMeter(), offset=1, length=10)
        client.close()


def test_a_client_follows_the_stores_redirects() -> None:
    moved = fault.fails(301, "PermanentRedirect", **{"x-amz-bucket-region": "eu-1"})
    with FaultServer([moved, ranged]) as server:
        client = opened(server, "awscrt")
        with pytest.raises(WrongRegion) as caught:
            client.get(KEY, Collector(), PatientMeter())
        client.move(region=caught.value.region, endpoint_url=server.endpoint_url)
        sink = Collector()
        client.get(KEY, sink, PatientMeter())
        client.close()
    assert sink.joined() == content(KEY, SIZE)


PUT_ONE = """
import sys
from serverless_bench.clients import open_client
from serverless_bench.job.target import Transfer
from serverless_bench.job.target import Target
from serverless_bench.features.testing.client_parts import RangeOf, PatientMeter
name, url, *options = sys.argv[1:]
pairs = tuple(tuple(option.split("=")) for option in options)
client = open_client(
    Target(client=name, bucket="bucket", endpoint_url=url, client_option=pairs), Transfer()
)
client.put("key", RangeOf("key", 0, 1000), PatientMeter())
"""


@pytest.mark.parametrize(
    ("name", "options", "hashed"),
    [
        ("awscrt", [], False),
        ("s3torchconnector", [], False),
        ("s3dlio", [], True),
        ("s3dlio", ["payload_signing=unsigned"], False),
    ],
)
def test_the_payload_is_hashed_as_declared(name: str, options: list[str], *, hashed: bool) -> None:
    seen: list[str] = []

    def answer(exchange: Exchange) -> bool:
        exchange.drain()
        if exchange.method == "PUT":
            seen.append(exchange.headers["x-amz-content-sha256"])
        kind = "InitiateMultipartUploadResult"
        started = f"<{kind}><UploadId>1</UploadId></{kind}>".encode()
        exchange.say(200, started if "uploads" in exchange.path else b"", {"ETag": '"etag"'})
        return True

    with FaultServer([answer] * 9) as server:
        command = [sys.executable, "-c", PUT_ONE, name, server.endpoint_url, *options]
        # One process each, because s3dlio keeps its options for the lifetime of the process.
        done = subprocess.run(command, env=os.environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [value != "UNSIGNED-PAYLOAD" for value in seen] == [hashed]


@pytest.mark.parametrize(
    "name",
    [
        "awscrt",
        "s3dlio",
        pytest.param("obstore", marks=pytest.mark.full),
        pytest.param("s3torchconnector", marks=pytest.mark.full),
    ],
)
def test_threads_of_a_library_survive_the_fork_of_a_worker(sbench: Sbench, name: str) -> None:
    done = sbench("write", "--client", name, "--number", "2", "--mb", "1", "--executor", "local")
    assert (done.code, done.err) == (0, "")


def test_s3dlio_has_one_setting_per_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3dlio, "_settings", (os.getpid(), {"AWS_REGION": "elsewhere"}))
    with FaultServer() as server, pytest.raises(PluginError, match="has started"):
        opened(server, "s3dlio")


def test_s3dlio_has_no_buckets_in_host_names() -> None:
    target = Target(
        client="s3dlio", bucket="b", endpoint_url="http://store", addressing=Addressing.VIRTUAL
    )
    with pytest.raises(UsageError, match="into the path"):
        open_client(target, Transfer())


@uses("client awscrt")
def test_an_invalid_bundle_is_a_usage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "none.pem"))
    target = Target(client="awscrt", bucket="b", endpoint_url="https://127.0.0.1:1")
    with pytest.raises(UsageError, match=r"none\.pem"):
        open_client(target, Transfer())
