"""Versions that a bucket keeps are counted, and deleted on request."""

import json
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from serverless_bench.driver import clean
from serverless_bench.driver.boto import open_s3
from serverless_bench.driver.run import run_job
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from serverless_bench.job.workload import Load
from tests.commands.command import Sbench
from tests.house.members import uses
from tests.stores import servers
from tests.stores.servers import Server, credentials


@pytest.fixture(scope="module")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with servers.moto(tmp_path_factory.mktemp("moto")) as server, credentials(server.environment):
        yield server


@pytest.fixture
def sbench(tmp_path: Path, moto: Server) -> Sbench:
    return Sbench(tmp_path, {**moto.environment, "AWS_ENDPOINT_URL": moto.endpoint_url})


@pytest.fixture
def versioned(moto: Server) -> Iterator[str]:
    """A bucket in which somebody else has an object with two versions."""
    name = f"v{uuid.uuid4().hex}"
    s3 = open_s3(Target(bucket=name, endpoint_url=moto.endpoint_url, region="us-east-1"))
    s3.create_bucket(Bucket=name)
    s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    for body in (b"one", b"two"):
        s3.put_object(Bucket=name, Key="sbench/theirs", Body=body)
    yield name
    assert sum(key == "sbench/theirs" for key, _ in versions(moto, name)) == 2


def versions(moto: Server, bucket: str) -> list[tuple[str, int | None]]:
    """Return key and size of all versions; the size of a delete marker is None."""
    s3 = open_s3(Target(bucket=bucket, endpoint_url=moto.endpoint_url, region="us-east-1"))
    listed = s3.list_object_versions(Bucket=bucket)
    kept = [(one["Key"], one["Size"]) for one in listed.get("Versions", ())]
    return [*kept, *((one["Key"], None) for one in listed.get("DeleteMarkers", ()))]


def test_what_a_bucket_keeps_is_said_counted_and_deleted_on_request(
    sbench: Sbench, moto: Server, versioned: str
) -> None:
    to = ("--bucket", versioned, "--number", 4, "--size", "1MiB", "--executor", "inline")
    done = sbench("write", *to, "--name", "w")
    assert done.code == 0
    text = f"note: bucket '{versioned}' keeps versions: objects deleted by sbench clean still cost"
    assert text in done.err
    done = sbench("clean", "w")
    assert done.code == 6
    assert "4 versions of its objects still cost (4 MiB)" in done.out
    assert "hint: sbench clean w --versions" in done.err
    assert len([size for _, size in versions(moto, versioned) if size is None]) == 4
    done = sbench("clean", "w", "--versions")
    assert done.code == 0
    assert "deleted 8 versions and delete markers for good" in done.out
    assert {key for key, _ in versions(moto, versioned)} == {"sbench/theirs"}


@uses("feature remote")
def test_versions_of_overwritten_objects_and_of_claims_go_as_well(
    moto: Server, versioned: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clean, "_MARGIN_S", 0.0)
    target = Target(bucket=versioned, endpoint_url=moto.endpoint_url)
    control = replace(target, prefix="sbench-control/")
    mix = Load(mix=(("put", 1.0), ("delete", 1.0)), operations=20)
    job = JobSpec(
        workload="mixed", target=target, control=control, executor="inline", load=mix,
        number=1, objects=3, size=100, options={"start_timeout": 0.001},
    )  # fmt: skip
    run = run_job(job, tmp_path / "run")
    s3 = open_s3(replace(target, region="us-east-1"))
    claim = f"sbench-control/{run.run_id}/claims/00000000/0"
    for body in (json.dumps({"run_id": run.run_id}), "somebody else's"):
        s3.put_object(Bucket=versioned, Key=claim, Body=body.encode())
    assert len(versions(moto, versioned)) > 10
    cleaned = clean.clean(run.path, versions=True)
    # If another user overwrote a claim, that version and the claim remain.
    assert cleaned.deleted.foreign == [claim]
    assert {key for key, _ in versions(moto, versioned)} == {"sbench/theirs", claim}
    assert cleaned.kept.count == 1
