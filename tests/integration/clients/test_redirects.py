"""A signature is for the store that the user named: redirects never take it to another host."""

import json
import os
import random
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from serverless_bench.base.clock import monotonic_ns
from serverless_bench.base.errors import OperationError, StoreError
from serverless_bench.base.units import NS_PER_S
from serverless_bench.clients import CLIENTS, open_client
from serverless_bench.clients.base import Client
from serverless_bench.driver.cleanup import delete
from serverless_bench.driver.target import resolve
from serverless_bench.features.testing.client_parts import Collector, RangeOf
from serverless_bench.job.target import StoreProtocol, Target, Transfer
from serverless_bench.worker.meter import Meter
from serverless_bench.worker.retry import Retrier
from tests.contract.declared import info_of
from tests.stores.faulty import Exchange, FaultServer, fails, works
from tests.stores.servers import KEYS

SIZE = 1000
KEY = f"{'0' * 32}.{SIZE}"
TOKEN = "token-of-temporary-credentials"

STATUSES = (301, 302, 307, 308)
REQUESTS: dict[str, Callable[[Client, Meter], object]] = {
    "put": lambda client, meter: client.put(KEY, RangeOf(KEY, 0, SIZE), meter),
    "get": lambda client, meter: client.get(KEY, Collector(), meter),
    "head": lambda client, meter: client.head(KEY, meter),
    "list": lambda client, meter: client.list_keys("0", "", meter),
    "delete": lambda client, meter: client.delete(KEY, meter),
    "copy": lambda client, meter: client.copy(KEY, KEY, meter),
}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**KEYS, "AWS_SESSION_TOKEN": TOKEN}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("serverless_bench.base.clock.sleep", lambda _: None)


def asked_elsewhere(client_name: str) -> list[dict[str, str]]:
    """Redirect every request, and return the heads of those that reached another host."""
    exchanges: list[dict[str, str]] = []
    status = 0

    def listens(exchange: Exchange) -> bool:
        exchange.drain()
        exchanges.append(exchange.headers)
        exchange.say(403)
        return True

    with FaultServer([listens] * 99) as other:

        def redirects(exchange: Exchange) -> bool:
            """Name the other host in each way that a client may understand."""
            exchange.drain()
            code = "PermanentRedirect" if status == 301 else "TemporaryRedirect"
            host = other.endpoint_url.removeprefix("http://")
            xml = f"<Error><Code>{code}</Code><Endpoint>{host}</Endpoint></Error>"
            where = {
                "Location": f"{other.endpoint_url}{exchange.path}",
                "x-amz-bucket-region": "eu",
            }
            exchange.say(status, b"" if exchange.method == "HEAD" else xml.encode(), where)
            return True

        with FaultServer([redirects] * 999) as store:
            target = Target(client=client_name, bucket="bucket", endpoint_url=store.endpoint_url)
            client = open_client(target, Transfer(retries=0, timeout=5))
            for status in STATUSES:  # noqa: B007 - `redirects` uses it
                for name in sorted(REQUESTS.keys() & client.info.operations):
                    seen = len(store.seen)
                    deadline_ns = monotonic_ns() + 20 * NS_PER_S
                    retrier = Retrier(client, 0, deadline_ns, random.Random(1))
                    with pytest.raises(OperationError) as caught:
                        retrier.run(name, partial(REQUESTS[name], client))
                    assert len(store.seen) > seen, name
                    if client.info.attempts == "exact":
                        assert caught.value.code == "wrong_region"
            client.close()
    return exchanges


@pytest.mark.parametrize("client_name", CLIENTS)
def test_a_redirect_takes_no_signature_to_another_host(client_name: str) -> None:
    if "one_store" in info_of(client_name).quirks:
        exchanges = _asked_elsewhere_apart(client_name)
    else:
        exchanges = asked_elsewhere(client_name)
    # A library that follows the redirect drops the signature, but not the token of temporary
    # credentials, which is useless without their key; see docs/clients.md.
    assert bool(exchanges) == ("follows_redirects" in info_of(client_name).quirks)
    for headers in exchanges:
        assert "authorization" not in headers
        assert KEYS["AWS_ACCESS_KEY_ID"] not in str(headers)


def _asked_elsewhere_apart(client_name: str) -> list[dict[str, str]]:
    done = subprocess.run(
        [sys.executable, "-m", __name__, client_name],
        cwd=Path(__file__).parents[3],
        env=os.environ,
        capture_output=True,
        text=True,
        check=True,
    )
    exchanges: list[dict[str, str]] = json.loads(done.stdout)
    return exchanges


@pytest.mark.parametrize(
    "name", ["AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_TOKEN"]
)
def test_credentials_of_other_clouds_are_not_redirected(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Except for a shared access signature, which the redirecting host has received before."""
    exchanges: list[Exchange] = []

    def listens(exchange: Exchange) -> bool:
        exchanges.append(exchange)
        return fails(403)(exchange)

    secret = b64encode(b"what lets us in").decode()
    value = f"sv=1&sig={secret}" if name.endswith("SAS_TOKEN") else secret
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    monkeypatch.setenv(name, value)
    with FaultServer([listens] * 99) as other:

        def redirects(exchange: Exchange) -> bool:
            path = exchange.path.partition("?")[0]
            return fails(307, Location=f"{other.endpoint_url}{path}")(exchange)

        with FaultServer([redirects] * 99) as store:
            target = Target(bucket="b", protocol=StoreProtocol.AZ, endpoint_url=store.endpoint_url)
            client = open_client(target, Transfer(retries=0, timeout=5))
            for request in ("get", "put", "head", "list"):
                retrier = Retrier(client, 0, 1 << 62, random.Random(1))
                with pytest.raises(OperationError):
                    retrier.run(request, partial(REQUESTS[request], client))
            with pytest.raises(StoreError):
                resolve(target)
            assert len(store.seen) >= 5
    assert exchanges
    for exchange in exchanges:
        # The library adds the referring URL, with the query: its page describes it.
        message = exchange.headers.pop("referer", "")
        assert (secret in message) == name.endswith("SAS_TOKEN")
        assert secret not in f"{exchange.path} {exchange.headers}"
        assert "authorization" not in exchange.headers


def test_the_driver_does_not_follow_either() -> None:
    exchanges: list[str] = []

    def listens(exchange: Exchange) -> bool:
        exchanges.append(exchange.path)
        return works(exchange)

    with FaultServer([listens] * 9) as other:
        away = {"Location": f"{other.endpoint_url}/bucket", "x-amz-bucket-region": "eu-west-1"}
        with FaultServer([fails(307, **away)] * 9) as store:
            with pytest.raises(StoreError, match="is not followed") as caught:
                resolve(Target(bucket="bucket", endpoint_url=store.endpoint_url))
            target = Target(bucket="bucket", endpoint_url=store.endpoint_url)
            with pytest.raises(StoreError):
                delete(target, [f"{target.prefix}key"])
    assert "`endpoint_url`" in caught.value.hint
    assert not exchanges


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asked_elsewhere(sys.argv[1])))
