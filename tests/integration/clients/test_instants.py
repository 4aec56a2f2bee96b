"""Times, attempts and ranges that clients report, compared with those of the store."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

import boto3
import pytest

from serverless_bench.base.errors import OperationError
from serverless_bench.base.units import MIB
from serverless_bench.clients import CLIENTS, open_client
from serverless_bench.clients.base import Client
from serverless_bench.clients.wire.connect import _tls_context
from serverless_bench.features.testing.client_parts import Collector, PatientMeter, RangeOf, content
from serverless_bench.job.target import Target, Transfer
from serverless_bench.rundir.record import Shown
from serverless_bench.worker.meter import Meter, unseen
from tests.contract.declared import info_of
from tests.stores import faulty as fault
from tests.stores.faulty import Answer, Exchange, FaultServer
from tests.stores.late import AT_ONCE, DELAY_S, is_late, see
from tests.stores.network import certificate, server_context
from tests.stores.servers import KEYS

EXACT = [name for name in CLIENTS if CLIENTS.load(name).info.attempts == "exact"]
SIZE = 3 * MIB + 5
KEY = f"{'0' * 32}.{SIZE}"
PATIENCE_S = 60


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    boto3.setup_default_session()


@pytest.mark.parametrize("name", CLIENTS)
def test_a_late_store_is_seen_as_late_or_not_at_all(name: str) -> None:
    with FaultServer(repeat(is_late)) as server:
        if "one_store" in info_of(name).quirks:
            command = [sys.executable, "-m", "tests.stores.late", name, server.endpoint_url]
            done = subprocess.run(
                command, env=os.environ, capture_output=True, text=True, check=True
            )
            found = json.loads(done.stdout)
        else:
            found = see(name, server.endpoint_url)
    shows = CLIENTS.load(name).info.shows
    for way, (ttfb_s, ack_s) in found.items():
        put = way.startswith("put")
        assert (ttfb_s is not None) == (Shown.FIRST_BYTE in shows and not put), way
        if way == AT_ONCE:
            assert (ack_s is not None) == (Shown.ACKNOWLEDGED in shows)
        # For other bodies it is known if the kernel timestamps it.
        assert ack_s is None or put, way
        assert ttfb_s is None or ttfb_s >= DELAY_S, way
        assert ack_s is None or ack_s >= DELAY_S, way


class Telling(Meter):
    """A meter with events that a store can wait for."""

    __slots__ = ("first_came", "last_sent")

    def __init__(self) -> None:
        super().__init__("t", part=0, number=0, wait_ns=0, deadline_ns=1 << 62, on_moved=unseen)
        self.first_came, self.last_sent = threading.Event(), threading.Event()

    def first_byte(self) -> None:
        super().first_byte()
        self.first_came.set()

    def sent(self) -> None:
        super().sent()
        self.last_sent.set()


@dataclass
class Store:
    """A scripted server, and a client of it."""

    client: Client
    server: FaultServer


Opened = Callable[..., Store]


@pytest.fixture
def opened(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Opened]:
    made: list[Store] = []

    def make(name: str, answer: Answer, scheme: str = "http", **options: object) -> Store:
        context = None
        if scheme == "https":
            path = certificate(tmp_path)
            monkeypatch.setenv("AWS_CA_BUNDLE", str(path))
            _tls_context.cache_clear()
            context = server_context(path)
        server = FaultServer(repeat(answer), context)
        server.__enter__()
        target = Target(
            client=name,
            bucket="bucket",
            endpoint_url=server.endpoint_url,
            client_option=tuple((name, str(value)) for name, value in options.items()),
        )
        made.append(Store(open_client(target, Transfer(timeout=PATIENCE_S)), server))
        return made[-1]

    yield make
    for store in made:
        store.client.close()
        store.server.__exit__()
    _tls_context.cache_clear()


def showing(sign: Shown) -> list[str]:
    return [name for name in CLIENTS if sign in CLIENTS.load(name).info.shows]


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("name", showing(Shown.FIRST_BYTE))
def test_the_first_byte_is_reported_before_the_second_arrives(
    name: str, scheme: str, opened: Opened
) -> None:
    meter = Telling()
    in_time: list[bool] = []

    def answer(exchange: Exchange) -> bool:
        data = exchange.content()
        exchange.say(200, data[:1], {"Content-Length": str(len(data))})
        in_time.append(meter.first_came.wait(PATIENCE_S))
        exchange.connection.sendall(data[1:])
        return True

    sink = Collector()
    opened(name, answer, scheme).client.get(KEY, sink, meter)
    assert in_time == [True]
    assert sink.joined() == content(KEY, SIZE)


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("name", showing(Shown.ACKNOWLEDGED))
def test_the_last_byte_is_reported_before_the_answer(
    name: str, scheme: str, opened: Opened
) -> None:
    meter = Telling()
    in_time: list[bool] = []

    def answer(exchange: Exchange) -> bool:
        exchange.drain()
        in_time.append(meter.last_sent.wait(PATIENCE_S))
        exchange.say(200, headers={"ETag": '"etag"'})
        return True

    opened(name, answer, scheme).client.put(KEY, RangeOf(KEY, 0, SIZE), meter)
    assert in_time == [True]
    assert meter.bytes == SIZE


@pytest.mark.parametrize("name", showing(Shown.ACKNOWLEDGED))
def test_the_last_byte_is_not_reported_while_the_store_reads_none(
    name: str, opened: Opened
) -> None:
    meter = Telling()
    too_early: list[bool] = []
    # More than the kernel keeps on both sides of a connection.
    size = 48 * MIB

    def answer(exchange: Exchange) -> bool:
        exchange.drain(MIB)
        too_early.append(meter.last_sent.is_set())
        exchange.headers["content-length"] = str(size - MIB + len(exchange.body_start))
        exchange.headers.pop("expect", None)
        exchange.drain()
        exchange.say(200, headers={"ETag": '"etag"'})
        return True

    opened(name, answer).client.put("key", RangeOf("key", 0, size), meter)
    assert too_early == [False]
    assert meter.last_sent.is_set()


def test_a_put_that_a_library_splits_shows_no_last_byte(opened: Opened) -> None:
    for parallel in (1, 3):
        store = opened("minio", is_late, part_mb=5, num_parallel_uploads=parallel)
        meter = PatientMeter()
        store.client.put("key", RangeOf("key", 0, 6 * MIB), meter)
        assert len(store.server.seen) == 4
        assert meter.last_byte_sent_ns is None
        assert meter.bytes == 6 * MIB


def test_options_decide_the_exposed_events() -> None:
    minio = CLIENTS.load("minio").info
    split = minio.with_options([("part_mb", "5")])
    assert minio.with_options([]).shows == minio.shows
    assert minio.shows - split.shows == {Shown.ACKNOWLEDGED}


REQUESTS: dict[str, Callable[[Client, Meter], object]] = {
    "put": lambda client, meter: client.put(KEY, RangeOf(KEY, 0, SIZE), meter),
    "get": lambda client, meter: client.get(KEY, Collector(), meter),
    "range": lambda client, meter: client.get(KEY, Collector(), meter, offset=1, length=5),
    "create": lambda client, meter: client.create_multipart(KEY, meter),
    "part": lambda client, meter: client.upload_part(KEY, "1", 1, RangeOf(KEY, 0, 9), meter),
    "complete": lambda client, meter: client.complete_multipart(KEY, "1", ['"e"'], meter),
    "abort": lambda client, meter: client.abort_multipart(KEY, "1", meter),
    "head": lambda client, meter: client.head(KEY, meter),
    "list": lambda client, meter: client.list_keys("p/", "", meter),
    "delete": lambda client, meter: client.delete(KEY, meter),
    "delete many": lambda client, meter: client.delete_many([KEY, "other"], meter),
    "copy": lambda client, meter: client.copy("source", KEY, meter),
}


def moved(exchange: Exchange) -> bool:
    exchange.drain()
    body = b"" if exchange.method == "HEAD" else b"<Error><Code>PermanentRedirect</Code></Error>"
    exchange.say(301, body, {"x-amz-bucket-region": "eu-1", "Connection": "close"})
    return False


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(fault.fails(503), id="503"),
        pytest.param(fault.fails(500), id="500"),
        pytest.param(fault.fails(408), id="408"),
        pytest.param(fault.resets_after(0), id="reset"),
        pytest.param(fault.closes_without_a_word, id="closed"),
        pytest.param(moved, id="moved"),
    ],
)
@pytest.mark.parametrize("name", EXACT)
def test_exact_means_one_request_for_every_call_and_answer(
    name: str, answer: Answer, opened: Opened
) -> None:
    store = opened(name, answer)
    for what, ask in REQUESTS.items():
        before = len(store.server.seen)
        with pytest.raises(OperationError):
            ask(store.client, PatientMeter())
        assert len(store.server.seen) == before + 1, what


PUT_FAILS = """
import sys
from serverless_bench.clients import open_client
from serverless_bench.base.errors import OperationError
from serverless_bench.job.target import Transfer
from serverless_bench.job.target import Target
from serverless_bench.features.testing.client_parts import Collector, RangeOf, PatientMeter
client = open_client(Target(client="s3dlio", bucket="b", endpoint_url=sys.argv[1]), Transfer())
for ask in (
    lambda: client.put("key", RangeOf("key", 0, 1000), PatientMeter()),
    lambda: client.get("key", Collector(), PatientMeter(), offset=0, length=10),
    lambda: client.head("key", PatientMeter()),
    lambda: client.delete("key", PatientMeter()),
):
    try:
        ask()
    except OperationError:
        continue
    sys.exit(1)
"""


def test_s3dlio_does_not_try_again() -> None:
    with FaultServer(repeat(fault.fails(503))) as server:
        command = [sys.executable, "-c", PUT_FAILS, server.endpoint_url]
        subprocess.run(command, env=os.environ, check=True)
    assert len(server.seen) == 4
