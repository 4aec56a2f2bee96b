"""Permissions of each role and user, by the template's own policies."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.clouds.iam import Request, Statement, Verdict, applies, evaluate, like
from tests.clouds.template import (
    ACCOUNT,
    ARNS,
    CONTROL,
    DATA,
    FUNCTION,
    FUNCTION_ARN,
    REGION,
    STACK,
    Template,
)
from tests.tables import each_row

TEMPLATE = Template()
OURS = {
    "aws:PrincipalAccount": ACCOUNT,
    "aws:PrincipalIsAWSService": "false",
    "aws:ResourceAccount": ACCOUNT,
    "aws:SecureTransport": "true",
}
"""Context of every request from within the account."""
FOREIGN = "999988887777"
EVERYTHING: Statement = {"Effect": "Allow", "Action": "*", "Resource": "*"}


def policies_of(made: Template) -> dict[str, list[Statement]]:
    """Return the statements of every policy that a template makes."""

    def document(resource: str) -> list[Statement]:
        if resource not in made.resources:
            return []
        found: list[Statement] = made.properties(resource)["PolicyDocument"]["Statement"]
        return found

    role = made.properties("WorkerRole")
    gateway = made.properties("Gateway") if "Gateway" in made.resources else {}
    return {
        "worker": role["Policies"][0]["PolicyDocument"]["Statement"],
        "driver": document("DriverPolicy"),
        "cleaner": document("CleanerPolicy"),
        "trust": role["AssumeRolePolicyDocument"]["Statement"],
        "data": document("DataBucketPolicy"),
        "control": document("ControlBucketPolicy"),
        # Without a policy it lets everything through.
        "gateway": gateway.get("PolicyDocument", {}).get("Statement", [EVERYTHING]),
    }


POLICIES = policies_of(TEMPLATE)
ROLES = ("worker", "driver", "cleaner")

RUN = "r0123456789abcdef"
OBJECT = f"{ARNS['DataBucket']}/sbench/0123456789abcdef0123456789abcdef.8388608"
BARRIER = f"{ARNS['DataBucket']}/sbench/{RUN}/barrier/start"
CLAIM = f"{ARNS['ControlBucket']}/sbench-control/{RUN}/claims/00000007/0"
RECORD = f"{ARNS['ControlBucket']}/sbench-control/{RUN}/records/00000007/0/{'ab' * 16}"
ELSEWHERE = "arn:aws:s3:::somebody-elses-bucket"
LOG = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:/aws/lambda/{FUNCTION}:log-stream:2026/x"
STACK_ARN = f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/{STACK}/1a2b"


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@dataclass(frozen=True)
class Call:
    """One row of the table."""

    role: str
    action: str
    resource: str
    context: Mapping[str, str] = field(default_factory=dict)
    """Context in addition to ``OURS``, or instead of it; empty values remove a key."""

    def __str__(self) -> str:
        return f"{self.role} {self.action} {self.resource} {dict(self.context)}"

    def request(self) -> Request:
        context = {**OURS, **self.context}
        return Request(self.action, self.resource, {k: v for k, v in context.items() if v})


def calls(role: str, actions: str, *resources: str, **context: str) -> list[Call]:
    fields = {name.replace("__", ":").replace("_", "-"): value for name, value in context.items()}
    keys = {"s3:prefix": fields["prefix"]} if "prefix" in fields else fields
    return [Call(role, action, at, keys) for action in actions.split() for at in resources]


BUCKETS = (ARNS["DataBucket"], ARNS["ControlBucket"])
ALLOWED = [
    # A function moves objects and parts, passes the barrier, claims, and leaves a record.
    *calls("worker", "s3:GetObject s3:PutObject s3:AbortMultipartUpload", OBJECT),
    *calls("worker", "s3:GetObject s3:PutObject", BARRIER, CLAIM),
    *calls("worker", "s3:PutObject", RECORD),
    # A page of a mix, and S3's own check for a missing object, which answers 404 or 403.
    *calls("worker", "s3:ListBucket", ARNS["DataBucket"], prefix="sbench/"),
    *calls("worker", "s3:ListBucket", ARNS["DataBucket"], prefix=f"sbench/{RUN}/barrier/start"),
    *calls("worker", "logs:CreateLogStream logs:PutLogEvents", LOG),
    # The driver reads the stack and the quota, invokes, opens the barrier, reads records.
    *calls("driver", "lambda:InvokeFunction lambda:GetFunctionConfiguration", FUNCTION_ARN),
    *calls("driver", "lambda:GetFunctionEventInvokeConfig", FUNCTION_ARN),
    *calls("driver", "lambda:GetFunctionConcurrency", FUNCTION_ARN),
    *calls("driver", "cloudwatch:GetMetricData lambda:GetAccountSettings", "*"),
    *calls("driver", "cloudformation:DescribeStacks", STACK_ARN),
    *calls("driver", "s3:ListBucket", *BUCKETS),  # HeadBucket
    *calls("driver", "s3:ListBucket", ARNS["DataBucket"], prefix=f"sbench/{RUN}/barrier/"),
    *calls("driver", "s3:ListBucket", ARNS["ControlBucket"], prefix=f"sbench-control/{RUN}/"),
    *calls("driver", "s3:GetBucketLocation s3:GetBucketPublicAccessBlock", *BUCKETS),
    *calls("driver", "s3:GetBucketVersioning s3:GetLifecycleConfiguration", *BUCKETS),
    *calls("driver", "s3:GetBucketObjectLockConfiguration", *BUCKETS),
    *calls("driver", "s3:GetEncryptionConfiguration s3:GetReplicationConfiguration", *BUCKETS),
    *calls("driver", "s3:GetObject s3:PutObject", BARRIER, OBJECT, CLAIM),
    *calls("driver", "s3:GetObject", RECORD),
    # The cleaner reads the objects that it deletes, and revokes attempts that may still start.
    *calls("cleaner", "s3:GetObject s3:DeleteObject", OBJECT, BARRIER, CLAIM, RECORD),
    *calls("cleaner", "s3:AbortMultipartUpload", OBJECT),
    *calls("cleaner", "s3:ListBucket", ARNS["DataBucket"], prefix="sbench/"),
    *calls("cleaner", "s3:ListBucket", ARNS["ControlBucket"], prefix=f"sbench-control/{RUN}/"),
    *calls("cleaner", "s3:ListBucketMultipartUploads", *BUCKETS),
    *calls("cleaner", "s3:PutObject", CLAIM),
    # An administrator of the account may look into the buckets; S3 itself may expire.
    *calls("data", "s3:GetObject", OBJECT),
    *calls("control", "s3:GetObject", RECORD),
    Call(
        "data",
        "s3:GetObject",
        OBJECT,
        {"aws:PrincipalIsAWSService": "true", "aws:PrincipalAccount": ""},
    ),
]
DENIED = [
    # A function cannot delete, list anything but objects, read records or invoke.
    *calls("worker", "s3:DeleteObject", OBJECT),
    *calls("worker", "s3:ListBucket", ARNS["DataBucket"]),
    *calls("worker", "s3:ListBucket", ARNS["DataBucket"], prefix="payroll/"),
    *calls("worker", "s3:PutObjectAcl s3:GetObjectVersion", OBJECT, CLAIM, RECORD),
    *calls("worker", "s3:DeleteObject", CLAIM, RECORD, f"{ARNS['DataBucket']}/other/x"),
    *calls("worker", "s3:DeleteObjectVersion", OBJECT),
    *calls("worker", "s3:GetObject s3:AbortMultipartUpload", RECORD),
    *calls("worker", "s3:ListBucket", ARNS["ControlBucket"]),
    *calls("worker", "s3:ListBucket", ARNS["DataBucket"], prefix="other/"),
    *calls("worker", "s3:ListBucketMultipartUploads s3:PutBucketPolicy", *BUCKETS),
    *calls("worker", "s3:PutObject", f"{ARNS['ControlBucket']}/sbench-control/{RUN}/plan"),
    *calls("worker", "s3:GetObject s3:PutObject", f"{ARNS['DataBucket']}/other/{'a' * 32}.1"),
    *calls("worker", "s3:GetObject s3:PutObject", f"{ELSEWHERE}/sbench/{'a' * 32}.1"),
    *calls("worker", "lambda:InvokeFunction", FUNCTION_ARN),
    *calls("worker", "logs:CreateLogGroup logs:DeleteLogStream", LOG),
    *calls("worker", "logs:PutLogEvents", LOG.replace(FUNCTION, "other")),
    *calls("worker", "sts:AssumeRole iam:PassRole", ARNS["WorkerRole"]),
    # The driver cannot change functions, delete, or see other keys.
    *calls("driver", "lambda:UpdateFunctionCode lambda:DeleteFunction", FUNCTION_ARN),
    *calls("driver", "lambda:PutFunctionEventInvokeConfig lambda:GetFunction", FUNCTION_ARN),
    *calls("driver", "lambda:InvokeFunction", FUNCTION_ARN.replace("worker", "other")),
    *calls("driver", "lambda:InvokeFunction", f"{FUNCTION_ARN}:1"),
    *calls("driver", "lambda:PutFunctionConcurrency", FUNCTION_ARN),
    *calls("driver", "cloudformation:DeleteStack cloudformation:GetTemplate", STACK_ARN),
    *calls("driver", "cloudformation:DescribeStacks", STACK_ARN.replace(STACK, "other")),
    *calls("driver", "s3:DeleteObject s3:AbortMultipartUpload", OBJECT, CLAIM, RECORD),
    *calls("driver", "s3:ListBucket", ARNS["DataBucket"], prefix="other/"),
    *calls("driver", "s3:ListBucket", ARNS["DataBucket"], prefix="sbench-control/"),
    *calls("driver", "s3:ListBucket", ARNS["ControlBucket"], prefix="sbench/"),
    *calls("driver", "s3:ListBucketMultipartUploads s3:GetBucketPolicy", *BUCKETS),
    *calls("driver", "s3:ListAllMyBuckets cloudwatch:PutMetricData", "*"),
    *calls("driver", "s3:PutObject", f"{ARNS['ControlBucket']}/other"),
    *calls("driver", "iam:PassRole sts:AssumeRole", ARNS["WorkerRole"]),
    # The cleaner can only write claims; it cannot invoke, or delete elsewhere.
    *calls("cleaner", "s3:PutObject", OBJECT, BARRIER, RECORD),
    *calls("cleaner", "s3:DeleteObject", f"{ARNS['DataBucket']}/other", f"{ELSEWHERE}/sbench/x"),
    *calls("cleaner", "s3:DeleteObject", f"{ARNS['DataBucket']}/sbench-control/x"),
    *calls("cleaner", "s3:DeleteObjectVersion s3:GetObjectVersion", OBJECT),
    *calls("cleaner", "s3:ListBucketVersions", ARNS["DataBucket"], prefix="sbench/"),
    *calls("cleaner", "s3:GetBucketVersioning", ARNS["DataBucket"]),
    *calls("cleaner", "s3:ListBucket", *BUCKETS),
    *calls("cleaner", "s3:DeleteBucket s3:PutLifecycleConfiguration", *BUCKETS),
    *calls("cleaner", "s3:ListBucket", ARNS["DataBucket"], prefix="other/"),
    *calls("cleaner", "s3:ListBucket", ARNS["ControlBucket"], prefix="sbench/"),
    *calls("cleaner", "lambda:InvokeFunction", FUNCTION_ARN),
    *(
        Call(role, action, resource, context)
        for role, action, resource in (
            # A bucket of this name in another account; and everybody through plain HTTP.
            ("worker", "s3:PutObject", OBJECT),
            ("worker", "s3:PutObject", RECORD),
            ("worker", "s3:PutObject", CLAIM),
            ("driver", "s3:ListBucket", ARNS["DataBucket"]),
            ("driver", "s3:ListBucket", ARNS["ControlBucket"]),
            ("driver", "s3:GetBucketVersioning", ARNS["DataBucket"]),
            ("driver", "s3:PutObject", BARRIER),
            ("driver", "s3:GetObject", RECORD),
            ("cleaner", "s3:DeleteObject", OBJECT),
            ("cleaner", "s3:ListBucketMultipartUploads", ARNS["DataBucket"]),
            ("cleaner", "s3:PutObject", CLAIM),
        )
        for context in ({"aws:ResourceAccount": FOREIGN}, {"aws:SecureTransport": "false"})
    ),
    *(
        Call("worker", "s3:ListBucket", ARNS["DataBucket"], {"s3:prefix": "sbench/", **context})
        for context in ({"aws:ResourceAccount": FOREIGN}, {"aws:SecureTransport": "false"})
    ),
    Call("worker", "logs:PutLogEvents", LOG, {"aws:ResourceAccount": FOREIGN}),
    Call("driver", "lambda:InvokeFunction", FUNCTION_ARN, {"aws:ResourceAccount": FOREIGN}),
    Call("driver", "cloudformation:DescribeStacks", STACK_ARN, {"aws:ResourceAccount": FOREIGN}),
    # Even if another account, or the public, has all permissions.
    *(
        Call(bucket, action, resource, {"aws:PrincipalAccount": account})
        for bucket, resource in (("data", OBJECT), ("control", RECORD))
        for action in ("s3:GetObject", "s3:PutObject")
        for account in (FOREIGN, "")
    ),
    Call("data", "s3:ListBucket", ARNS["DataBucket"], {"aws:PrincipalAccount": FOREIGN}),
    Call("data", "s3:GetObject", OBJECT, {"aws:SecureTransport": "false"}),
    Call("control", "s3:ListBucket", ARNS["ControlBucket"], {"aws:SecureTransport": "false"}),
]


def verdict(call: Call, policies: Mapping[str, list[Statement]] = POLICIES) -> Verdict:
    """Return the verdict of AWS: by the caller's own policy and that of the bucket.

    A row of a bucket is a request of somebody without other restrictions.
    """
    own = policies[call.role] if call.role in {*ROLES, "gateway"} else [EVERYTHING]
    buckets = {
        "data": ARNS["DataBucket"],
        "control": ARNS["ControlBucket"],
    }
    of_bucket = [
        statement
        for name, arn in buckets.items()
        if call.resource == arn or call.resource.startswith(f"{arn}/")
        for statement in policies[name]
    ]
    return evaluate([*own, *of_bucket], call.request())


@each_row("call", ALLOWED, ids=str)
def test_required_actions_are_allowed(call: Call) -> None:
    assert verdict(call) is Verdict.ALLOWED


@each_row("call", DENIED, ids=str)
def test_other_actions_are_denied(call: Call) -> None:
    assert verdict(call) is not Verdict.ALLOWED


@each_row(
    ("policy", "sid"),
    [
        (policy, s["Sid"])
        for policy, found in POLICIES.items()
        for s in found
        if policy not in {"trust", "gateway"}
    ],
)
def test_every_statement_decides_a_row_of_the_table(policy: str, sid: str) -> None:
    rest = [statement for statement in POLICIES[policy] if statement["Sid"] != sid]
    without = {**POLICIES, policy: rest}
    changed = [c for c in (*ALLOWED, *DENIED) if verdict(c) is not verdict(c, without)]
    assert changed
    (effect,) = {s["Effect"] for s in POLICIES[policy] if s["Sid"] == sid}
    decided = ALLOWED if effect == "Allow" else DENIED
    assert any(call in decided for call in changed)


@each_row(
    ("policy", "sid", "action"),
    [
        (policy, statement["Sid"], action)
        for policy in ROLES
        for statement in POLICIES[policy]
        for action in listed(statement["Action"])
    ],
)
def test_every_action_decides_a_row_of_the_table(policy: str, sid: str, action: str) -> None:
    fewer = [
        {**s, "Action": [a for a in listed(s["Action"]) if a != action]} if s["Sid"] == sid else s
        for s in POLICIES[policy]
    ]
    without = {**POLICIES, policy: fewer}
    assert any(verdict(c) is not verdict(c, without) for c in ALLOWED)


@each_row(
    ("call", "answer"),
    [
        (Call("worker", "s3:ListBucket", ARNS["DataBucket"]), Verdict.NOT_ALLOWED),
        (Call("worker", "s3:DeleteObject", OBJECT), Verdict.NOT_ALLOWED),
        # IAM does not distinguish runs: functions of one stack have one role, as
        # serverless_bench/features/aws/README.md says.
        (Call("worker", "s3:PutObject", CLAIM.replace(RUN, "another")), Verdict.ALLOWED),
        (Call("worker", "s3:PutObject", RECORD.replace(RUN, "another")), Verdict.ALLOWED),
        # IAM cannot distinguish HeadBucket from a listing of everything.
        (Call("driver", "s3:ListBucket", ARNS["DataBucket"]), Verdict.ALLOWED),
    ],
    ids=str,
)
def test_verdicts_follow_the_documented_limits(call: Call, answer: Verdict) -> None:
    """The finding: all of these were allowed."""
    assert verdict(call, policies_of(Template(DataBucketName=DATA))) is answer


def test_only_lambda_takes_the_role() -> None:
    (trust,) = POLICIES["trust"]
    for principal, expected in (
        ("lambda.amazonaws.com", True),
        ("ec2.amazonaws.com", False),
        (f"arn:aws:iam::{ACCOUNT}:root", False),
    ):
        request = Request("sts:AssumeRole", ARNS["WorkerRole"], OURS, principal)
        assert applies(trust, request) is expected
    other = Request("sts:TagSession", ARNS["WorkerRole"], OURS, "lambda.amazonaws.com")
    assert not applies(trust, other)


def test_no_action_has_a_wildcard() -> None:
    for policy, statements in POLICIES.items():
        # The gateway grants no permissions: its users have policies of their own.
        for statement in statements if policy != "gateway" else ():
            actions = listed(statement["Action"])
            if statement["Effect"] == "Deny":
                # A statement that denies may deny everything.
                assert (policy in {"data", "control"}, actions) == (True, ["s3:*"])
            else:
                assert not any(c in action for action in actions for c in "*?")


def test_every_permission_names_its_resource() -> None:
    for policy in ROLES:
        for statement in POLICIES[policy]:
            assert set(statement) <= {"Sid", "Effect", "Action", "Resource", "Condition"}
            if statement["Resource"] == "*":
                # Service Authorization Reference: it cannot be given for less.
                without = ["cloudwatch:GetMetricData", "lambda:GetAccountSettings"]
                assert statement["Action"] == without
            else:
                assert statement["Condition"]["StringEquals"] == {"aws:ResourceAccount": ACCOUNT}
                for resource in listed(statement["Resource"]):
                    assert any(name in resource for name in (DATA, CONTROL, STACK))


@given(
    role=st.sampled_from(ROLES),
    bucket=st.sampled_from([*BUCKETS, ELSEWHERE]),
    key=st.text(min_size=1).filter(lambda key: not key.startswith(("sbench/", "sbench-control/"))),
    action=st.sampled_from(["s3:GetObject", "s3:PutObject", "s3:DeleteObject"]),
)
def test_objects_outside_the_prefixes_are_unreachable(
    role: str, bucket: str, key: str, action: str
) -> None:
    assert verdict(Call(role, action, f"{bucket}/{key}")) is Verdict.NOT_ALLOWED


def says(condition: dict[str, Any], **context: str) -> bool:
    fields = {name.replace("_", ":"): value for name, value in context.items()}
    return applies({**EVERYTHING, "Condition": condition}, Request("s3:GetObject", "x", fields))


def test_the_evaluator_follows_the_user_guide() -> None:
    assert evaluate([], Request("a:B", "x")) is Verdict.NOT_ALLOWED
    deny = {"Effect": "Deny", "NotAction": "s3:get*", "Resource": "*"}
    assert evaluate([EVERYTHING, deny], Request("s3:GetObject", "x")) is Verdict.ALLOWED
    assert evaluate([EVERYTHING, deny], Request("s3:PutObject", "x")) is Verdict.DENIED
    assert like("a*/?", "a//b")
    assert not like("a?", "a")
    assert not like("a*", "A")
    # One value has to match, or none if negated; a missing key fails, unless negated or IfExists.
    assert says({"StringEquals": {"a:b": ["x", "y"]}}, a_b="y")
    assert not says({"StringNotEquals": {"a:b": ["x", "y"]}}, a_b="y")
    assert says({"StringNotEquals": {"a:b": ["x", "y"]}}, a_b="z")
    assert not says({"StringEquals": {"a:b": "x"}})
    assert says({"StringNotEquals": {"a:b": "x"}})
    assert says({"StringLikeIfExists": {"a:b": "x*"}})
    assert not says({"StringLikeIfExists": {"a:b": "x*"}}, a_b="y")
    assert says({"StringNotLike": {"A:B": "x*"}}, a_b="y")
    assert says({"StringEqualsIgnoreCase": {"a:b": "X"}}, a_b="x")
    # Every key, and every operator.
    assert not says({"StringEquals": {"a:b": "x", "a:c": "x"}}, a_b="x")
    assert not says({"StringEquals": {"a:b": "x"}, "Bool": {"a:c": "true"}}, a_b="x", a_c="false")
    assert says({"Null": {"a:b": "true"}})
    assert not says({"Null": {"a:b": "true"}}, a_b="x")
    assert says({"Null": {"a:b": "false"}}, a_b="x")
    assert says({"ArnLike": {"a:b": "arn:aws:s3:::b*"}}, a_b="arn:aws:s3:::bucket")
    assert not says({"ArnLike": {"a:b": "arn:aws:*"}}, a_b="arn:aws:s3:::bucket")
    assert says({"ArnNotEquals": {"a:b": "arn:aws:s3:::b"}}, a_b="arn:aws:s3:::c")


@pytest.mark.parametrize(
    "condition",
    [
        {"NumericLessThan": {"a:b": "1"}},
        {"ForAnyValue:StringEquals": {"a:b": "x"}},
        {"StringEquals": {"a:b": "${aws:username}"}},
    ],
)
def test_the_evaluator_refuses_unknown_elements(condition: dict[str, Any]) -> None:
    with pytest.raises(AssertionError, match="the evaluator"):
        says(condition, a_b="1")
