"""Permissions with each option of the template: the same as without it, and those that it needs."""

from collections.abc import Collection

import pytest

from serverless_bench.clients import CLIENTS
from serverless_bench.features.aws.stack.template import MOST_FUNCTIONS, template
from serverless_bench.features.aws.tests.test_policies import (
    ALLOWED,
    CLAIM,
    DENIED,
    ELSEWHERE,
    FOREIGN,
    LOG,
    OBJECT,
    RECORD,
    ROLES,
    Call,
    calls,
    listed,
    policies_of,
    verdict,
)
from tests.clouds.iam import Statement, Verdict
from tests.clouds.template import ACCOUNT, ARNS, DATA, FUNCTION, FUNCTION_ARN, REGION, Template
from tests.tables import each_row

KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab"
MANY = template([1769, 3538], ["arm64", "x86_64"], copies=2)
OPTIONS = {
    "many": policies_of(Template(MANY)),
    "own bucket": policies_of(Template(DataBucketName=DATA)),
    "elsewhere": policies_of(Template(DataBucketName=DATA, DataRegion="us-west-2")),
    "vpc": policies_of(Template(Vpc="true")),
    "deletes": policies_of(Template(AllowDelete="true")),
    "kept": policies_of(Template(DataRetentionDays=30, RecordRetentionDays=400)),
    "bounded": policies_of(Template(PermissionsBoundary=f"arn:aws:iam::{ACCOUNT}:policy/b")),
    "key": policies_of(Template(DataKeyArn=KEY)),
    "all": policies_of(
        Template(
            MANY,
            AllowDelete="true",
            DataBucketName=DATA,
            DataKeyArn=KEY,
            Vpc="true",
            ReservedConcurrency=9,
        )
    ),
}
WITH_OWN_BUCKET = ("own bucket", "elsewhere", "all")
WITH_VPC = ("vpc", "all")
DELETING = ("deletes", "all")
SESSION = f"arn:aws:s3express:us-west-2:{ACCOUNT}:bucket/{DATA}"
OTHER = FUNCTION.replace("1769-arm64", "3538-x86_64-2")
INTERFACES = (
    "ec2:AssignPrivateIpAddresses ec2:CreateNetworkInterface ec2:DeleteNetworkInterface"
    " ec2:DescribeNetworkInterfaces ec2:DescribeSubnets ec2:UnassignPrivateIpAddresses"
)
KMS = "kms:Decrypt kms:GenerateDataKey"
BY_S3 = {"kms:ViaService": f"s3.{REGION}.amazonaws.com"}
BY_S3_EXPRESS = {"kms:ViaService": f"s3express.{REGION}.amazonaws.com"}
BY_THE_CODE = {"lambda:SourceFunctionArn": FUNCTION_ARN}
"""Context of a request that a function's code makes; requests of Lambda itself lack it."""

MORE: list[tuple[tuple[str, ...], list[Call], list[Call]]] = [
    (
        WITH_OWN_BUCKET,
        [call for role in ROLES for call in calls(role, "s3express:CreateSession", SESSION)],
        [
            *calls("worker", "s3express:CreateSession", SESSION.replace(DATA, "other")),
            *calls("worker", "s3express:DeleteBucket s3express:PutBucketPolicy", SESSION),
            Call("worker", "s3express:CreateSession", SESSION, {"aws:ResourceAccount": FOREIGN}),
        ],
    ),
    (
        WITH_VPC,
        calls("worker", INTERFACES, "*"),
        [
            *calls("driver", INTERFACES, "*"),
            *calls("worker", "ec2:CreateVpc ec2:AuthorizeSecurityGroupEgress", "*"),
            *(Call("worker", action, "*", BY_THE_CODE) for action in INTERFACES.split()),
        ],
    ),
    (
        WITH_OWN_BUCKET,
        [
            *calls("cleaner", "s3:DeleteObjectVersion s3:GetObjectVersion", OBJECT),
            *calls("cleaner", "s3:ListBucketVersions", ARNS["DataBucket"], prefix="sbench/"),
            *calls("cleaner", "s3:GetBucketVersioning", ARNS["DataBucket"]),
        ],
        [
            *calls("cleaner", "s3:DeleteObjectVersion", RECORD, f"{ARNS['DataBucket']}/other/x"),
            *calls("cleaner", "s3:ListBucketVersions", ARNS["DataBucket"]),
            *calls("cleaner", "s3:ListBucketVersions", ARNS["ControlBucket"], prefix="sbench/"),
        ],
    ),
    (
        DELETING,
        [*calls("worker", "s3:DeleteObject", OBJECT)],
        [
            *calls("worker", "s3:DeleteObject", CLAIM, RECORD, f"{ARNS['DataBucket']}/other/x"),
            Call("worker", "s3:DeleteObject", OBJECT, {"aws:ResourceAccount": FOREIGN}),
        ],
    ),
    (
        ("key", "all"),
        [
            Call(role, action, KEY, by)
            for role in ROLES
            for action in KMS.split()
            for by in (BY_S3, BY_S3_EXPRESS)
        ],
        [
            # No role may use KMS directly, or through another service or region.
            *(call for role in ROLES for call in calls(role, KMS, KEY)),
            Call("worker", "kms:Decrypt", KEY, {"kms:ViaService": f"ec2.{REGION}.amazonaws.com"}),
            Call("worker", "kms:Decrypt", KEY, {"kms:ViaService": "s3.ap-east-2.amazonaws.com"}),
            Call("worker", "kms:Decrypt", KEY.replace("1234abcd", "other"), BY_S3),
            Call("driver", "kms:ScheduleKeyDeletion", KEY, BY_S3),
            Call("driver", "kms:PutKeyPolicy", KEY, BY_S3),
        ],
    ),
    (
        ("many", "all"),
        [
            *calls("driver", "lambda:InvokeFunction", FUNCTION_ARN.replace(FUNCTION, OTHER)),
            *calls("worker", "logs:PutLogEvents", LOG.replace(FUNCTION, OTHER)),
        ],
        calls("driver", "lambda:InvokeFunction", FUNCTION_ARN.replace(FUNCTION, f"{OTHER}-3")),
    ),
]
"""Options, calls that are only allowed with them, and calls that remain denied."""


def rests_on_our_bucket(call: Call) -> bool:
    """Whether the policy of the data bucket decides it, which an existing bucket lacks."""
    return call.role == "data" or (
        call.context.get("aws:SecureTransport") == "false"
        and call.resource in {ARNS["DataBucket"], *(c.resource for c in ALLOWED if in_data(c))}
    )


def in_data(call: Call) -> bool:
    return call.resource.startswith(f"{ARNS['DataBucket']}/")


def table(chosen: Collection[str]) -> tuple[list[Call], list[Call]]:
    """Return the calls that options allow, and those that are denied."""
    own = bool({*WITH_OWN_BUCKET} & {*chosen})
    allowed, denied = (
        [call for call in rows if not (own and rests_on_our_bucket(call))]
        for rows in (ALLOWED, DENIED)
    )
    for options, more, less in MORE:
        if {*options} & {*chosen}:
            allowed.extend(more)
            denied = [call for call in denied if call not in more]
        else:
            denied.extend(more)
        denied.extend(less)
    return allowed, denied


@pytest.mark.parametrize("option", OPTIONS)
def test_the_table_holds_with_every_option(option: str) -> None:
    allowed, denied = table([option])
    policies = OPTIONS[option]
    assert [call for call in allowed if verdict(call, policies) is not Verdict.ALLOWED] == []
    assert [call for call in denied if verdict(call, policies) is Verdict.ALLOWED] == []


@each_row(
    ("role", "sid", "action"),
    [
        (role, statement["Sid"], action)
        for role in ROLES
        for statement in OPTIONS["all"][role]
        for action in listed(statement["Action"])
    ],
)
def test_every_action_decides_a_row(role: str, sid: str, action: str) -> None:
    policies = OPTIONS["all"]
    fewer: list[Statement] = [
        {**s, "Action": [a for a in listed(s["Action"]) if a != action]} if s["Sid"] == sid else s
        for s in policies[role]
    ]
    without = {**policies, role: fewer}
    rows = [call for part in table(["all"]) for call in part]
    assert any(verdict(call, policies) is not verdict(call, without) for call in rows)


@pytest.mark.parametrize("option", WITH_VPC)
def test_a_vpc_leads_to_the_buckets_of_the_stack_and_to_no_other(option: str) -> None:
    """Even with foreign credentials: those of the role reach no other bucket either."""
    policies = OPTIONS[option]
    inside = calls("gateway", "s3:GetObject s3:PutObject", OBJECT, CLAIM)
    inside += calls("gateway", "s3:ListBucket", ARNS["DataBucket"], ARNS["ControlBucket"])
    outside = calls("gateway", "s3:PutObject", f"{ELSEWHERE}/sbench/x", f"{ARNS['DataBucket']}2/x")
    outside += calls("gateway", "s3:ListBucket", ELSEWHERE)
    assert {verdict(call, policies) for call in inside} == {Verdict.ALLOWED}
    assert {verdict(call, policies) for call in outside} == {Verdict.NOT_ALLOWED}


@pytest.mark.parametrize("clients", [["wire"], ["boto3"], [*CLIENTS]])
def test_policies_are_within_awss_size_limit(clients: list[str]) -> None:
    """6,144 characters of a managed policy and 10,240 of a role's own; blanks do not count."""
    sizes = range(10_240 - MOST_FUNCTIONS // len(clients), 10_240)
    text = template(sizes, ["x86_64"], clients=clients)
    most = Template(text, AllowDelete="true", DataBucketName="b" * 63, DataKeyArn=KEY, Vpc="true")
    policies = policies_of(most)
    # Names of the tests are short; a stack may be called so that a function has 64 characters.
    longer = sum(64 - len(function["FunctionName"]) for function in most.functions.values())
    assert len(str(policies["driver"]).replace(" ", "")) + longer <= 6144
    assert len(str(policies["worker"]).replace(" ", "")) + longer <= 10_240
    assert len(str(policies["cleaner"]).replace(" ", "")) <= 6144
