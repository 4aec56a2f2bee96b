"""Between client and store: TLS, proxies, names."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import psutil
import pytest

from serverless_bench.clients import open_client
from serverless_bench.clients.wire.connect import _tls_context
from serverless_bench.features.testing.client_parts import (
    SIZE,
    Collector,
    PatientMeter,
    RangeOf,
    content,
)
from serverless_bench.features.testing.clients import ClientContract
from serverless_bench.job.target import Addressing, Target, Transfer
from tests.contract.declared import clients_without, info_of
from tests.contract.test_clients import MOST_IN_FULL
from tests.stores.faulty import FaultServer
from tests.stores.network import (
    bundle_of,
    certificate,
    forward_proxy,
    server_context,
    tls_in_front_of,
)
from tests.stores.servers import Server, credentials


@pytest.fixture
def at_moto(moto: Server, stack: ExitStack, prefix: str) -> Target:
    stack.enter_context(credentials(moto.environment))
    boto3.setup_default_session()
    return Target(bucket=moto.bucket, endpoint_url=moto.endpoint_url, prefix=prefix)


@pytest.fixture
def trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = certificate(tmp_path)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(bundle_of(path)))
    _tls_context.cache_clear()
    yield path
    _tls_context.cache_clear()


PROXIED = clients_without("ignores_proxies", "one_store")
"""Clients with one store per process are in test_native_clients.py."""


@pytest.mark.parametrize("client_name", MOST_IN_FULL)
class TestOverTls(ClientContract):
    """The whole contract over https, with the embedded store behind."""

    @pytest.fixture
    def target(
        self, client_name: str, embedded: Server, prefix: str, stack: ExitStack, trusted: Path
    ) -> Target:
        stack.enter_context(credentials(embedded.environment))
        boto3.setup_default_session()
        front = stack.enter_context(tls_in_front_of(embedded.endpoint_url, server_context(trusted)))
        return Target(
            client=client_name,
            bucket=embedded.bucket,
            endpoint_url=f"https://127.0.0.1:{front.port}",
            prefix=prefix,
        )


def there_and_back(target: Target) -> list[str | None]:
    """Write and read one object, and return the addresses of the connections."""
    client = open_client(target, Transfer())
    key, sink = f"{target.prefix}k", Collector()
    meters = [PatientMeter(), PatientMeter()]
    client.put(key, RangeOf(key, 0, SIZE), meters[0])
    client.get(key, sink, meters[1])
    client.close()
    assert sink.joined() == content(key)
    return [meter.remote for meter in meters]


@pytest.mark.parametrize("client_name", clients_without("one_store"))
def test_a_bucket_may_stand_in_the_host_name(
    at_moto: Target, client_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up = resolve_locally(monkeypatch)
    port = at_moto.endpoint_url.rpartition(":")[2]
    target = replace(
        at_moto,
        client=client_name,
        endpoint_url=f"http://s3.localhost:{port}",
        addressing=Addressing.VIRTUAL,
    )
    with forward_proxy() as proxy:
        if "looks_up_names" in info_of(client_name).quirks:
            monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        there_and_back(target)
    assert f"{at_moto.bucket}.s3.localhost" in looked_up


def resolve_locally(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Let every name below localhost be this machine, as some resolvers do."""
    looked_up: set[str] = set()
    real = socket.getaddrinfo

    def lookup(host: str, *rest: Any, **more: Any) -> Any:
        looked_up.add(host)
        return real("127.0.0.1" if host.endswith(".localhost") else host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    return looked_up


@pytest.mark.parametrize("client_name", PROXIED)
def test_an_http_proxy_is_used(
    at_moto: Target, client_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with forward_proxy() as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        remotes = there_and_back(replace(at_moto, client=client_name))
    assert proxy.accepted >= 1
    if client_name == "wire":
        assert set(remotes) == {f"127.0.0.1:{proxy.port} (proxy)"}


@pytest.mark.parametrize("client_name", clients_without("one_store", "ignores_no_proxy"))
def test_no_proxy_is_honoured(
    at_moto: Target, client_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    there_and_back(replace(at_moto, client=client_name))


@pytest.mark.parametrize(
    # The scripted server has no ranges.
    "client_name",
    clients_without("ignores_proxies", "one_store", "ranges_always"),
)
def test_https_goes_through_a_proxy_in_a_tunnel(
    client_name: str, stack: ExitStack, trusted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack.enter_context(credentials({"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}))
    boto3.setup_default_session()
    key = f"{'0' * 32}.1000"
    with FaultServer(context=server_context(trusted)) as server, forward_proxy() as proxy:
        monkeypatch.setenv("https_proxy", f"http://user:word@127.0.0.1:{proxy.port}")
        target = Target(client=client_name, bucket="bucket", endpoint_url=server.endpoint_url)
        client = open_client(target, Transfer())
        sink = Collector()
        client.get(key, sink, PatientMeter())
        client.close()
    assert sink.joined() == content(key, 1000)
    assert proxy.accepted == 1


def test_a_request_under_way_leaves_no_connection_to_a_client_that_closes(
    embedded: Server, prefix: str, stack: ExitStack
) -> None:
    stack.enter_context(credentials(embedded.environment))
    target = Target(bucket=embedded.bucket, endpoint_url=embedded.endpoint_url, prefix=prefix)
    client = open_client(target, Transfer())
    key, met = f"{prefix}k", PatientMeter()
    client.put(key, RangeOf(key, 0, SIZE), PatientMeter())

    class Closing(Collector):
        def write_at(self, offset: int, data: memoryview) -> None:
            client.close()
            super().write_at(offset, data)

    before = psutil.Process().net_connections()
    client.get(key, Closing(), met)
    # The connection of the put was also used for the get, and is closed.
    assert met.reused
    after = psutil.Process().net_connections()
    assert {one.laddr for one in before} - {one.laddr for one in after}


def test_a_request_after_the_end_of_its_client_leaves_no_connection(
    embedded: Server, prefix: str, stack: ExitStack
) -> None:
    """A driver that is interrupted closes its client under threads that begin a request."""
    stack.enter_context(credentials(embedded.environment))
    target = Target(bucket=embedded.bucket, endpoint_url=embedded.endpoint_url, prefix=prefix)
    client = open_client(target, Transfer())
    client.close()
    before = psutil.Process().net_connections()
    client.put(f"{prefix}k", RangeOf(f"{prefix}k", 0, SIZE), PatientMeter())
    after = psutil.Process().net_connections()
    assert not {one.laddr for one in after} - {one.laddr for one in before}
