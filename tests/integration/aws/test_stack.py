"""From ``sam deploy`` to ``sam delete``: the real template, and nothing left behind.

LocalStack is CloudFormation, S3, IAM and Lambda; functions run under the genuine
``awslambdaric``, from the zip file that ``sam build`` made, in processes.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.aws_clients import open_client
from tests.command import Sbench
from tests.localstacks import Running, running_localstack
from tests.sam import OURS, build, sam
from tests.unit.aws.test_policies import POLICIES, listed

NAME = "bench"
NUMBER, MB = 50, 8
SIZE = NUMBER * MB << 20
ARTIFACTS = "artifacts"

Open = Callable[[str], Any]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What LocalStack says: each call that it answered is a line."""
    return tmp_path_factory.mktemp("localstack") / "log"


@pytest.fixture(scope="module")
def localstack(log: Path) -> Iterator[Running]:
    with running_localstack(flags=("--log", log)) as running:
        yield running


@pytest.fixture(scope="module")
def aws(localstack: Running) -> Open:
    def connect(service: str) -> Any:
        told = localstack.environment
        return open_client(
            service,
            endpoint_url=told["AWS_ENDPOINT_URL"],
            region_name=told["AWS_DEFAULT_REGION"],
            aws_access_key_id=told["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=told["AWS_SECRET_ACCESS_KEY"],
        )

    return connect


@pytest.fixture
def sbench(tmp_path: Path, localstack: Running) -> Sbench:
    return Sbench(tmp_path, localstack.environment)


@pytest.fixture
def deploy(
    localstack: Running, aws: Open, tmp_path: Path
) -> Iterator[Callable[[], dict[str, str]]]:
    """Deploys the stack and returns its outputs."""
    aws("s3").create_bucket(Bucket=ARTIFACTS)

    def run() -> dict[str, str]:
        folder = build(tmp_path)
        where = ["--stack-name", NAME, "--s3-bucket", ARTIFACTS, "--capabilities", "CAPABILITY_IAM"]
        template = ["--template-file", str(folder / "template.yaml"), "--region", "us-east-1"]
        sam(tmp_path, "deploy", *template, *where, *OURS, environment=localstack.environment)
        (stack,) = aws("cloudformation").describe_stacks(StackName=NAME)["Stacks"]
        return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}

    yield run
    aws("s3").delete_bucket(Bucket=ARTIFACTS)


def contents(aws: Open, bucket: str) -> tuple[int, int]:
    """Return how many objects and open uploads are in a bucket."""
    objects = aws("s3").list_objects_v2(Bucket=bucket)["KeyCount"]
    return objects, len(aws("s3").list_multipart_uploads(Bucket=bucket).get("Uploads", ()))


def left(aws: Open) -> dict[str, list[str]]:
    """Return the names of everything that the account has."""
    stacks = aws("cloudformation").list_stacks()["StackSummaries"]
    return {
        "buckets": [b["Name"] for b in aws("s3").list_buckets()["Buckets"]],
        "functions": [f["FunctionName"] for f in aws("lambda").list_functions()["Functions"]],
        "log groups": [g["logGroupName"] for g in aws("logs").describe_log_groups()["logGroups"]],
        "roles": [r["RoleName"] for r in aws("iam").list_roles()["Roles"]],
        "policies": [p["PolicyName"] for p in aws("iam").list_policies(Scope="Local")["Policies"]],
        "stacks": [s["StackName"] for s in stacks if s["StackStatus"] != "DELETE_COMPLETE"],
    }


ACTIONS = {
    "s3:HeadBucket": "s3:ListBucket",
    "s3:HeadObject": "s3:GetObject",
    "s3:ListMultipartUploads": "s3:ListBucketMultipartUploads",
    "s3:ListObjectsV2": "s3:ListBucket",
    "lambda:Invoke": "lambda:InvokeFunction",
}
"""What a call needs that is not called like its action (Service Authorization Reference)."""


def needed(log: str) -> set[str]:
    """Return the actions behind the calls in a log."""
    found = re.findall(r"AWS ([a-z0-9]+)\.(\w+) =>", log)
    calls = {f"{service}:{operation}" for service, operation in found}
    return {ACTIONS.get(call, call) for call in calls}


def allowed(*roles: str) -> set[str]:
    """Return every action that the policies of roles allow somewhere."""
    statements = [statement for role in roles for statement in POLICIES[role]]
    return {action for statement in statements for action in listed(statement["Action"])}


def test_deploy_write_read_clean_delete(
    deploy: Callable[[], dict[str, str]],
    aws: Open,
    sbench: Sbench,
    localstack: Running,
    log: Path,
) -> None:
    outputs = deploy()
    data, control = outputs["DataBucket"], outputs["ControlBucket"]
    function = aws("lambda").get_function_configuration(FunctionName=outputs["FunctionName"])
    assert function["CodeSize"] < 8e6
    events = aws("lambda").get_function_event_invoke_config(FunctionName=outputs["FunctionName"])
    assert (events["MaximumRetryAttempts"], events["MaximumEventAgeInSeconds"]) == (0, 60)

    deployed = len(log.read_text())
    flags = (
        *("--executor", "lambda", "--stack", NAME, "--number", NUMBER, "--format", "json"),
        # Deliveries that are later than this are refused, and clean waits for that.
        *("--start-timeout", 30, "--key-file", "keys"),
    )
    wrote = sbench("write", *flags, "--mb", MB, "--name", "wrote")
    assert wrote.code == 0, wrote.err
    assert (wrote.json["ok"], wrote.json["lost"]) == (NUMBER, 0)
    read = sbench("read", *flags, "--name", "read")
    assert read.code == 0, read.err
    assert read.json["verified_bytes"] == SIZE
    ran = log.read_text()[deployed:]
    # A driver that may not delete what the probe wrote leaves it to clean.
    assert needed(ran) - {"s3:DeleteObject"} <= allowed("worker", "driver")
    assert {"lambda:InvokeFunction", "s3:PutObject", "s3:GetObject"} <= needed(ran)
    assert contents(aws, data) == (NUMBER, 0)
    # A claim and a record for each of the two runs.
    assert contents(aws, control) == (4 * NUMBER, 0)
    versions = {record["version"] for record in records(aws, control)}
    assert len(versions) == 1

    before = len(log.read_text())
    for name in ("read", "wrote"):
        assert sbench("clean", f"sbench-runs/{name}").code == 0
    assert needed(log.read_text()[before:]) <= allowed("cleaner")
    assert contents(aws, data) == contents(aws, control) == (0, 0)

    where = ["--stack-name", NAME, "--s3-bucket", ARTIFACTS, "--region", "us-east-1"]
    sam(sbench.directory, "delete", "--no-prompts", *where, environment=localstack.environment)
    assert contents(aws, ARTIFACTS) == (0, 0)
    nothing: dict[str, list[str]] = {kind: [] for kind in left(aws)}
    assert left(aws) == {**nothing, "buckets": [ARTIFACTS]}


def records(aws: Open, bucket: str) -> Iterator[dict[str, Any]]:
    """Yield what the functions left."""
    for entry in aws("s3").list_objects_v2(Bucket=bucket)["Contents"]:
        if "/records/" in entry["Key"]:
            body = aws("s3").get_object(Bucket=bucket, Key=entry["Key"])["Body"]
            yield json.loads(body.read())
