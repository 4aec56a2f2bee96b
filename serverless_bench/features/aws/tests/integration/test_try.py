"""``sbench aws try`` on the Lambda host, with buckets of moto; ``test_stack`` has LocalStack."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from serverless_bench.features import aws
from tests.clouds.aws_clients import open_client
from tests.clouds.lambda_hosts import NAME, LambdaHost, running_host
from tests.commands.command import Sbench
from tests.commands.terminal import on_terminal
from tests.house.members import uses
from tests.stores.servers import Server, credentials

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="functions need Linux")

DOCS = Path(aws.__file__).with_name("aws-try.txt")
TRY = ("aws", "try", "--function", NAME, "--mb", 1)


@pytest.fixture(scope="module")
def host(moto: Server) -> Iterator[LambdaHost]:
    with running_host(moto.environment) as running:
        yield running


@pytest.fixture
def s3(moto: Server) -> Any:
    with credentials(moto.environment):
        return open_client("s3", endpoint_url=moto.endpoint_url, region_name="us-east-1")


@pytest.fixture
def where(moto: Server) -> tuple[str, ...]:
    return ("--bucket", moto.bucket, "--endpoint-url", moto.endpoint_url)


def launched(host: LambdaHost) -> int:
    """Return how many events and calls a host has accepted."""
    return int(host.status()["accepted"])


def test_it_deletes_its_objects_and_ends_with_a_page(
    sbench: Sbench, host: LambdaHost, where: tuple[str, ...], s3: Any, moto: Server
) -> None:
    before = s3.list_objects_v2(Bucket=moto.bucket)["KeyCount"]
    done = sbench(*TRY, *where, "--yes", **host.environment)
    assert done.code == 0, done.out + done.err
    assert s3.list_objects_v2(Bucket=moto.bucket)["KeyCount"] == before
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 54
    assert done.err.startswith("launch 22 functions for at most $0.009731")
    output = " ".join(done.out.split())
    for text in (
        "identity arn:aws:",
        "quota concurrency 1000 in us-east-1",
        f"function {NAME}: 1769 MB",
        "in no VPC",
        "bucket test: there",
        "encrypted by S3",
        "has no Object Lock",
        "functions 2, 2 ok",
        "20, 20 ok",
        "A run of 1,000 functions that write 1 GiB each",
        "functions 1,000, concurrency 1,000",
        "78.12 GB/s sustained",
        "prices of 2026-10-02, us-east-1",
        "problems",
    ):
        assert text in output
    assert titles(done.out) == titles(DOCS.read_text())


def titles(page: str) -> list[str]:
    """Return the headings of the page in a text, and the titles of the rows below the first."""
    lines = page.splitlines()
    below = lines[lines.index("Measured") :]
    return [line[:17].rstrip() for line in below if line[:1].strip()]


@uses("client boto3")
def test_the_document_has_the_measurements_and_a_plan(
    sbench: Sbench, host: LambdaHost, where: tuple[str, ...]
) -> None:
    before = launched(host)
    flags = ("--yes", "--keep", "--client", "boto3", "--format", "json")
    done = sbench(*TRY, *where, *flags, **host.environment)
    assert done.code == 0, done.err
    headers = [json.loads(path.read_text()) for path in sbench.directory.glob("*/*/*/run.json")]
    assert [header["job"]["target"]["client"] for header in headers] == ["boto3"] * 2
    # The first run probes its function.
    assert launched(host) - before == 1 + 2 + 20
    two, twenty = done.json["measured"]
    assert [run["functions"] for run in (two, twenty)] == [two["ok"], twenty["ok"]] == [2, 20]
    assert 0 < two["total"] + twenty["total"] < done.json["at_most"] < 0.01
    assert twenty["start_s"]["n"] == 20
    assert twenty["launches_per_s"] > 0
    assert twenty["lambda_round_trip_s"] > 0
    plan = done.json["plan"]
    assert (plan["functions"], plan["concurrency"]) == (1000, 1000)
    assert plan["expected"]["bytes"] == 1000 << 30
    assert plan["total"] > 0


def test_a_low_quota_and_kms_are_among_the_problems(sbench: Sbench, moto: Server, s3: Any) -> None:
    s3.create_bucket(Bucket="secret")
    by_kms = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms"}}
    s3.put_bucket_encryption(Bucket="secret", ServerSideEncryptionConfiguration={"Rules": [by_kms]})
    where = ("--bucket", "secret", "--endpoint-url", moto.endpoint_url)
    with running_host(moto.environment, ("--concurrency", 10)) as host:
        done = sbench(*TRY, *where, "--yes", "--keep", **host.environment)
    assert done.code == 0, done.err
    output = " ".join(done.out.split())
    assert "in 100 batches" in output
    assert "quota: 1000 functions exceed a concurrency of 10" in output
    assert "each request of an object also asks KMS, and is billed for it" in output


@pytest.mark.parametrize(
    ("flags", "bucket", "code", "output"),
    [
        (("--memory", 10240), "test", 12, "22 functions could cost $0.04"),
        ((), "test", 2, "cannot ask whether to launch 22 functions for at most $0.009731"),
        (("--reserved", 0), "test", 13, "cannot run: its reserved concurrency is 0"),
        ((), "locked", 13, "has Object Lock, which sbench does not support"),
        ((), "absent", 5, "bucket 'absent' does not exist"),
    ],
)
def test_a_refused_trial_is_not_launched(
    sbench: Sbench,
    moto: Server,
    s3: Any,
    flags: tuple[str | int, ...],
    bucket: str,
    code: int,
    output: str,
) -> None:
    if bucket == "locked":
        s3.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
    yes = () if code == 2 else ("--yes",)
    where = ("--bucket", bucket, "--endpoint-url", moto.endpoint_url)
    with running_host(moto.environment, ("--scripted", *flags)) as host:
        done = sbench(*TRY, *where, *yes, **host.environment)
        assert launched(host) == 0
    assert done.code == code, done.out + done.err
    assert output in done.out + done.err


def test_it_asks_on_a_terminal(tmp_path: Path, moto: Server, where: tuple[str, ...]) -> None:
    with running_host(moto.environment, ("--scripted",)) as host:
        code, out, shown = on_terminal(
            tmp_path, host.environment, *TRY, *where, prompt="[y/N]", answer="n"
        )
        assert launched(host) == 0
    assert (code, out) == (0, "")
    assert "Launch 22 functions for at most $0.009731" in shown
    assert "cancelled" in shown


def test_a_locked_bucket_is_refused_before_a_write(sbench: Sbench, moto: Server, s3: Any) -> None:
    s3.create_bucket(Bucket="kept", ObjectLockEnabledForBucket=True)
    where = ("--bucket", "kept", "--endpoint-url", moto.endpoint_url)
    done = sbench("write", *where, "--number", 1, "--size", "1KiB", **moto.environment)
    assert done.code == 5, done.err
    refusal, hint = done.err.splitlines()[-2:]
    assert refusal.startswith("sbench: bucket 'kept' has Object Lock, which sbench does not")
    assert hint == "hint: name another --bucket"
    assert s3.list_objects_v2(Bucket="kept")["KeyCount"] == 0
