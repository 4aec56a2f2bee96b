from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from typing import ClassVar

import boto3
import pytest

from serverless_bench.base.clock import monotonic_ns, sleep
from serverless_bench.base.errors import OperationError
from serverless_bench.base.units import NS_PER_S
from serverless_bench.clients import CLIENTS
from serverless_bench.clients.base import Client
from serverless_bench.features.testing.client_parts import Collector, PatientMeter, RangeOf, needs
from serverless_bench.features.testing.clients import ClientContract
from serverless_bench.job.target import StoreProtocol, Target
from tests.contract.declared import clients_without, info_of
from tests.stores import servers
from tests.stores.servers import Server, credentials

FIRST = ("boto3", "wire")
"""These show how a store behaves; the others test every store in `make full`."""
MANY = clients_without("one_store")
"""A process of the others has one store."""
MOST_IN_FULL = [
    pytest.param(name, marks=() if name in FIRST else pytest.mark.full) for name in MANY
]


class OnServer(ClientContract):
    """The suite for every client of ours, against one server."""

    @pytest.fixture
    def server(self) -> Server:
        raise NotImplementedError

    @pytest.fixture
    def target(self, client_name: str, server: Server, prefix: str, stack: ExitStack) -> Target:
        stack.enter_context(credentials(server.environment))
        # boto3 remembers the credentials of the first client of a process.
        boto3.setup_default_session()
        return Target(
            client=client_name,
            bucket=server.bucket,
            protocol=server.protocol,
            endpoint_url=server.endpoint_url,
            prefix=prefix,
        )


@pytest.mark.parametrize("client_name", CLIENTS)
class TestOnSeaweedFS(OnServer):
    @pytest.fixture
    def server(self, embedded: Server) -> Server:
        return embedded

    @pytest.mark.full
    @needs("list", "delete_many")
    def test_a_long_listing_has_pages(self, client: Client, target: Target) -> None:
        keys = [f"{target.prefix}{number:04}" for number in range(1001)]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda key: client.put(key, RangeOf(key, 0, 1), PatientMeter()), keys))
        assert client.list_keys(target.prefix, "", PatientMeter()) == (keys[:1000], True)
        assert client.list_keys(target.prefix, keys[999], PatientMeter()) == (keys[1000:], False)
        client.delete_many(keys[:1000], PatientMeter())
        assert client.list_keys(target.prefix, "", PatientMeter()) == (keys[1000:], False)


class TestObstoreOnAzurite(OnServer):
    wrong_credentials: ClassVar[Mapping[str, str]] = {
        "AZURE_STORAGE_ACCOUNT_KEY": b64encode(b"wrong").decode()
    }
    needed_credentials: ClassVar[Sequence[str]] = ("AZURE_STORAGE_ACCOUNT_KEY",)

    @pytest.fixture
    def client_name(self) -> str:
        return "obstore"

    @pytest.fixture
    def server(self, azurite: Server) -> Server:
        return azurite


@pytest.mark.parametrize("client_name", MOST_IN_FULL)
class TestOnMoto(OnServer):
    store_checks_credentials = False

    @pytest.fixture
    def server(self, moto: Server) -> Server:
        return moto


@pytest.mark.parametrize("client_name", MOST_IN_FULL)
class TestOnRclone(OnServer):
    def lacks(self, client: str) -> frozenset[str]:
        # It answers a range with status 200, and does not look at conditions.
        ranges = ("range",) if "partial_status" in info_of(client).quirks else ()
        return frozenset({"conditions", *ranges})

    @pytest.fixture
    def server(self, client_name: str, rclone: Server) -> Server:
        if "strict_uploads" in info_of(client_name).quirks:
            pytest.skip("what rclone says of an upload in parts is nothing to this library")
        return rclone


@pytest.fixture(scope="module")
def versitygw(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with servers.versitygw(tmp_path_factory.mktemp("versitygw")) as server:
        yield server


@pytest.fixture(scope="module")
def s3s_fs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with servers.s3s_fs(tmp_path_factory.mktemp("s3s-fs")) as server:
        yield server


@pytest.mark.full  # built from source, in minutes
@pytest.mark.parametrize("client_name", MANY)
class TestOnVersityGW(OnServer):
    def deviations(self, client: str) -> Mapping[str, str]:
        if "bare_puts" not in info_of(client).quirks:
            return {}
        cut = "stores what has come of a put that was cut off, if nothing says what the whole is"
        return {"test_a_put_that_is_stopped_leaves_no_object": cut}

    @pytest.fixture
    def server(self, versitygw: Server) -> Server:
        return versitygw


@pytest.mark.full  # built from source, in minutes
@pytest.mark.parametrize("client_name", MANY)
class TestOnS3sFs(OnServer):
    def lacks(self, client: str) -> frozenset[str]:
        # It lists no entity tags.
        return frozenset({"list"} if "strict_listings" in info_of(client).quirks else ())

    def deviations(self, client: str) -> Mapping[str, str]:
        plain = "says that it has encoded the keys of a listing, and has not"
        is_asked = "plain_listings" not in info_of(client).quirks
        listing = {"test_a_listing_is_sorted_and_complete": plain} if is_asked else {}
        return {
            **listing,
            "test_any_printable_key_works": plain,
            "test_an_aborted_upload_leaves_nothing": "does not list uploads",
        }

    @pytest.fixture
    def server(self, s3s_fs: Server) -> Server:
        return s3s_fs


@pytest.fixture(scope="module")
def loopback(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with servers.loopback(log=tmp_path_factory.mktemp("loopback") / "out") as server:
        yield server


@pytest.mark.parametrize("client_name", MOST_IN_FULL)
class TestOnLoopback(OnServer):
    store_checks_credentials = False

    def lacks(self, client: str) -> frozenset[str]:
        del client
        return frozenset({"copy"})

    @pytest.fixture
    def server(self, loopback: Server) -> Server:
        return loopback


class TestObstoreOnLoopbackAsGoogle(OnServer):
    store_checks_credentials = False
    needed_credentials: ClassVar[Sequence[str]] = ()

    @pytest.fixture
    def client_name(self) -> str:
        return "obstore"

    @pytest.fixture
    def server(self, loopback: Server) -> Server:
        return replace(loopback, protocol=StoreProtocol.GS)


BUCKET = "bench--use1-az4--x-s3"


@pytest.fixture(scope="module")
def express(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A loopback store with sessions that end every two seconds."""
    with servers.loopback(
        "--express", "2", log=tmp_path_factory.mktemp("express") / "out"
    ) as server:
        yield replace(server, bucket=BUCKET)


@pytest.mark.parametrize("client_name", [n for n in CLIENTS if info_of(n).express])
class TestOnADirectoryBucket(OnServer):
    store_checks_credentials = False

    def lacks(self, client: str) -> frozenset[str]:
        del client
        # It lists without order, and only some prefixes; the tests below are for its supported
        # lists.
        return frozenset({"copy", "list"})

    @pytest.fixture
    def server(self, express: Server) -> Server:
        return express

    def test_a_listing_is_complete(self, client: Client, target: Target) -> None:
        keys = {f"{target.prefix}{name}" for name in ("1", "2", "deep/er/3")}
        for key in keys:
            client.put(key, RangeOf(key, 0, 10), PatientMeter())
        found, more = client.list_keys(target.prefix, "", PatientMeter())
        assert ({*found}, more) == (keys, False)
        with pytest.raises(OperationError):
            client.list_keys(target.prefix.rstrip("/"), "", PatientMeter())

    def test_no_request_is_lost_when_sessions_end(
        self, client: Client, target: Target, key: str
    ) -> None:
        """For at least two sessions, from four threads, without a retry."""
        client.put(key, RangeOf(key, 0, 1000), PatientMeter())
        end_ns = monotonic_ns() + 5 * NS_PER_S

        def until_the_end(_: int) -> int:
            count = 0
            # In a store that is busy with something else, two may take longer than that.
            while monotonic_ns() < end_ns or count < 2:
                client.get(key, Collector(), PatientMeter())
                count += 1
                # Four hundred a second meet the end of a session; thousands only cost more.
                sleep(0.01)
            return count

        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(until_the_end, range(4))) > 4
