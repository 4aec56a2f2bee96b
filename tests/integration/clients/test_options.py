"""Effects of the clients' options on the requests."""

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import boto3
import pytest

from serverless_bench.base.errors import DeadlineExceeded, TimedOut
from serverless_bench.base.units import MIB
from serverless_bench.clients import open_client
from serverless_bench.driver.boto import open_s3
from serverless_bench.features.testing.client_parts import (
    Collector,
    EndedMeter,
    PatientMeter,
    RangeOf,
    content,
)
from serverless_bench.job.target import Target, Transfer
from tests.commands.processes import PATIENCE_S
from tests.stores import faulty as fault
from tests.stores.faulty import Exchange, FaultServer
from tests.stores.network import certificate, server_context
from tests.stores.servers import KEYS, Server, credentials

SIZE = 100_000
KEY = f"{'0' * 32}.{SIZE}"
HASH = hashlib.sha256(content(KEY, SIZE)).hexdigest()
UNSIGNED = "UNSIGNED-PAYLOAD"


class Recorder:
    """Answers like a store, and keeps the headers of the requests."""

    def __init__(self) -> None:
        self.headers: list[dict[str, str]] = []

    def __call__(self, exchange: Exchange) -> bool:
        self.headers.append(exchange.headers)
        return fault.works(exchange)

    def __iter__(self) -> Iterator[fault.Answer]:
        while True:
            yield self


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    return Recorder()


def put(server: FaultServer, client_name: str, **options: str) -> None:
    target = Target(
        client=client_name,
        bucket="bucket",
        endpoint_url=server.endpoint_url,
        client_option=tuple(options.items()),
    )
    client = open_client(target, Transfer())
    client.put(KEY, RangeOf(KEY, 0, SIZE), PatientMeter())
    client.close()


@pytest.mark.parametrize(
    ("client_name", "asked", "sent"),
    [
        ("boto3", None, HASH),
        ("boto3", "library", HASH),
        ("boto3", "sha256", HASH),
        ("boto3", "unsigned", UNSIGNED),
        ("minio", None, HASH),
        ("minio", "sha256", HASH),
        ("minio", "unsigned", UNSIGNED),
        ("obstore", None, HASH),
        ("obstore", "sha256", HASH),
        ("obstore", "unsigned", UNSIGNED),
        ("wire", None, UNSIGNED),
        ("wire", "sha256", HASH),
    ],
)
def test_the_body_is_hashed_if_asked_for(
    recorder: Recorder, client_name: str, asked: str | None, sent: str
) -> None:
    options = {} if asked is None else {"payload_signing": asked}
    with FaultServer(recorder) as server:
        put(server, client_name, **options)
    [headers] = recorder.headers
    assert headers["x-amz-content-sha256"] == sent
    assert "content-md5" not in headers


@pytest.mark.parametrize(
    ("asked", "sent", "md5"),
    [("library", UNSIGNED, True), ("sha256", HASH, False), ("unsigned", UNSIGNED, False)],
)
def test_minio_hashes_over_https_too(
    recorder: Recorder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    asked: str,
    sent: str,
    md5: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    path = certificate(tmp_path)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(path))
    with FaultServer(recorder, context=server_context(path)) as server:
        put(server, "minio", payload_signing=asked)
    [headers] = recorder.headers
    assert headers["x-amz-content-sha256"] == sent
    assert ("content-md5" in headers) == md5


@pytest.mark.parametrize(
    ("client_name", "options", "headers"),
    [
        ("boto3", {"checksum": "when_required"}, set()),
        ("boto3", {"checksum": "when_supported"}, {"x-amz-checksum-crc32"}),
        ("obstore", {}, set()),
        ("obstore", {"checksum": "sha256"}, {"x-amz-checksum-sha256"}),
    ],
)
def test_checksums_are_chosen(
    recorder: Recorder, client_name: str, options: dict[str, str], headers: set[str]
) -> None:
    with FaultServer(recorder) as server:
        put(server, client_name, **options)
    found = {n for n in recorder.headers[0] if n.startswith("x-amz-checksum-")}
    assert {name for name in found if name != "x-amz-checksum-algorithm"} == headers


@pytest.mark.parametrize("client_name", ["awscrt", "boto3", "minio", "obstore", "wire"])
def test_the_user_agent_has_session_and_name(
    recorder: Recorder, client_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of-a-role")
    # boto3 remembers the credentials of the first client of a process.
    boto3.setup_default_session()
    with FaultServer(recorder) as server:
        put(server, client_name)
    assert recorder.headers[0]["x-amz-security-token"] == "of-a-role"
    assert "sbench-worker/" in recorder.headers[0]["user-agent"]


@pytest.fixture
def at_embedded(embedded: Server, prefix: str, stack: ExitStack) -> Target:
    stack.enter_context(credentials(embedded.environment))
    return Target(bucket=embedded.bucket, endpoint_url=embedded.endpoint_url, prefix=prefix)


OWN_PARTS = [
    ("minio", (("part_mb", "5"),)),
    ("minio", (("part_mb", "5"), ("num_parallel_uploads", "1"))),
    ("obstore", (("multipart", "yes"), ("part_mb", "6"), ("max_concurrency", "2"))),
]


@pytest.mark.parametrize(("client_name", "options"), OWN_PARTS)
def test_a_library_may_make_parts_of_its_own(
    at_embedded: Target, client_name: str, options: tuple[tuple[str, str], ...]
) -> None:
    target = replace(at_embedded, client=client_name, client_option=options)
    key, size = f"{target.prefix}k", 13 * MIB + 1
    client, meter, sink = open_client(target, Transfer()), PatientMeter(), Collector()
    client.put(key, RangeOf(key, 0, size), meter)
    client.get(key, sink, PatientMeter())
    client.close()
    assert sink.joined() == content(key, size)
    assert meter.bytes == size
    etag = open_s3(target).head_object(Bucket=target.bucket, Key=key)["ETag"]
    assert etag.strip('"').endswith("-3")


@pytest.mark.parametrize(("client_name", "options"), OWN_PARTS)
def test_a_function_can_end_within_a_library_s_own_parts(
    at_embedded: Target, client_name: str, options: tuple[tuple[str, str], ...]
) -> None:
    target = replace(at_embedded, client=client_name, client_option=options)
    key = f"{target.prefix}k"
    client = open_client(target, Transfer())
    with pytest.raises(DeadlineExceeded):
        client.put(key, RangeOf(key, 0, 13 * MIB), EndedMeter())
    client.close()


@pytest.mark.parametrize(
    ("client_name", "options", "at"),
    # minio's own threads do not report their progress, so it ends while the first part is
    # generated.
    [(*case, at) for case, at in zip(OWN_PARTS, (0, 6 * MIB, 6 * MIB), strict=True)],
)
def test_a_failed_upload_in_own_parts_leaves_no_object(
    at_embedded: Target, client_name: str, options: tuple[tuple[str, str], ...], at: int
) -> None:
    target = replace(at_embedded, client=client_name, client_option=options)
    client = open_client(target, Transfer())
    with pytest.raises(DeadlineExceeded):
        client.put(f"{target.prefix}k", RangeOf("k", 0, 13 * MIB), EndedMeter(at))
    client.close()
    listed = open_s3(target).list_objects_v2(Bucket=target.bucket, Prefix=target.prefix)
    assert "Contents" not in listed


def test_a_put_of_obstore_has_a_limit_of_its_own(recorder: Recorder) -> None:
    def sleeps(exchange: Exchange) -> bool:
        exchange.over.wait(PATIENCE_S)
        return False

    with FaultServer([sleeps]) as server, pytest.raises(TimedOut):
        put(server, "obstore", put_timeout_s="0.3")
