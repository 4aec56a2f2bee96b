"""Clients of AWS use API descriptions that a process reads once."""

from typing import Any

import botocore.loaders
import botocore.session
import pytest
from botocore.exceptions import ClientError

from serverless_bench.base.errors import ExecutorError
from serverless_bench.clients.aws_credentials import open_session
from serverless_bench.clients.aws_errors import credentials_error, words_of
from serverless_bench.features.aws.client import explained, wait_hint


def test_sessions_share_descriptions_from_the_same_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # All sessions of tests share the loader (tests/conftest.py); in the product only open_session
    # does.
    monkeypatch.setattr(botocore.session, "create_loader", botocore.loaders.create_loader)
    first, second = (open_session().get_component("data_loader") for _ in range(2))
    assert first is second
    monkeypatch.setenv("AWS_DATA_PATH", "/elsewhere")
    assert "/elsewhere" in open_session().get_component("data_loader").search_paths
    assert "/elsewhere" not in first.search_paths


USER = "User: arn:aws:sts::111122223333:assumed-role/AWSReservedSSO_Developers_0123456789/alice"
ASKED = f"{USER} is not authorized to perform: cloudformation:DescribeStacks on resource: arn:aws:x"
SCP = f"{ASKED} with an explicit deny in a service control policy"
INVALID = "The security token included in the request is invalid."


@pytest.mark.parametrize(
    ("code", "message", "hint"),
    [
        ("ExpiredToken", "The security token included in the request is expired", "log in again"),
        ("ExpiredTokenException", "expired", "log in again"),
        ("InvalidClientTokenId", INVALID, "not enabled for this account"),
        ("UnrecognizedClientException", INVALID, "not enabled for this account"),
        ("SignatureDoesNotMatch", "The request signature does not match", "check the secret key"),
        ("SignatureDoesNotMatch", "Signature expired: 20261129T080000Z is now earlier", "NTP"),
        ("Throttling", "Rate exceeded", "wait a minute"),
        ("AccessDenied", f"{ASKED} because no identity-based policy allows it", "DriverPolicyArn"),
        ("AccessDenied", SCP, "AWS organization"),
        ("AccessDenied", f"{ASKED} because no permissions boundary allows it", "boundary"),
        ("SomethingNew", "new", "check the region"),
    ],
)
def test_the_first_errors_of_a_day_have_their_own_hints(code: str, message: str, hint: str) -> None:
    error: Any = {"Error": {"Code": code, "Message": message}}
    with pytest.raises(ExecutorError) as caught, explained("stack 'sbench'"):
        raise ClientError(error, "DescribeStacks")
    assert str(caught.value) == f"stack 'sbench': {code}: {message}"
    assert hint in caught.value.hint
    if hint not in {"DriverPolicyArn", "AWS organization", "boundary", "check the region"}:
        assert hint in credentials_error(ClientError(error, "Invoke")).hint


def test_a_long_error_keeps_its_reason() -> None:
    message = f"{USER * 20} with an explicit deny in a service control policy"
    error = ClientError({"Error": {"Code": "AccessDenied", "Message": message}}, "Invoke")
    reason = r"\.\.\..* in a service control policy$"
    with pytest.raises(ExecutorError, match=reason) as caught, explained("x"):
        raise error
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    ("reason", "hint"),
    [
        ("ReservedFunctionConcurrentInvocationLimitExceeded", "its own ReservedConcurrency"),
        ("ConcurrentInvocationLimitExceeded", "the account's concurrency"),
        ("CallerRateLimitExceeded", "wait a minute"),
        ("FunctionInvocationRateLimitExceeded", "wait a minute"),
    ],
)
def test_a_throttled_call_has_lambdas_reason_and_its_hint(reason: str, hint: str) -> None:
    error: Any = {
        "Error": {"Code": "TooManyRequestsException", "Message": "Rate Exceeded."},
        "ResponseMetadata": {"MaxAttemptsReached": True, "RetryAttempts": 0},
        "Reason": reason,
    }
    words = words_of(ClientError(error, "Invoke"))
    assert reason in words
    assert "reached max retries" not in words
    assert hint in wait_hint(words)
