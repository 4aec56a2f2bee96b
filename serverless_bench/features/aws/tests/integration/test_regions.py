"""Regions of functions and buckets, and permissions of a stack's role: checks before a launch."""

from collections.abc import Iterator

import pytest

from serverless_bench.driver.checked_job import check_job
from serverless_bench.features.aws.options import region_of_functions
from serverless_bench.features.doctor.tests.integration.test_doctor import Cloud
from serverless_bench.features.remote.driver import Remote
from serverless_bench.job.target import Target
from tests.commands.command import Sbench
from tests.house.members import uses
from tests.stores.servers import Server, credentials

FAR = "eu-west-1"
STACK = "regions"
JOB = ("--executor", "lambda", "--stack", STACK, "--number", 1, "--size", "4KiB")


@pytest.fixture(scope="module")
def cloud(moto: Server) -> Iterator[Cloud]:
    made = Cloud(moto)
    made.deploy(STACK)
    there = {"LocationConstraint": FAR}
    made.client("s3").create_bucket(Bucket="far", CreateBucketConfiguration=there)
    with credentials(made.environment):
        yield made


def test_a_bucket_in_another_region_is_refused_unless_it_is_meant(
    sbench: Sbench, cloud: Cloud
) -> None:
    done = sbench("write", *JOB, "--bucket", "far", **cloud.environment)
    assert done.code == 2, done.err
    line, hint = done.err.splitlines()
    assert f"the functions are in us-east-1, bucket 'far' is in {FAR}" in line
    assert "--function-region us-east-1" in hint
    meant = sbench(
        "write", *JOB, "--bucket", "far", "--function-region", "us-east-1", **cloud.environment
    )
    # No function has this name, so the command passed the check.
    assert meant.code == 4, meant.err
    assert "cannot be invoked" in meant.err


def test_functions_records_and_objects_have_each_their_place(cloud: Cloud) -> None:
    settings = {"workload": "write", "executor": "lambda", "stack": STACK, "number": 1}
    near = check_job({**settings, "size": "4KiB", "bucket": "far", "function_region": "us-east-1"})
    with near.open_target() as target:
        job = near.at(target)
    assert (job.target.region, region_of_functions(job)) == (FAR, "us-east-1")
    assert job.control is not None
    assert isinstance(near.place, Remote)
    assert (job.control.bucket, job.control.region) == (near.place.bucket, "us-east-1")
    elsewhere = Target(bucket="b", endpoint_url="http://store.example", region="any")
    other = check_job({**settings, "size": "4KiB", "endpoint_url": elsewhere.endpoint_url})
    control = other.at(elsewhere).control
    assert control is not None
    assert control.endpoint_url == cloud.server.endpoint_url, "the stack's bucket is not there"


@uses("workload noop")
def test_the_region_of_a_function_is_in_its_arn(cloud: Cloud) -> None:
    del cloud
    arn = f"arn:aws:lambda:{FAR}:123456789012:function:f"
    found = check_job(
        {"workload": "noop", "executor": "lambda", "function": arn, "number": 1, "bucket": "b"}
    )
    assert region_of_functions(found.job) == FAR


@pytest.mark.parametrize(
    ("command", "flags", "words"),
    [
        ("write", ("--prefix", "mine/"), "--prefix 'mine/' is not below sbench/"),
        ("write", ("--control-prefix", "mine/"), "--control-prefix 'mine/' is not below"),
        ("array", (), "the deployed function has no array library"),
    ],
)
def test_jobs_beyond_the_stacks_permissions_are_refused(
    sbench: Sbench, cloud: Cloud, command: str, flags: tuple[str, ...], words: str
) -> None:
    job = JOB if command == "write" else ("write", *JOB[:-2])
    done = sbench(command, *job, *flags, **cloud.environment)
    assert done.code == 2, done.err
    assert words in done.err
