"""Settings of the AWS configuration that the clients read themselves."""

from pathlib import Path

import pytest

from serverless_bench.clients.aws_credentials import AwsSession
from serverless_bench.clients.environment import ca_bundle


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("AWS_CA_BUNDLE", "AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    return tmp_path


def test_the_bundle_of_a_profile_counts_where_the_variable_is_not_set(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "config").write_text(
        "[default]\nca_bundle = /a.pem\n[profile other]\nca_bundle = /b.pem\n[profile none]\n"
    )
    assert ca_bundle() == Path("/a.pem")
    monkeypatch.setenv("AWS_PROFILE", "other")
    assert ca_bundle() == Path("/b.pem")
    monkeypatch.setenv("AWS_PROFILE", "none")
    assert ca_bundle() is None
    monkeypatch.setenv("AWS_CA_BUNDLE", "/c.pem")
    assert ca_bundle() == Path("/c.pem")


@pytest.mark.parametrize("content", [b"\xef\xbb\xbf[default]\nca_bundle = /a.pem\n", b"\xff\xfe["])
def test_a_file_that_cannot_be_parsed_has_no_bundle(home: Path, content: bytes) -> None:
    (home / "config").write_bytes(content)
    assert ca_bundle() is None


def test_an_empty_variable_does_not_hide_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    assert AwsSession().get_config_variable("region") == "eu-west-1"
