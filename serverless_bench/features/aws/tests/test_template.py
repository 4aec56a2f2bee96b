"""Contents of the template, and the effects of its parameters."""

import re
from pathlib import Path

import pytest
import yaml
from botocore.session import Session

import serverless_bench
from serverless_bench.base.errors import ExecutorError, UsageError
from serverless_bench.clients import CLIENTS
from serverless_bench.features.aws.account import _OUTPUTS
from serverless_bench.features.aws.stack.source import PACKAGE
from serverless_bench.features.aws.stack.template import (
    DeployedFunction,
    choose,
    functions_in,
    template,
)
from tests.clouds.template import CONTROL, DATA, FUNCTION, REGION, WORKER, Template

BOUNDARY = "arn:aws:iam::111122223333:policy/bound"
MANY = template([1769, 3538, 10_240], ["arm64", "x86_64"], copies=2, runtime="python3.14")


def test_the_function() -> None:
    function = Template().functions[WORKER]
    assert function["FunctionName"] == FUNCTION
    assert function["Handler"] == "serverless_bench.features.remote.handler.handler"
    assert function["Architectures"] == ["arm64"]
    assert (function["MemorySize"], function["Timeout"]) == (1769, 900)
    assert function["EventInvokeConfig"] == {
        "MaximumRetryAttempts": 0,
        "MaximumEventAgeInSeconds": 60,
    }
    assert function["LoggingConfig"] == {"LogFormat": "JSON", "LogGroup": f"{WORKER}Log"}
    assert function["Environment"]["Variables"]["SBENCH_VERSION"] == serverless_bench.__version__
    assert not {"VpcConfig", "ReservedConcurrentExecutions", "Layers", "Policies"} & set(function)


def test_functions_of_every_client() -> None:
    clients = [*CLIENTS]
    many = Template(template(arch=["x86_64"], copies=2, clients=clients))
    names = {one["FunctionName"]: one for one in many.functions.values()}
    assert [*names] == [
        f"{FUNCTION.replace('arm64', 'x86_64')}{'' if client == 'wire' else f'-{client}'}{copy}"
        for client in clients
        for copy in ("", "-2")
    ]
    assert [
        function["Environment"]["Variables"]["SBENCH_IMPORT_CLIENT"] for function in names.values()
    ] == [client for client in clients for _ in range(2)]
    # The makefile reads the client from the logical name.
    assert "Worker1769X8664WithBoto3Copy2" in many.functions
    deployed = functions_in({n: o["Value"] for n, o in many.outputs.items()})
    for client in clients:
        chosen = choose(deployed, client=client, memory=1769)
        assert [(one.client, one.name) for one in chosen] == [
            (client, one.name) for one in deployed if one.client == client
        ]
        assert len(chosen) == 2


def test_functions_of_every_size_and_cpu() -> None:
    many = Template(MANY)
    assert [
        (one["FunctionName"], one["MemorySize"], one["Architectures"], one["Runtime"])
        for one in many.functions.values()
    ] == [
        (f"bench-worker-{memory}-{arch}{copy}", memory, [arch], "python3.14")
        for memory in (1769, 3538, 10_240)
        for arch in ("arm64", "x86_64")
        for copy in ("", "-2")
    ]
    for name, function in many.functions.items():
        folder = Path(many.resources[name]["Metadata"]["WorkingDirectory"])
        assert folder.name == f"{function['Runtime']}-{function['Architectures'][0]}"
        assert folder.parent == Path(function["CodeUri"])


@pytest.mark.parametrize("text", [template(), MANY], ids=["one", "many"])
def test_cloudformation_takes_its_yaml(text: str) -> None:
    """CloudFormation refuses aliases, and `aws cloudformation package` only looks for code in
    functions."""
    assert not [event for event in yaml.parse(text) if getattr(event, "anchor", None)]
    source = Template(text).source
    assert "CodeUri" not in source["Globals"]["Function"]
    for name in Template(text).functions:
        code = Path(PACKAGE.parent, source["Resources"][name]["Properties"]["CodeUri"])
        assert (code / "Makefile").is_file()


def test_no_parameter_changes_the_build() -> None:
    """`sam deploy` keeps the values of the last deployment, and `sam build` uses the defaults."""
    for name in Template(MANY).functions:
        source = Template(MANY).source["Resources"][name]
        built = (
            source["Metadata"],
            *(source["Properties"][k] for k in ("Runtime", "Architectures")),
        )
        assert "Ref" not in str(built)


@pytest.mark.parametrize(("asked", "reserved"), [(0, None), (-1, None), (50, 50)])
def test_concurrency_is_reserved_on_request(asked: int, reserved: int | None) -> None:
    function = Template(ReservedConcurrency=asked).functions[WORKER]
    assert function.get("ReservedConcurrentExecutions") == reserved


@pytest.mark.parametrize(("asked", "variable"), [("false", "0"), ("true", "1")])
def test_code_of_others_is_run_on_request_alone(asked: str, variable: str) -> None:
    function = Template(AllowCode=asked).functions[WORKER]
    assert function["Environment"]["Variables"]["SBENCH_ALLOW_CODE"] == variable
    assert Template().source["Parameters"]["AllowCode"]["Default"] == "false"


@pytest.mark.parametrize("text", ["", MANY], ids=["one", "many"])
def test_every_log_is_the_functions_own_and_ends(text: str) -> None:
    made = Template(text, LogRetentionDays=1)
    for name, function in made.functions.items():
        log = made.properties(f"{name}Log")
        # This is Lambda's own default, so tools that do not know LoggingConfig use the same group.
        assert log["LogGroupName"] == f"/aws/lambda/{function['FunctionName']}"
        assert log["RetentionInDays"] == 1


@pytest.mark.parametrize(("name", "days"), [("DataBucket", 1), ("ControlBucket", 30)])
def test_buckets_are_private_encrypted_and_empty_themselves(name: str, days: int) -> None:
    bucket = Template().properties(name)
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    assert len(bucket["PublicAccessBlockConfiguration"]) == 4
    assert bucket["OwnershipControls"]["Rules"] == [{"ObjectOwnership": "BucketOwnerEnforced"}]
    (encryption,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert encryption["ServerSideEncryptionByDefault"] == {"SSEAlgorithm": "AES256"}
    (rule,) = bucket["LifecycleConfiguration"]["Rules"]
    assert (rule["Status"], rule["ExpirationInDays"]) == ("Enabled", days)
    assert rule["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}
    assert not {"VersioningConfiguration", "BucketName", "AccessControl"} & set(bucket)


def test_retention_follows_the_parameters() -> None:
    made = Template(DataRetentionDays=7, RecordRetentionDays=90)
    for name, days in (("DataBucket", 7), ("ControlBucket", 90)):
        (rule,) = made.properties(name)["LifecycleConfiguration"]["Rules"]
        assert rule["ExpirationInDays"] == days


def test_a_bucket_of_ones_own_is_used_and_left_alone() -> None:
    made = Template(DataBucketName="mine", DataRegion="us-west-2")
    assert not {"DataBucket", "DataBucketPolicy"} & set(made.resources)
    assert made.outputs["DataBucket"] == {"Value": "mine"}
    assert (made.outputs["DataRegion"], made.outputs["Region"]) == (
        {"Value": "us-west-2"},
        {"Value": REGION},
    )
    assert made.refused() == []


@pytest.mark.parametrize(
    ("parameters", "refused"),
    [
        ({"DataRegion": "us-west-2"}, ["set DataBucketName"]),
        ({"DataRegion": REGION, "DataBucketName": "mine", "Vpc": "true"}, []),
        (
            {"DataRegion": "us-west-2", "DataBucketName": "mine", "Vpc": "true"},
            ["only buckets of its own region"],
        ),
    ],
)
def test_regions_that_do_not_fit_are_refused(
    parameters: dict[str, str], refused: list[str]
) -> None:
    reported = Template(**parameters).refused()
    assert len(reported) == len(refused)
    assert all(text in whole for text, whole in zip(refused, reported, strict=True))


def test_a_vpc_only_reaches_s3() -> None:
    made = Template(MANY, Vpc="true")
    for function in made.functions.values():
        assert function["VpcConfig"] == {
            "SubnetIds": ["SubnetA", "SubnetB"],
            "SecurityGroupIds": ["SecurityGroup"],
        }
    kinds = [one["Type"].removeprefix("AWS::EC2::") for one in made.resources.values()]
    assert not {"InternetGateway", "NatGateway", "EIP", "Route"} & set(kinds)
    gateway = made.properties("Gateway")
    assert (gateway["VpcEndpointType"], gateway["ServiceName"]) == (
        "Gateway",
        f"com.amazonaws.{REGION}.s3",
    )
    tables = {made.properties(name)["RouteTableId"] for name in ("RouteA", "RouteB")}
    assert gateway["RouteTableIds"] == [*tables]
    assert made.properties("SubnetA")["AvailabilityZone"] == f"{REGION}a"
    assert made.properties("SubnetB")["AvailabilityZone"] == f"{REGION}b"
    assert not any("EC2" in one["Type"] for one in Template(MANY).resources.values())


@pytest.mark.parametrize(
    ("bucket", "vpc", "there"),
    [
        ("b--use1-az4--x-s3", "true", True),
        ("b--use1-az4--x-s3", "false", False),
        ("mine", "true", False),
        ("", "true", False),
    ],
)
def test_a_directory_bucket_has_a_gateway_of_its_own(bucket: str, vpc: str, *, there: bool) -> None:
    made = Template(Vpc=vpc, DataBucketName=bucket)
    assert ("ExpressGateway" in made.resources) is there
    if there:
        own, other = made.properties("ExpressGateway"), made.properties("Gateway")
        assert own["ServiceName"] == f"com.amazonaws.{REGION}.s3express"
        assert own["RouteTableIds"] == other["RouteTableIds"]
        (statement,) = own["PolicyDocument"]["Statement"]
        assert statement["Resource"] == f"arn:aws:s3express:{REGION}:111122223333:bucket/{bucket}"


def test_zones_without_lambda_are_avoided_by_name() -> None:
    made = Template(Vpc="true", VpcZones="us-east-1d,us-east-1f")
    zones = [made.properties(f"Subnet{which}")["AvailabilityZone"] for which in "AB"]
    assert zones == ["us-east-1d", "us-east-1f"]


def test_a_key_of_yours_encrypts_the_bucket_of_the_stack() -> None:
    key = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab"
    bucket = Template(DataKeyArn=key).properties("DataBucket")
    (encryption,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert encryption == {
        "BucketKeyEnabled": True,
        "ServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key},
    }
    pattern = Template().source["Parameters"]["DataKeyArn"]["AllowedPattern"]
    assert re.fullmatch(pattern, key)
    assert not re.fullmatch(pattern, key.replace("key/", "alias/"))


def test_data_may_be_in_every_region_that_botocore_knows() -> None:
    pattern = Template().source["Parameters"]["DataRegion"]["AllowedPattern"]
    session = Session()
    regions = [
        region
        for partition in session.get_available_partitions()
        for region in session.get_available_regions("s3", partition)
    ]
    assert {"eusc-de-east-1", "cn-north-1", "us-gov-west-1"} <= {*regions}
    assert [region for region in regions if not re.fullmatch(pattern, region)] == []


def test_no_resource_outlives_the_stack() -> None:
    made = Template(BudgetEmail="a@example.com", BudgetUsd=5, Vpc="true")
    for resource in made.resources.values():
        assert resource.get("DeletionPolicy", "Delete") == "Delete"


def test_the_role_can_be_bounded() -> None:
    assert "PermissionsBoundary" not in Template().properties("WorkerRole")
    bounded = Template(PermissionsBoundary=BOUNDARY).properties("WorkerRole")
    assert bounded["PermissionsBoundary"] == BOUNDARY


@pytest.mark.parametrize(
    ("email", "usd", "there"),
    [("", 5, False), ("a@example.com", 0, False), ("a@b.example", 5, True)],
)
def test_the_budget_needs_a_reader_and_an_amount(email: str, usd: int, there: bool) -> None:  # noqa: FBT001
    made = Template(BudgetEmail=email, BudgetUsd=usd)
    assert ("Budget" in made.resources) is there
    if there:
        assert made.properties("Budget")["Budget"]["BudgetLimit"]["Amount"] == usd


def test_outputs_are_those_that_sbench_reads() -> None:
    outputs = {name: output["Value"] for name, output in Template().outputs.items()}
    assert set(_OUTPUTS.values()) <= set(outputs)
    assert (outputs["DataBucket"], outputs["ControlBucket"]) == (DATA, CONTROL)
    assert (outputs["Region"], outputs["DataRegion"]) == (REGION, REGION)
    assert functions_in(outputs) == (
        DeployedFunction(name=FUNCTION, memory_mib=1769, architecture="arm64"),
    )
    assert {"DriverPolicyArn", "CleanerPolicyArn"} <= set(outputs)


DEPLOYED = functions_in({n: o["Value"] for n, o in Template(MANY).outputs.items()})


def test_outputs_name_all_functions_in_the_order_of_the_template() -> None:
    assert [one.name for one in DEPLOYED] == [
        one["FunctionName"] for one in Template(MANY).functions.values()
    ]


@pytest.mark.parametrize(
    ("asked", "chosen"),
    [
        ({}, "1769-arm64"),
        ({"memory": 3538}, "3538-arm64"),
        ({"arch": "x86_64"}, "1769-x86_64"),
        ({"memory": 10_240, "arch": "x86_64"}, "10240-x86_64"),
    ],
)
def test_a_job_gets_the_copies_of_one_kind(asked: dict[str, str | int], chosen: str) -> None:
    names = [one.name for one in choose(DEPLOYED, **asked)]  # type: ignore[arg-type]
    assert names == [f"bench-worker-{chosen}", f"bench-worker-{chosen}-2"]


@pytest.mark.parametrize(
    ("asked", "says", "field"),
    [
        ({"memory": 512}, "asks for 512 MB, and the stack has 1769 MB on arm64", "memory"),
        ({"memory": 512, "arch": "x86_64"}, "asks for 512 MB on x86_64", "memory"),
        ({"arch": "riscv"}, "asks for riscv", "arch"),
        ({"client": "boto3"}, "asks for boto3, and the functions of the stack have wire", "client"),
    ],
)
def test_a_kind_that_is_not_there(asked: dict[str, str | int], says: str, field: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        choose(DEPLOYED, **asked)  # type: ignore[arg-type]
    assert caught.value.field == field


def test_an_output_without_a_client_names_a_thin_function() -> None:
    (function,) = functions_in({"Function1": "worker 1769 arm64"})
    assert function.client == "wire"


@pytest.mark.parametrize("value", ["worker", "worker 1769", "worker big arm64", "a b 1769 arm64"])
def test_an_output_that_names_no_function(value: str) -> None:
    with pytest.raises(ExecutorError, match="does not name a function"):
        functions_in({"Function1": value})
