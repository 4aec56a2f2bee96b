"""Sources of Google's tokens, and their recipients."""

import json
from pathlib import Path

import pytest

from serverless_bench.base.errors import AccessDenied
from serverless_bench.features.google import client as google
from serverless_bench.features.google.client import Google, find_token, is_google
from tests.tables import each_row

HERE = "http://127.0.0.1:9000"
GOOGLE = Google().endpoint()


@pytest.fixture(autouse=True)
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without credentials, which is not Google's."""
    for name in (*google._VARIABLES, *google._ON_GOOGLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(google, "_PRODUCT", tmp_path / "product_name")


@each_row(
    ("url", "expected"),
    [
        (GOOGLE, True),
        ("https://storage.googleapis.com:443", True),
        ("https://storage-mine.p.googleapis.com", True),
        ("https://storage.me-central2.rep.googleapis.com", True),
        ("http://storage.googleapis.com", False),
        ("https://storage.googleapis.com:8443", False),
        ("https://storage.googleapis.com.example.org", False),
        ("https://notgoogleapis.com", False),
        ("https://example.org/storage.googleapis.com", False),
        (HERE, False),
    ],
)
def test_a_token_goes_to_googles_hosts_only(url: str, *, expected: bool) -> None:
    assert is_google(url) == expected


@each_row("name", google._VARIABLES)
def test_one_variable_is_enough(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not Google().has_credentials(GOOGLE)
    assert not Google().has_credentials("")
    monkeypatch.setenv(name, "any")
    assert Google().has_credentials(GOOGLE)
    assert Google().has_credentials("")


def test_other_stores_need_no_credentials() -> None:
    assert Google().has_credentials(HERE)


def test_a_login_gives_credentials(tmp_path: Path) -> None:
    login = tmp_path / ".config" / "gcloud" / "application_default_credentials.json"
    login.parent.mkdir(parents=True)
    login.write_text("{}")
    assert Google().has_credentials(GOOGLE)


@pytest.mark.parametrize(
    ("product", "expected"), [("Google Compute Engine\n", True), ("KVM\n", False), ("\xff", False)]
)
def test_a_machine_of_googles_has_credentials(
    product: str, tmp_path: Path, *, expected: bool
) -> None:
    (tmp_path / "product_name").write_bytes(product.encode("latin-1"))
    assert Google().has_credentials(GOOGLE) == expected


def test_a_token_of_the_environment_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_BEARER_TOKEN", "given")
    assert find_token()() == "given"


@each_row(
    "name",
    [
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GOOGLE_SERVICE_ACCOUNT",
        "GOOGLE_SERVICE_ACCOUNT_PATH",
        "SERVICE_ACCOUNT",
    ],
)
@each_row("text", [None, "no JSON", json.dumps({"type": "service_account"})])
def test_a_file_without_credentials_is_one_line(
    name: str, text: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "account.json"
    if text is not None:
        path.write_text(text)
    monkeypatch.setenv(name, str(path))
    with pytest.raises(AccessDenied, match="no credentials for Google Cloud Storage"):
        find_token()


def test_an_invalid_key_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT_KEY", "{")
    with pytest.raises(AccessDenied, match="no credentials for Google Cloud Storage"):
        find_token()
