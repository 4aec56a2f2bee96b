"""Missing credentials, failed renewals and missing libraries give one line each."""

import tomllib
from pathlib import Path

import pytest
from botocore import exceptions as boto

from serverless_bench.base.errors import ExecutorError, StoreError
from serverless_bench.driver import boto as boto_bucket
from serverless_bench.features.aws import client
from serverless_bench.job.target import Target
from tests.tables import each_row

LOST = "the credentials cannot be used"
ERRORS = [
    (boto.NoCredentialsError(), "no credentials found", "AWS_PROFILE"),
    (boto.CredentialRetrievalError(provider="process", error_msg="exit 1"), LOST, "log in again"),
    (boto.UnauthorizedSSOTokenError(), LOST, "log in again"),
    (boto.LoginRefreshRequired(), LOST, "log in again"),
    (boto.MissingDependencyException(msg="awscrt"), "need 'awscrt'", "pip install awscrt"),
]


@each_row(("error", "words", "hint"), ERRORS, ids=lambda each: type(each).__name__)
def test_each_has_a_line_and_a_hint(error: Exception, words: str, hint: str) -> None:
    with pytest.raises(ExecutorError, match=words) as found, client.explained("lambda"):
        raise error
    assert hint in found.value.hint
    with (
        pytest.raises(StoreError, match=words) as of_store,
        boto_bucket.explained(Target(bucket="b")),
    ):
        raise error
    assert hint in of_store.value.hint


@pytest.mark.parametrize(
    "error", [boto.ProfileNotFound(profile="nobodys"), boto.ConfigParseError(path="~/.aws/config")]
)
def test_a_profile_that_cannot_be_read_is_no_matter_of_the_network(error: Exception) -> None:
    with pytest.raises(ExecutorError) as found, client.explained("lambda"):
        raise error
    assert "AWS_PROFILE" in found.value.hint


def test_a_login_is_signed_by_a_library_that_is_installed() -> None:
    about = tomllib.loads((Path(__file__).parents[4] / "pyproject.toml").read_text())
    assert any(one.startswith("awscrt") for one in about["project"]["dependencies"])
