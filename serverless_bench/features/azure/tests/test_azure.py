"""Account and credentials for Azure, from the environment."""

import pytest

from serverless_bench.base.errors import AccessDenied, UsageError
from serverless_bench.features.azure.client import Azure, account_url
from serverless_bench.job.target import Addressing, StoreProtocol, Target
from tests.tables import each_row


@pytest.fixture(autouse=True)
def account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "mine")


@each_row(
    ("endpoint", "addressing", "url"),
    [
        ("https://mine.blob.core.windows.net", "auto", ""),
        ("https://mine.blob.core.chinacloudapi.cn", "auto", ""),
        ("http://mine.localhost:10000", "auto", ""),
        ("http://127.0.0.1:10000", "auto", "/mine"),
        ("http://127.0.0.1:10000", "virtual", ""),
        ("http://mine.proxy.example", "path", "/mine"),
    ],
)
def test_an_account_is_in_the_host_name_or_the_path(
    endpoint: str, addressing: str, url: str
) -> None:
    target = Target(bucket="b", protocol=StoreProtocol.AZ, addressing=Addressing(addressing))
    assert account_url(target, endpoint) == endpoint + url


@pytest.mark.parametrize("addressing", ["auto", "path", "virtual"])
def test_a_signature_goes_to_no_other_account(addressing: str) -> None:
    target = Target(bucket="b", protocol=StoreProtocol.AZ, addressing=Addressing(addressing))
    with pytest.raises(AccessDenied, match="does not belong to the account"):
        account_url(target, "https://theirs.blob.core.windows.net")


def test_the_account_has_an_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Azure().endpoint() == "https://mine.blob.core.windows.net"
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME")
    with pytest.raises(UsageError) as caught:
        Azure().endpoint()
    assert "AZURE_STORAGE_ACCOUNT_NAME" in caught.value.hint
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", "as-the-cli-says")
    assert Azure().endpoint() == "https://as-the-cli-says.blob.core.windows.net"


@each_row(
    "name",
    [
        *("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCESS_KEY"),
        *("AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY", "AZURE_STORAGE_TOKEN"),
    ],
)
def test_credentials_are_an_account_and_something_else(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not Azure().has_credentials()
    monkeypatch.setenv(name, "something")
    assert Azure().has_credentials()
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME")
    assert not Azure().has_credentials()
