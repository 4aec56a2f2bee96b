"""``sbench doctor`` and the stack that it reads, against moto's AWS."""

import io
import json
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from serverless_bench.base.clock import utc_stamp, wall_ns
from serverless_bench.base.errors import ExecutorError, UsageError
from serverless_bench.features.aws.account import read_stack
from serverless_bench.features.aws.stack.template import DeployedFunction
from serverless_bench.features.doctor import base
from tests.clouds.aws_clients import open_client
from tests.clouds.lambda_hosts import NAME, running_host
from tests.commands.command import Done, Sbench
from tests.stores.servers import Server, credentials

OUTPUTS = {"Region": "us-east-1"}
BLOCKS = ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")
ROLE = {"Version": "2012-10-17", "Statement": []}


@dataclass(frozen=True)
class Cloud:
    """moto, with requests as to AWS."""

    server: Server

    @property
    def environment(self) -> dict[str, str]:
        return {
            **self.server.environment,
            "AWS_ENDPOINT_URL": self.server.endpoint_url,
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    def client(self, service: str) -> Any:
        with credentials(self.environment):
            return open_client(service)

    def deploy(
        self,
        name: str,
        *,
        functions: Sequence[str] = (),
        leave_out: str = "",
        data_region: str = "us-east-1",
    ) -> dict[str, str]:
        """Deploy a stack like sbench's: two buckets, and outputs that name functions."""
        bucket = {"Type": "AWS::S3::Bucket"}
        outputs: dict[str, Any] = {
            **OUTPUTS,
            "DataRegion": data_region,
            **{
                f"Function{number}": value
                for number, value in enumerate(functions or [f"{name}-worker 1769 arm64"], start=1)
            },
            "DataBucket": {"Ref": "Data"},
            "ControlBucket": {"Ref": "Control"},
        }
        outputs.pop(leave_out, None)
        template = {
            "Resources": {"Data": bucket, "Control": bucket},
            "Outputs": {key: {"Value": value} for key, value in outputs.items()},
        }
        client = self.client("cloudformation")
        client.create_stack(StackName=name, TemplateBody=json.dumps(template))
        described = client.describe_stacks(StackName=name)["Stacks"][0]
        return {o["OutputKey"]: o["OutputValue"] for o in described["Outputs"]}

    def make_function(self, name: str, *, version: str, **more: Any) -> None:
        iam = self.client("iam")
        role = iam.create_role(RoleName=f"{name}-role", AssumeRolePolicyDocument=json.dumps(ROLE))
        code = io.BytesIO()
        with zipfile.ZipFile(code, "w") as archive:
            archive.writestr("handler.py", "")
        self.client("lambda").create_function(
            FunctionName=name,
            Runtime="python3.11",
            Handler="handler.handler",
            Role=role["Role"]["Arn"],
            Code={"ZipFile": code.getvalue()},
            MemorySize=1769,
            Architectures=["arm64"],
            Environment={"Variables": {"SBENCH_VERSION": version}},
            **more,
        )


@pytest.fixture(scope="module")
def cloud(moto: Server) -> Cloud:
    return Cloud(moto)


@pytest.fixture
def inside(cloud: Cloud) -> Iterator[None]:
    with credentials(cloud.environment):
        yield


def lines(done: Done, level: str) -> list[str]:
    return [line for line in done.out.splitlines() if line.startswith(level)]


def test_this_machine_alone(sbench: Sbench) -> None:
    done = sbench("doctor")
    assert (done.code, done.err) == (0, "")
    assert lines(done, "fail") == []
    assert "embedded store: installed" in done.out
    assert "credentials" not in done.out


def test_every_extra_that_lacks_a_library_is_named(
    sbench: Sbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "extras: " not in sbench("doctor").out
    absent = {"aiohttp", "azure-storage-blob", "pyyaml", "scipy", "obstore"}
    monkeypatch.setattr(base, "version_of", lambda name: None if name in absent else "1")
    named = "azure, convert, gcs, lambda-host, obstore, ome-zarr, scipy, zarr"
    assert f"ok    extras: not installed: {named}; " in sbench("doctor").out


def test_a_healthy_stack(sbench: Sbench, cloud: Cloud) -> None:
    names = cloud.deploy("healthy")
    cloud.make_function("healthy-worker", version="0.1.0", Timeout=900)
    client = cloud.client("lambda")
    client.put_function_event_invoke_config(
        FunctionName="healthy-worker", MaximumRetryAttempts=0, MaximumEventAgeInSeconds=60
    )
    rule = {
        "ID": "expire",
        "Status": "Enabled",
        "Filter": {"Prefix": ""},
        "Expiration": {"Days": 1},
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1},
    }
    s3 = cloud.client("s3")
    for bucket in (names["DataBucket"], names["ControlBucket"]):
        s3.put_bucket_lifecycle_configuration(
            Bucket=bucket, LifecycleConfiguration={"Rules": [rule]}
        )
        s3.put_public_access_block(
            Bucket=bucket, PublicAccessBlockConfiguration=dict.fromkeys(BLOCKS, True)
        )
    done = sbench("doctor", "--no-probe", "--stack", "healthy", "--write-test", **cloud.environment)
    assert (done.code, done.err) == (0, ""), done.out
    # moto has no GetAccountSettings.
    assert len(lines(done, "warn")) == 1, done.out
    (quota,) = lines(done, "warn")
    assert "quota" in quota
    for text in (
        "credentials: from env; they do not expire",
        "clock: off by",
        "network: 625 Mbps for each function (AWS",
        "function healthy-worker: 1769 MB, arm64, python3.11, Active",
        "public access is blocked",
        "keeps no versions",
        "replicates no objects",
        "expire",
        "honours If-None-Match",
    ):
        assert text in done.out
    assert s3.list_objects_v2(Bucket=names["ControlBucket"])["KeyCount"] == 0, "nothing is left"


def test_a_sick_stack(sbench: Sbench, cloud: Cloud) -> None:
    names = cloud.deploy("sick")
    cloud.make_function("sick-worker", version="0.0.9", Timeout=3)
    s3 = cloud.client("s3")
    s3.put_bucket_versioning(
        Bucket=names["DataBucket"], VersioningConfiguration={"Status": "Enabled"}
    )
    to = f"arn:aws:s3:::{names['ControlBucket']}"
    rule = {"Status": "Enabled", "Destination": {"Bucket": to}}
    s3.put_bucket_versioning(
        Bucket=names["ControlBucket"], VersioningConfiguration={"Status": "Enabled"}
    )
    s3.put_bucket_replication(
        Bucket=names["DataBucket"],
        ReplicationConfiguration={"Role": "arn:aws:iam::123456789012:role/r", "Rules": [rule]},
    )
    s3.delete_bucket(Bucket=names["ControlBucket"])
    cloud.client("lambda").put_function_concurrency(
        FunctionName="sick-worker", ReservedConcurrentExecutions=0
    )
    done = sbench(
        "doctor", "--no-probe", "--stack", "sick", "--format", "json", **cloud.environment
    )
    assert done.code == 13
    found = {(f["level"], f["text"]) for f in done.json["findings"]}
    assert not done.json["ok"]
    assert ("fail", "does not exist") in found
    assert ("fail", "cannot run: its reserved concurrency is 0") in found
    for text in (
        "AWS stops it after 3 s",
        "AWS retries failed events twice",
        "an event may arrive 21600 s late",
        "has sbench 0.0.9, but this is 0.1.0",
        "public access is not blocked",
        "keeps versions: deleted objects are still billed",
        "replicates its objects: replicas are billed, and `sbench clean` leaves them",
        "abandoned objects and open uploads do not expire and are billed",
    ):
        assert ("warn", text) in found
    assert all(f["hint"] for f in done.json["findings"] if f["level"] != "ok")


def test_a_foreign_bucket_is_reported(sbench: Sbench, cloud: Cloud) -> None:
    """moto checks no owner; requests to other stores have none."""
    done = sbench(
        *("doctor", "--bucket", "test", "--endpoint-url", cloud.server.endpoint_url),
        **cloud.server.environment,
    )
    assert done.code == 0, done.out
    assert "identity" not in done.out
    absent = sbench("doctor", "--bucket", "absent-1", **cloud.environment)
    assert absent.code == 13
    assert (
        "bucket absent-1: does not exist -> sbench write --create-bucket creates it" in absent.out
    )


def test_credentials_that_end_too_soon(sbench: Sbench, cloud: Cloud) -> None:
    def asked(minutes: int) -> Done:
        until = utc_stamp(wall_ns() + minutes * 60 * 10**9, separators=True)
        return sbench(
            *("doctor", "--bucket", "test", "--run-duration", 600),
            **cloud.environment,
            AWS_SESSION_TOKEN="token",
            AWS_CREDENTIAL_EXPIRATION=until,
        )

    assert "renew them" in lines(asked(18), "warn")[0]
    assert "or more" in next(line for line in lines(asked(30), "ok") if "credentials:" in line)


def test_missing_credentials_and_an_unreachable_store_are_reported(sbench: Sbench) -> None:
    alone = replace(sbench, environment={})
    done = alone("doctor", "--function", "f", AWS_ENDPOINT_URL="http://127.0.0.1:9")
    assert done.code == 13
    assert "credentials: there are none" in done.out
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    silent = alone("doctor", "--function", "f", AWS_ENDPOINT_URL="http://127.0.0.1:9", **keys)
    assert silent.code == 13
    assert len(lines(silent, "fail")) >= 2
    no_profile = alone("doctor", "--function", "f", AWS_PROFILE="nobody")
    assert no_profile.code == 13
    assert "nobody" in no_profile.out


def test_a_store_without_the_settings_of_aws_causes_no_warning(
    sbench: Sbench, rclone: Server
) -> None:
    """And conditional writes are what functions on AWS Lambda need."""
    flags = ("--endpoint-url", rclone.endpoint_url, "--bucket", rclone.bucket)
    found = sbench("doctor", *flags, "--write-test", **rclone.environment)
    assert (found.code, "warn  bucket" in found.out) == (0, False), found.out
    assert "answers no requests about public access, " in found.out
    assert "ignores If-None-Match" in found.out


def test_a_stack_is_read(cloud: Cloud, inside: None) -> None:
    names = cloud.deploy("mine")
    stack = read_stack("mine")
    (function,) = stack.functions
    assert function == DeployedFunction(name="mine-worker", memory_mib=1769, architecture="arm64")
    assert (stack.data_bucket, stack.control_bucket) == (
        names["DataBucket"],
        names["ControlBucket"],
    )
    assert (stack.region, stack.data_region) == ("us-east-1", "us-east-1")


def test_stacks_that_cannot_be_used(cloud: Cloud, inside: None) -> None:
    with pytest.raises(UsageError, match="no stack 'nobodys'"):
        read_stack("nobodys")
    cloud.deploy("old", leave_out="ControlBucket")
    with pytest.raises(ExecutorError, match="no output ControlBucket"):
        read_stack("old")
    cloud.deploy("idle", leave_out="Function1")
    with pytest.raises(ExecutorError, match="no output Function1"):
        read_stack("idle")


def test_a_plan_asks_the_stack(sbench: Sbench, cloud: Cloud) -> None:
    cloud.deploy("planned")
    cloud.make_function("planned-worker", version="0.1.0")
    cloud.client("lambda").put_function_concurrency(
        FunctionName="planned-worker", ReservedConcurrentExecutions=50
    )
    done = sbench(
        *("plan", "--stack", "planned", "--format", "json", "write", "--number", 100, "--mb", 8),
        **cloud.environment,
    )
    assert done.code == 0, done.err
    assert done.json["quota_from"] == "reserved for planned-worker"
    assert done.json["forecast"]["batches"] == 2
    assert done.json["expected"]["usage"]["architecture"] == "arm64"


def test_a_function_reports_its_own_size(sbench: Sbench, cloud: Cloud) -> None:
    with running_host(cloud.server.environment) as host:
        where = ("--bucket", "test", "--endpoint-url", cloud.server.endpoint_url)
        done = sbench("doctor", "--function", NAME, *where, **host.environment)
        nobody = sbench("doctor", "--function", "nobody", *where, **host.environment)
        status = host.status()
    assert done.code == 0, done.out
    assert f"ok    function {NAME}: answers from us-east-1, in no VPC: Python 3" in done.out
    assert "with the code of this sbench; may claim, put and get" in done.out
    assert (status["accepted"], status["events"]) == (1, 0)
    listed = cloud.client("s3").list_objects_v2(Bucket="test").get("Contents", ())
    assert not [one["Key"] for one in listed if "probe" in one["Key"]], "nothing is left"
    assert nobody.code == 13
    assert "fail  function nobody: function 'nobody' cannot be invoked" in nobody.out


def test_a_lambda_host_is_looked_at_as_aws_is(sbench: Sbench) -> None:
    with running_host(flags=("--scripted", "--concurrency", 500)) as host:
        done = sbench("doctor", "--function", NAME, **host.environment)
    assert (done.code, done.err) == (0, ""), done.out
    assert "warn  quota: concurrency 500" in done.out
    assert "500 unreserved (400 reservable)" in done.out
    assert "3,008 MB" in done.out
    assert f"ok    function {NAME}: 1769 MB" in done.out
    assert "ok    identity: arn:aws:" in done.out
    assert "ok    clock: off by" in done.out
