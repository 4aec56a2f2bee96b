"""A bucket whose policy demands an encryption, as companies have them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from serverless_bench.clients import CLIENTS
from serverless_bench.features.loopback.server import serving
from tests.clouds.lambda_hosts import NAME, running_host
from tests.commands.command import Apart, Sbench
from tests.house.members import EVERY_CLIENT, uses
from tests.stores.faulty import Exchange
from tests.stores.hostile import forward, hostile, says
from tests.stores.servers import KEYS

KEY = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab"
SSE = ("x-amz-server-side-encryption", "x-amz-server-side-encryption-aws-kms-key-id")
WORDS = b"not authorized to perform: s3:PutObject with an explicit deny in a resource-based policy"
DENIED = b"<Error><Code>AccessDenied</Code><Message>" + WORDS + b"</Message></Error>"
COPIED = (
    b"<CopyObjectResult><ETag>e</ETag><LastModified>2026-01-01T00:00:00Z</LastModified>"
    b"</CopyObjectResult>"
)
ABLE = tuple(name.split()[1] for name in EVERY_CLIENT)


def creates(request: Exchange) -> bool:
    """Return whether a request creates an object, or begins the upload of its parts."""
    query = request.path.partition("?")[2]
    return "uploads" in query if request.method == "POST" else request.method == "PUT" and not query


def breaks_policy(request: Exchange) -> bool:
    """Return whether S3 denies the request, or rejects the header where it does not belong."""
    wanted = ("aws:kms", KEY) if creates(request) else (None, None)
    return tuple(map(request.headers.get, SSE)) != wanted


@pytest.fixture
def bucket() -> Iterator[tuple[str, ...]]:
    """Flags for a bucket that demands encryption by a key."""
    with serving() as store:
        denying, copying = says(403, DENIED), says(200, COPIED)

        def answer(request: Exchange) -> bool:
            if breaks_policy(request):
                return denying(request)
            # The store keeps no data that it could copy.
            copies = "x-amz-copy-source" in request.headers
            return copying(request) if copies else forward(request, store.endpoint_url)

        with hostile(answer) as proxy:
            yield "--bucket", "any", "--endpoint-url", proxy.endpoint_url, "--number", "2"


@uses(*EVERY_CLIENT)
@pytest.mark.parametrize("client", ABLE)
def test_clients_ask_for_the_encryption_or_are_rejected(
    tmp_path: Path, bucket: tuple[str, ...], client: str
) -> None:
    sbench = Sbench(tmp_path, KEYS)
    info = CLIENTS.load(client).info
    parts = ("--part-size", "5MiB") if "multipart" in info.operations else ()
    write = ("write", *bucket, "--client", client, "--size", "6MiB", *parts)
    done = sbench(*write, "--sse", f"aws:kms:{KEY}")
    if not info.encrypts:
        assert done.code == 2
        assert f"--sse is nothing that --client {client} sends" in done.err
        return
    assert done.code == 0, done.out + done.err
    assert "2 of 2 functions ok" in done.out
    without = sbench(*write)
    assert without.code == 6
    assert "access_denied" in without.out
    if "copy" in info.operations:
        mixed = ("mixed", *bucket, "--client", client, "--size", "1KiB", "--mix", "copy=1")
        copied = sbench(*mixed, "--operations", 4, "--sse", f"aws:kms:{KEY}")
        assert copied.code == 0, copied.out + copied.err


@uses("client awscrt", "client minio", "client obstore")
@pytest.mark.parametrize(
    ("client", "option"),
    [("awscrt", "part_mb=5"), ("minio", "part_mb=5"), ("obstore", "multipart=yes")],
)
def test_parts_of_a_library_have_it_at_their_beginning(
    tmp_path: Path, bucket: tuple[str, ...], client: str, option: str
) -> None:
    how = ("--client", client, "--client-option", option, "--sse", f"aws:kms:{KEY}")
    done = Sbench(tmp_path, KEYS)("write", *bucket, *how, "--size", "16MiB")
    assert done.code == 0, done.out + done.err


@uses("feature lambda_host", "feature barrier")
def test_claims_and_records_are_encrypted_too(tmp_path: Path, bucket: tuple[str, ...]) -> None:
    sbench = Sbench(tmp_path, KEYS)
    with running_host() as host:
        where = (*bucket, "--executor", "lambda", "--function", NAME, "--size", "1KiB")
        done = sbench(
            *("write", *where, "--barrier", "1", "--sse", f"aws:kms:{KEY}"), **host.environment
        )
        without = sbench("write", *where, **host.environment)
    assert done.code == 0, done.out + done.err
    assert "2 of 2 functions ok" in done.out
    assert without.code == 4
    assert "put if absent in bucket any: AccessDenied" in without.err


@uses("executor workers")
def test_events_and_what_workers_write_are_encrypted_too(
    tmp_path: Path, bucket: tuple[str, ...]
) -> None:
    sbench = Apart(tmp_path, KEYS)
    with sbench.start("worker", "--control", "s3://any/control/", *bucket[2:4]) as worker:
        where = ("--executor", "workers", "--control-prefix", "s3://any/control/")
        done = sbench("write", *bucket, *where, "--size", "1KiB", "--sse", f"aws:kms:{KEY}")
        worker.terminate()
        worker.communicate()
    assert done.code == 0, done.out + done.err
    assert "2 of 2 functions ok" in done.out


def test_a_plan_counts_the_requests_to_kms(tmp_path: Path) -> None:
    sbench, plan = Sbench(tmp_path, {}), ("plan", "--format", "json")
    write = ("write", "--number", 1000, "--mb", 1)
    free = sbench(*plan, *write).json["expected"]["dollars"]
    kms = sbench(*plan, *write, "--sse", "aws:kms").json["expected"]
    assert kms["usage"]["uses_kms"]
    assert kms["dollars"]["puts"] == pytest.approx(1000 * 0.000008)
    # A claim and a record of each function, and the listings of the driver.
    assert kms["dollars"]["control"] > free["control"] + 2000 * 0.000003
    assert sbench(*plan, *write, "--sse", "AES256").json["expected"]["dollars"] == free


def test_the_test_object_of_doctor_asks_for_it(tmp_path: Path, bucket: tuple[str, ...]) -> None:
    sbench = Sbench(tmp_path, KEYS)
    look = ("doctor", *bucket[:4], "--write-test")
    done = sbench(*look, "--sse", f"aws:kms:{KEY}")
    assert "ok    bucket any: can be written" in done.out
    assert "cannot be written" in sbench(*look).out
