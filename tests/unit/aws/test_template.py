"""What the template makes of its parameters."""

import pytest

import serverless_bench
from serverless_bench.aws.cloudformation import _OUTPUTS
from tests.template import CONTROL, DATA, FUNCTION_ARN, REGION, Template

BOUNDARY = "arn:aws:iam::111122223333:policy/bound"


def test_the_function() -> None:
    function = Template().properties("WorkerFunction")
    assert function["Handler"] == "serverless_bench.worker.handler.handler"
    assert function["Architectures"] == ["arm64"]
    assert (function["MemorySize"], function["Timeout"]) == (1769, 900)
    assert function["EventInvokeConfig"] == {
        "MaximumRetryAttempts": 0,
        "MaximumEventAgeInSeconds": 60,
    }
    assert function["LoggingConfig"] == {"LogFormat": "JSON", "LogGroup": "WorkerLog"}
    assert function["Environment"]["Variables"]["SBENCH_VERSION"] == serverless_bench.__version__
    assert not {"VpcConfig", "ReservedConcurrentExecutions", "Layers", "Policies"} & set(function)


@pytest.mark.parametrize(("asked", "reserved"), [(0, None), (-1, None), (50, 50)])
def test_concurrency_is_reserved_on_request(asked: int, reserved: int | None) -> None:
    function = Template(ReservedConcurrency=asked).properties("WorkerFunction")
    assert function.get("ReservedConcurrentExecutions") == reserved


@pytest.mark.parametrize(("asked", "variable"), [("false", "0"), ("true", "1")])
def test_code_of_others_is_run_on_request_alone(asked: str, variable: str) -> None:
    function = Template(AllowCode=asked).properties("WorkerFunction")
    assert function["Environment"]["Variables"]["SBENCH_ALLOW_CODE"] == variable
    assert Template().source["Parameters"]["AllowCode"]["Default"] == "false"


def test_the_log_is_the_functions_own_and_ends() -> None:
    template = Template(LogRetentionDays=1)
    log, function = template.properties("WorkerLog"), template.properties("WorkerFunction")
    # Lambda's own default: where no LoggingConfig is known, it is the same group.
    assert log["LogGroupName"] == f"/aws/lambda/{function['FunctionName']}"
    assert log["RetentionInDays"] == 1


@pytest.mark.parametrize("name", ["DataBucket", "ControlBucket"])
def test_buckets_are_private_encrypted_and_empty_themselves(name: str) -> None:
    bucket = Template().properties(name)
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    assert len(bucket["PublicAccessBlockConfiguration"]) == 4
    assert bucket["OwnershipControls"]["Rules"] == [{"ObjectOwnership": "BucketOwnerEnforced"}]
    (encryption,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert encryption["ServerSideEncryptionByDefault"] == {"SSEAlgorithm": "AES256"}
    (rule,) = bucket["LifecycleConfiguration"]["Rules"]
    assert (rule["Status"], rule["ExpirationInDays"]) == ("Enabled", 1)
    assert rule["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}
    assert not {"VersioningConfiguration", "BucketName", "AccessControl"} & set(bucket)


def test_nothing_outlives_the_stack() -> None:
    for resource in Template(BudgetEmail="a@example.com", BudgetUsd=5).resources.values():
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
    template = Template(BudgetEmail=email, BudgetUsd=usd)
    assert ("Budget" in template.resources) is there
    if there:
        assert template.properties("Budget")["Budget"]["BudgetLimit"]["Amount"] == usd


def test_outputs_are_those_that_sbench_reads() -> None:
    outputs = {name: output["Value"] for name, output in Template().outputs.items()}
    assert set(_OUTPUTS.values()) <= set(outputs)
    assert outputs["FunctionArn"] == FUNCTION_ARN
    assert (outputs["DataBucket"], outputs["ControlBucket"]) == (DATA, CONTROL)
    assert (outputs["Region"], outputs["MemorySize"]) == (REGION, 1769)
    assert {"DriverPolicyArn", "CleanerPolicyArn"} <= set(outputs)
