"""The limit of concurrent functions, from the account and the functions."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import ClientError

from serverless_bench.base.errors import ExecutorError
from serverless_bench.executors.base import RunProgress
from serverless_bench.features.aws.account import unqualified
from serverless_bench.features.aws_lambda.executor import read_limits
from tests.tables import each_row


@dataclass
class Account:
    """Answers like Lambda's API, and refuses calls that the policy does not allow."""

    unreserved: int | None = 1000
    reserved: dict[str, int] = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    """Functions for which reading the reserve is refused."""

    def get_account_settings(self) -> dict[str, Any]:
        if self.unreserved is None:
            raise ClientError({"Error": {"Code": "AccessDenied"}}, "GetAccountSettings")
        return {"AccountLimit": {"UnreservedConcurrentExecutions": self.unreserved}}

    def get_function_concurrency(self, *, FunctionName: str) -> dict[str, Any]:  # noqa: N803
        if FunctionName in self.refused or ":live" in FunctionName:
            raise ClientError({"Error": {"Code": "AccessDenied"}}, "GetFunctionConcurrency")
        known = FunctionName in self.reserved
        return {"ReservedConcurrentExecutions": self.reserved[FunctionName]} if known else {}


@each_row(
    ("account", "functions", "effective"),
    [
        (Account(), ("f",), 100),
        (Account(unreserved=4), ("f",), 4),
        (Account(unreserved=4, reserved={"f": 50}), ("f",), 50),
        # Functions are used in turns, so the smallest reserve limits all of them.
        (Account(reserved={"f": 5, "g": 40}), ("f", "g"), 10),
        (Account(unreserved=30, reserved={"f": 20}), ("f", "g"), 40),
        (Account(unreserved=30), ("f", "g"), 30),
    ],
)
def test_the_smallest_limit_of_a_job_is_named(
    account: Account, functions: tuple[str, ...], effective: int
) -> None:
    assert read_limits(account, functions, 100, RunProgress()).effective == effective


def test_a_reserve_that_may_not_be_read_does_not_hide_the_quota() -> None:
    progress = RunProgress()
    found = read_limits(Account(unreserved=7, refused=("f",)), ("f",), 100, progress)
    assert (found.quota, found.effective) == (7, 7)
    assert "reserved for f is unknown" in progress.notes[0]


def test_an_alias_has_the_reserve_of_its_function() -> None:
    progress = RunProgress()
    found = read_limits(Account(reserved={"f": 3}), ("f:live",), 100, progress)
    assert (found.effective, progress.notes) == (3, [])
    assert unqualified("arn:aws:lambda:r:1:function:f:live") == "arn:aws:lambda:r:1:function:f"


def test_an_unknown_quota_is_assumed_and_reported() -> None:
    progress = RunProgress()
    found = read_limits(Account(unreserved=None), ("f",), 5000, progress)
    assert (found.quota, found.effective) == (None, 1000)
    assert "1,000 assumed" in progress.notes[0]


def test_no_function_may_run() -> None:
    with pytest.raises(ExecutorError, match="allows no functions"):
        read_limits(Account(reserved={"f": 0}), ("f",), 10, RunProgress())
