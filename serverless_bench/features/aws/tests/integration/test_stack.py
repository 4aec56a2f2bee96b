"""From ``sam deploy`` to ``sam delete``: the real template, and complete removal.

LocalStack is CloudFormation, S3, IAM and Lambda; functions run under the genuine
``awslambdaric``, from the zip file that ``sam build`` made, in processes.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from serverless_bench.features.aws.stack.template import THIN, functions_in
from serverless_bench.features.aws.tests.test_policies import POLICIES, ROLES, listed
from tests.clouds.aws_clients import open_client
from tests.clouds.localstacks import Running, running_localstack
from tests.clouds.sam import ARCHITECTURE, build, sam
from tests.clouds.stack_options import (
    FACTORS,
    UNKNOWN_TO_LOCALSTACK,
    data_region,
    deployed,
    name_of,
    parameters,
)
from tests.clouds.template import REGION
from tests.combinations.covering import Case
from tests.commands.command import Sbench
from tests.data.runs import long_ago
from tests.house.members import uses

pytestmark = pytest.mark.on_change(
    "serverless_bench/features/aws",
    "serverless_bench/features/aws_lambda",
    "serverless_bench/features/lambda_host",
    "serverless_bench/features/localstack",
    "serverless_bench/features/remote/delivery.py",
    "serverless_bench/features/remote/handler.py",
    "samconfig.toml",
    "template.yaml",
)

NAME = "bench"
NUMBER, MB = 50, 8
SIZE = NUMBER * MB << 20
ARTIFACTS = "artifacts"
HERE = "us-east-1"

Open = Callable[[str], Any]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """LocalStack's log, with one line per answered call."""
    return tmp_path_factory.mktemp("localstack") / "log"


@pytest.fixture(scope="module")
def localstack(log: Path) -> Iterator[Running]:
    with running_localstack(flags=("--log", log)) as running:
        yield running


@pytest.fixture(scope="module")
def aws(localstack: Running) -> Open:
    def connect(service: str) -> Any:
        return there(localstack, service, HERE)

    return connect


@pytest.fixture
def sbench(tmp_path: Path, localstack: Running) -> Sbench:
    return Sbench(tmp_path, localstack.environment)


Deploy = Callable[..., dict[str, str]]


@pytest.fixture
def deploy(localstack: Running, aws: Open, tmp_path: Path) -> Iterator[Deploy]:
    """Deploys the stack with these functions and parameters, and returns its outputs."""
    aws("s3").create_bucket(Bucket=ARTIFACTS)

    def run(*memory: int, clients: Sequence[str] = (THIN,), **parameters: str) -> dict[str, str]:
        folder = build(tmp_path, *memory, clients=clients)
        where = ["--stack-name", NAME, "--s3-bucket", ARTIFACTS, "--capabilities", "CAPABILITY_IAM"]
        template = ["--template-file", str(folder / "template.yaml"), "--region", "us-east-1"]
        values = [f"{name}={value}" for name, value in parameters.items()]
        with_values = ["--parameter-overrides", *values] if values else []
        sam(tmp_path, "deploy", *template, *where, *with_values, environment=localstack.environment)
        (stack,) = aws("cloudformation").describe_stacks(StackName=NAME)["Stacks"]
        return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}

    yield run
    # On a busy machine the client repeats the request, and the bucket is already deleted.
    s3 = aws("s3")
    with suppress(s3.exceptions.NoSuchBucket):
        s3.delete_bucket(Bucket=ARTIFACTS)


def contents(aws: Open, bucket: str, besides: str = " ") -> tuple[int, int]:
    """Return how many objects, without those with ``besides``, and open uploads a bucket has."""
    objects = aws("s3").list_objects_v2(Bucket=bucket).get("Contents", ())
    counted = sum(besides not in one["Key"] for one in objects)
    return counted, len(aws("s3").list_multipart_uploads(Bucket=bucket).get("Uploads", ()))


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
    "s3:GetBucketEncryption": "s3:GetEncryptionConfiguration",
    "s3:GetBucketLifecycleConfiguration": "s3:GetLifecycleConfiguration",
    "s3:GetBucketReplication": "s3:GetReplicationConfiguration",
    "s3:GetObjectLockConfiguration": "s3:GetBucketObjectLockConfiguration",
    "s3:GetPublicAccessBlock": "s3:GetBucketPublicAccessBlock",
    "s3:HeadBucket": "s3:ListBucket",
    "s3:HeadObject": "s3:GetObject",
    "s3:ListMultipartUploads": "s3:ListBucketMultipartUploads",
    "s3:ListObjectsV2": "s3:ListBucket",
    "lambda:Invoke": "lambda:InvokeFunction",
}
"""Permissions of calls whose names differ from the action (Service Authorization Reference)."""


def needed(log: str) -> set[str]:
    """Return the actions behind the calls in a log."""
    found = re.findall(r"AWS ([a-z0-9]+)\.(\w+) =>", log)
    calls = {f"{service}:{operation}" for service, operation in found}
    return {ACTIONS.get(call, call) for call in calls}


def allowed(*roles: str) -> set[str]:
    """Return every action that the policies of roles allow somewhere."""
    statements = [statement for role in roles for statement in POLICIES[role]]
    return {action for statement in statements for action in listed(statement["Action"])}


@uses("executor lambda")
def test_deploy_write_read_clean_delete(
    deploy: Deploy,
    aws: Open,
    sbench: Sbench,
    localstack: Running,
    log: Path,
) -> None:
    outputs = deploy()
    data, control = outputs["DataBucket"], outputs["ControlBucket"]
    (name,) = names(outputs)
    function = aws("lambda").get_function_configuration(FunctionName=name)
    assert function["CodeSize"] < 8e6
    events = aws("lambda").get_function_event_invoke_config(FunctionName=name)
    assert (events["MaximumRetryAttempts"], events["MaximumEventAgeInSeconds"]) == (0, 60)

    deployed = len(log.read_text())
    flags = (
        *("--executor", "lambda", "--stack", NAME, "--number", NUMBER, "--format", "json"),
        # Deliveries that are later than this are refused.
        *("--start-timeout", 30, "--key-file", "keys"),
    )
    wrote = sbench("write", *flags, "--mb", MB, "--name", "wrote")
    assert wrote.code == 0, wrote.err
    assert (wrote.json["ok"], wrote.json["lost"]) == (NUMBER, 0)
    read = sbench("read", *flags, "--name", "read")
    assert read.code == 0, read.err
    assert read.json["verified_bytes"] == SIZE
    ran = log.read_text()[deployed:]
    # If the driver may not delete the probe's objects, clean deletes them.
    assert needed(ran) - {"s3:DeleteObject"} <= allowed("worker", "driver")
    assert {"lambda:InvokeFunction", "s3:PutObject", "s3:GetObject"} <= needed(ran)
    assert contents(aws, data) == (NUMBER, 0)
    # A claim and a record of each function of the two runs, and their stop objects.
    assert contents(aws, control, besides="/progress/") == (4 * NUMBER + 2, 0)
    versions = {record["version"] for record in records(aws, control)}
    assert len(versions) == 1

    before = len(log.read_text())
    for name in ("read", "wrote"):
        long_ago(sbench.directory / "sbench-runs" / name)
        assert sbench("clean", f"sbench-runs/{name}").code == 0
    assert needed(log.read_text()[before:]) <= allowed("cleaner")
    assert contents(aws, data) == contents(aws, control) == (0, 0)

    before = len(log.read_text())
    tried = sbench("aws", "try", "--stack", NAME, "--mb", 1, "--yes", "--keep")
    assert tried.code == 0, tried.err
    assert max(map(len, tried.out.splitlines())) <= 80
    assert "functions 2, 2 ok" in " ".join(tried.out.split())
    for name in (data, control):
        assert f"bucket {name}: there" in " ".join(tried.out.split())
    unknown = {"servicequotas:ListServiceQuotas", "sts:GetCallerIdentity", "s3:DeleteObject"}
    assert needed(log.read_text()[before:]) - unknown <= allowed("worker", "driver")
    for run in (sbench.directory / "sbench-runs").glob("*-try-*/*"):
        long_ago(run)
        assert sbench("clean", run).code == 0
    assert contents(aws, data) == contents(aws, control) == (0, 0)

    delete(sbench, localstack)
    assert contents(aws, ARTIFACTS) == (0, 0)
    assert left(aws) == {**nothing(aws), "buckets": [ARTIFACTS]}


SIZES = (1769, 3538)
"""Memory in MiB of the functions of a deployment with several."""
CLIENTS = (THIN, "boto3")
"""Clients of the functions of that deployment."""
KEPT = {"DataRetentionDays": "7", "RecordRetentionDays": "400", "LogRetentionDays": "1"}
"""Days, in place of another runtime, which would not run here."""
ANYBODY = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}],
}
DEPLOYED = deployed()


def test_the_deployments_hold_every_value_that_localstack_knows() -> None:
    held = {item for case in DEPLOYED for item in case.items()}
    every = {(name, value) for name, values in FACTORS.items() for value in values}
    assert every - held == UNKNOWN_TO_LOCALSTACK


@uses("executor lambda", "feature ab")
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=name_of(case), marks=() if number == 0 else pytest.mark.full)
        for number, case in enumerate(DEPLOYED)
    ],
)
def test_pairs_of_options_deploy_run_and_go_without_a_trace(
    case: Case, deploy: Deploy, aws: Open, sbench: Sbench, localstack: Running, log: Path
) -> None:
    place = data_region(case).replace(REGION, HERE)
    account = aws("sts").get_caller_identity()["Account"]
    values = parameters(case, region=HERE, account=account)
    if "DataKeyArn" in values:
        values["DataKeyArn"] = values["DataKeyArn"].replace(HERE, place)
    if case["runtime"] != FACTORS["runtime"][0]:
        values |= KEPT
    own, policies = values.get("DataBucketName"), []
    if own:
        where = (
            {"CreateBucketConfiguration": {"LocationConstraint": place}} if place != HERE else {}
        )
        there(localstack, "s3", place).create_bucket(Bucket=own, **where)
    if case["boundary"] == "yes":
        aws("iam").create_policy(PolicyName="b", PolicyDocument=json.dumps(ANYBODY))
        policies = [values["PermissionsBoundary"]]
    before = in_vpcs(aws)
    many = case["functions"] == "many"
    clients = CLIENTS if case == DEPLOYED[0] else [THIN]
    outputs = deploy(*(SIZES if many else ()), clients=clients, **values)
    assert outputs["DataBucket"] == (own or outputs["DataBucket"])
    function = aws("lambda").get_function_configuration(FunctionName=names(outputs)[0])
    assert bool(function.get("VpcConfig", {}).get("SubnetIds")) == (case["vpc"] != "no")
    flags = ("--executor", "lambda", "--stack", NAME, "--start-timeout", 30)
    for client in clients:
        load = ("--number", 2, "--operations", 40, "--mb", 1, "--client", client, "--name", client)
        mixed = sbench("mixed", *flags, *load)
        assert mixed.code == 0, mixed.err
        long_ago(sbench.directory / "sbench-runs" / client)
        assert sbench("clean", f"sbench-runs/{client}").code == 0
    if case == DEPLOYED[0]:
        compare_sizes(outputs, sbench, log)
    delete(sbench, localstack)
    if own:
        s3 = there(localstack, "s3", place)
        assert s3.list_objects_v2(Bucket=own)["KeyCount"] == 0
        s3.delete_bucket(Bucket=own)
    for policy in policies:
        aws("iam").delete_policy(PolicyArn=policy)
    assert left(aws) == {**nothing(aws), "buckets": [ARTIFACTS]}
    assert in_vpcs(aws) == before


def compare_sizes(outputs: dict[str, str], sbench: Sbench, log: Path) -> None:
    """Compare the memory sizes of a deployment; the calls need no action that no policy allows."""
    small, large = names(outputs)[: len(SIZES)]
    jobs = []
    for memory in SIZES:
        job = sbench.directory / f"{memory}.toml"
        job.write_text(
            'command = "write"\nexecutor = "lambda"\nstart_timeout = 30\nnumber = 2\nmb = 1\n'
            f'stack = "{NAME}"\nmemory = {memory}\narch = "{ARCHITECTURE}"\n'
        )
        jobs.append(job)
    before = len(log.read_text())
    # Kept: otherwise `ab` would wait after each run until no delivery can be late.
    how = ("--blocks", 6, "--warm-up-blocks", 0, "--keep", "--name", "sizes", "--format", "json")
    done = sbench("ab", *jobs, *how)
    # Neither side has to be faster, and six runs may not decide.
    assert done.code in {0, 9, 10}, done.err
    assert done.json["differing"]["function"] == [[small], [large]]
    runs = sorted((sbench.directory / "sbench-runs" / "sizes").glob("[ab]/*/run.json"))
    assert len(runs) == 12
    for run in runs:
        sizes = {record["memory_mib"] for record in saved(run.parent)}
        assert sizes == {SIZES[run.parent.parent.name == "b"]}
        long_ago(run.parent)
        assert sbench("clean", run.parent).code == 0
    assert needed(log.read_text()[before:]) <= allowed(*ROLES)


def there(localstack: Running, service: str, region: str) -> Any:
    """Return a client of a region."""
    variables = localstack.environment
    return open_client(
        service,
        endpoint_url=variables["AWS_ENDPOINT_URL"],
        region_name=region,
        aws_access_key_id=variables["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=variables["AWS_SECRET_ACCESS_KEY"],
    )


def in_vpcs(aws: Open) -> dict[str, int]:
    """Return the numbers of VPC resources; an account has one VPC from the start."""
    ec2 = aws("ec2")
    return {
        "Vpcs": len(ec2.describe_vpcs()["Vpcs"]),
        "Subnets": len(ec2.describe_subnets()["Subnets"]),
        "RouteTables": len(ec2.describe_route_tables()["RouteTables"]),
        "SecurityGroups": len(ec2.describe_security_groups()["SecurityGroups"]),
        "VpcEndpoints": len(
            [e for e in ec2.describe_vpc_endpoints()["VpcEndpoints"] if e["State"] != "deleted"]
        ),
    }


def names(outputs: dict[str, str]) -> list[str]:
    """Return the names of the functions that a stack has."""
    return [one.name for one in functions_in(outputs)]


def saved(run: Path) -> list[dict[str, Any]]:
    """Return the records in a run directory."""
    lines = map(json.loads, (run / "records.jsonl").read_text().splitlines())
    return [line["record"] for line in lines if "record" in line]


def delete(sbench: Sbench, localstack: Running) -> None:
    where = ["--stack-name", NAME, "--s3-bucket", ARTIFACTS, "--region", "us-east-1"]
    sam(sbench.directory, "delete", "--no-prompts", *where, environment=localstack.environment)


def nothing(aws: Open) -> dict[str, list[str]]:
    return {kind: [] for kind in left(aws)}


def records(aws: Open, bucket: str) -> Iterator[dict[str, Any]]:
    """Yield the records of the functions."""
    for entry in aws("s3").list_objects_v2(Bucket=bucket)["Contents"]:
        if "/records/" in entry["Key"]:
            body = aws("s3").get_object(Bucket=bucket, Key=entry["Key"])["Body"]
            yield json.loads(body.read())
