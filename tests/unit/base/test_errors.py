"""Errors say what went wrong, and contain no credentials."""

import pytest

from serverless_bench.base.errors import AccessDenied, OperationError, without_secrets
from serverless_bench.clients.sigv4 import Keys
from tests.tables import each_row

IDENTIFIER = "IOSFODNN7EXAMPLE"
"""Rest of a key after its prefix, as in AWS's own examples, so that no file contains a whole key.
"""


def test_credentials_of_the_environment_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a/secret+key")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "a.session.token")
    # Not a secret, but a word that may occur in any message.
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "tester")
    text = "denied: a/secret+key of tester (token=a.session.token)"
    for error in (OperationError, AccessDenied):
        assert str(error(text)) == "denied: *** of tester (token=***)"


@pytest.mark.parametrize(
    "name", ["AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN"]
)
def test_so_are_those_for_other_clouds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "a+secret/==")
    assert without_secrets("GET /c?a+secret/== failed") == "GET /c?*** failed"


@each_row(
    ("text", "shown"),
    [
        ("GET /c/k?sv=2023&sig=abc%2Fd%3D&se=1 failed", "GET /c/k?sv=2023&sig=***&se=1 failed"),
        (
            f"AWSAccessKeyId>AKIA{IDENTIFIER}</AWSAccessKeyId",
            "AWSAccessKeyId>***</AWSAccessKeyId",
        ),
        (f"Credential=ASIA{IDENTIFIER}/20260101/eu", "Credential=***/20260101/eu"),
        ("x-amz-security-token: FwoGZXIvYXdz/x+y==, x", "x-amz-security-token***, x"),
        ("X-Amz-Security-Token=FwoG%2F&a=b", "X-Amz-Security-Token***&a=b"),
        ("Authorization: Bearer abcd.EF-12_3/x==, x", "Authorization: Bearer ***, x"),
        ("the bearer of bad news", "the bearer of bad news"),
        ("SlowDown: reduce your request rate", "SlowDown: reduce your request rate"),
        ("the header x-amz-security-token", "the header x-amz-security-token"),
    ],
)
def test_other_credentials_are_left_out_if_recognizable(text: str, shown: str) -> None:
    assert without_secrets(text) == shown


def test_keys_do_not_show_themselves() -> None:
    assert "secret" not in f"{Keys('id', 'secret', 'token')} {[Keys('id', 'secret')]!r}"
