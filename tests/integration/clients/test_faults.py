"""Each client with a misbehaving store: one request, one row, the right error word."""

import random
from collections.abc import Iterator
from itertools import accumulate, pairwise
from pathlib import Path

import boto3
import pytest
from botocore import exceptions as boto

from serverless_bench.base.clock import EpochClock, monotonic_ns
from serverless_bench.base.errors import OperationError
from serverless_bench.base.units import MIB, NS_PER_S
from serverless_bench.clients import CLIENTS, open_client
from serverless_bench.clients.base import Client
from serverless_bench.clients.boto3 import ERRORS
from serverless_bench.clients.wire.connect import _tls_context
from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.job.target import Target, Transfer
from serverless_bench.rundir.record import FoundBytes
from serverless_bench.worker.operation import MeasuredOperation, measure
from serverless_bench.worker.operation_context import OperationContext
from serverless_bench.worker.retry import Retrier
from tests.commands.processes import PATIENCE_S, until
from tests.contract.declared import clients_without
from tests.stores import faulty as fault
from tests.stores.faulty import Answer, FaultServer
from tests.stores.network import certificate, server_context
from tests.stores.servers import KEYS

SIZE = 3 * MIB + 5
KEY = f"{'0' * 32}.{SIZE}"
PUT, GET = OperationKind.PUT, OperationKind.GET

# The others are in test_native_clients.py.
pytestmark = pytest.mark.parametrize("client_name", clients_without("own_attempts"))


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("serverless_bench.base.clock.sleep", lambda _: None)


@pytest.fixture
def opened() -> Iterator[list[Client]]:
    clients: list[Client] = []
    yield clients
    for client in clients:
        client.close()


class Store:
    """One client with one scripted server."""

    def __init__(self, server: FaultServer, client_name: str, opened: list[Client]) -> None:
        self.server = server
        self.client_name = client_name
        self.opened = opened

    def run(
        self,
        kind: OperationKind,
        *,
        deadline_s: float = 60,
        retries: int = 0,
        timeout_s: float = 20,
    ) -> MeasuredOperation:
        transfer = Transfer(retries=retries, timeout=timeout_s)
        if not self.opened:
            target = Target(
                client=self.client_name, bucket="bucket", endpoint_url=self.server.endpoint_url
            )
            self.opened.append(open_client(target, transfer))
        deadline_ns = monotonic_ns() + round(deadline_s * NS_PER_S)
        retrier = Retrier(self.opened[0], retries, deadline_ns, random.Random(1))
        spec = OperationSpec(kind=kind, key=KEY, size=SIZE)
        return measure(OperationContext(spec, transfer, retrier), EpochClock())[0]


ONE_TRY = [
    pytest.param(PUT, fault.fails(503, "SlowDown"), "throttled", 503, id="slow down"),
    pytest.param(GET, fault.fails(503), "throttled", 503, id="503 without words"),
    pytest.param(GET, fault.fails(429), "throttled", 429, id="429"),
    pytest.param(PUT, fault.fails(500, "InternalError"), "server_error", 500, id="500"),
    pytest.param(GET, fault.fails(502), "server_error", 502, id="502"),
    pytest.param(GET, fault.fails(404, "NoSuchKey"), "not_found", 404, id="no such key"),
    pytest.param(PUT, fault.fails(403, "AccessDenied"), "access_denied", 403, id="denied"),
    pytest.param(GET, fault.fails(400, "ExpiredToken"), "access_denied", 400, id="expired"),
    pytest.param(PUT, fault.fails(400, "MalformedXML"), "bad_request", 400, id="400"),
    pytest.param(PUT, fault.resets_after(MIB), "connection_error", None, id="reset mid-put"),
    pytest.param(GET, fault.resets_after(0), "connection_error", None, id="reset before answer"),
    pytest.param(GET, fault.truncates_after(MIB), "connection_error", 200, id="truncated get"),
    pytest.param(GET, fault.truncates_after(0), "connection_error", 200, id="head and no body"),
]


@pytest.mark.parametrize(("kind", "answer", "error", "status"), ONE_TRY)
def test_a_fault_is_one_request_and_one_row(
    client_name: str,
    opened: list[Client],
    kind: OperationKind,
    answer: Answer,
    error: str,
    status: int | None,
) -> None:
    with FaultServer([answer] * 9) as server:
        done = Store(server, client_name, opened).run(kind)
    assert len(server.seen) == 1
    if status == 200 and CLIENTS.load(client_name).info.attempts == "hidden":
        # Some libraries hide the status of an answer that began well.
        status = done.attempts[0].status
    assert [(a.error, a.status) for a in done.attempts] == [(error, status)]
    assert done.operation.error == error


@pytest.mark.parametrize(("kind", "answer", "error", "status"), ONE_TRY)
def test_transient_errors_are_retried_and_counted(
    client_name: str,
    opened: list[Client],
    kind: OperationKind,
    answer: Answer,
    error: str,
    status: int | None,
) -> None:
    del status
    passes = error not in {"not_found", "access_denied", "bad_request"}
    with FaultServer([answer, answer]) as server:
        done = Store(server, client_name, opened).run(kind, retries=2)
    expected = [error, error, None] if passes else [error]
    assert [a.error for a in done.attempts] == expected
    assert len(server.seen) == len(expected)
    if passes:
        assert done.operation.error is None
        assert done.operation.bytes == sum(moved for _, moved in done.step_rows) == SIZE


def test_nonsense_is_no_response(client_name: str, opened: list[Client]) -> None:
    with FaultServer([fault.talks_nonsense]) as server:
        done = Store(server, client_name, opened).run(GET)
    assert done.operation.error in {"bad_response", "connection_error"}
    assert len(server.seen) == 1


def test_a_response_before_the_end_of_the_body_is_seen(
    client_name: str, opened: list[Client]
) -> None:
    with FaultServer([fault.refuses_early]) as server:
        done = Store(server, client_name, opened).run(PUT)
    assert done.operation.error in {"throttled", "connection_error"}
    assert len(server.seen) == 1


def test_a_flipped_byte_is_found(client_name: str, opened: list[Client]) -> None:
    with FaultServer([fault.flips_a_byte_at(2_000_000)]) as server:
        done = Store(server, client_name, opened).run(GET)
    (bad,) = done.bad_ranges
    assert (bad.offset, bad.length, bad.found) == (2_000_000, 1, FoundBytes.UNKNOWN)
    assert (done.operation.error, done.operation.verified_bytes) == ("corrupt", SIZE - 1)


def test_a_silent_store_times_out(client_name: str, opened: list[Client]) -> None:
    with FaultServer([fault.stalls_after(MIB)]) as server:
        done = Store(server, client_name, opened).run(GET, timeout_s=0.3)
        # A busy machine may let the client give up before the server reads the request.
        until(lambda: server.seen)
    assert done.operation.error == "timeout"
    assert len(server.seen) == 1


def test_a_connection_that_the_store_dropped_is_not_used_again(
    client_name: str, opened: list[Client]
) -> None:
    with FaultServer([fault.closes_silently]) as server:
        store = Store(server, client_name, opened)
        assert store.run(PUT).operation.error is None
        assert server.hung_up.wait(PATIENCE_S)
        assert store.run(GET).operation.error is None
    assert server.connections == 2


def test_a_connection_is_used_again(client_name: str, opened: list[Client]) -> None:
    with FaultServer() as server:
        store = Store(server, client_name, opened)
        done = [store.run(PUT), store.run(GET), store.run(GET)]
    # Others keep connections for each kind of request, or for each of their threads.
    if CLIENTS.load(client_name).info.attempts == "exact":
        assert server.connections == 1
    if client_name == "wire":
        assert [m.attempts[0].reused for m in done] == [False, True, True]
        address = server.endpoint_url.removeprefix("http://")
        assert {m.attempts[0].remote for m in done} == {address}


def test_a_redirect_is_followed_and_both_attempts_are_rows(
    client_name: str, opened: list[Client]
) -> None:
    # To the same host; test_redirects.py has redirects to other hosts, which are not followed.
    def redirects(exchange: fault.Exchange) -> bool:
        exchange.drain()
        there = exchange.headers["host"]
        xml = f"<Error><Code>TemporaryRedirect</Code><Endpoint>{there}</Endpoint></Error>"
        exchange.say(307, xml.encode(), {"Location": f"http://{there}/bucket/{KEY}"})
        return True

    with FaultServer([redirects]) as server:
        done = Store(server, client_name, opened).run(GET)
    if CLIENTS.load(client_name).info.attempts == "exact":
        assert [(a.error, a.status) for a in done.attempts] == [("wrong_region", 307), (None, 200)]
    assert done.operation.error is None
    assert len(server.seen) == 2


def test_a_bucket_in_another_region_is_signed_for_that_region(
    client_name: str, opened: list[Client]
) -> None:
    regions: list[str] = []

    def picky(exchange: fault.Exchange) -> bool:
        region = exchange.headers["authorization"].split("/")[2]
        regions.append(region)
        if region == "eu-west-1":
            return fault.works(exchange)
        xml = "<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-west-1</Region></Error>"
        exchange.drain()
        exchange.say(400, xml.encode())
        return True

    with FaultServer([picky] * 3) as server:
        done = Store(server, client_name, opened).run(PUT)
    assert done.operation.error is None
    assert regions == ["us-east-1", "eu-west-1"]


def test_https_is_checked_against_the_given_certificate(
    client_name: str, opened: list[Client], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = certificate(tmp_path)
    _tls_context.cache_clear()
    with FaultServer(context=server_context(path)) as server:
        store = Store(server, client_name, opened)
        assert store.run(GET).operation.error == "certificate"
        opened.pop().close()
        monkeypatch.setenv("AWS_CA_BUNDLE", str(path))
        _tls_context.cache_clear()
        boto3.setup_default_session()
        assert store.run(PUT).operation.error is None
        assert store.run(GET).operation.verified_bytes == SIZE
    _tls_context.cache_clear()


class TestProgress:
    def test_points_are_at_most_a_quarter_of_a_second_apart(
        self, client_name: str, opened: list[Client]
    ) -> None:
        with FaultServer([fault.drips(SIZE // 40, 0.025)]) as server:
            done = Store(server, client_name, opened).run(GET)
        assert done.operation.bytes == SIZE
        times = [0, *accumulate(step_ns for step_ns, _ in done.step_rows)]
        span = times[-1]
        assert span > 0.9 * NS_PER_S
        if client_name == "wire":
            # Most of them: a busy machine stops a process for longer now and then.
            assert sorted(b - a for a, b in pairwise(times))[len(times) // 2] <= 250_000_000

    def test_a_function_stops_at_its_deadline_in_the_middle_of_a_stall(
        self, client_name: str, opened: list[Client]
    ) -> None:
        if client_name != "wire":
            pytest.skip("boto3 notices a deadline when a byte moves, not before")
        with FaultServer([fault.stalls_after(MIB)]) as server:
            done = Store(server, client_name, opened).run(GET, deadline_s=3, timeout_s=PATIENCE_S)
        # Not at its timeout, nor with the store, which only ends with the test.
        assert done.operation.error == "deadline"
        assert done.attempts[0].bytes == MIB


def test_every_error_of_botocore_has_a_word(client_name: str) -> None:
    del client_name
    ours = {name: c for name, c in vars(boto).items() if isinstance(c, type)}
    raised = [c for c in ours.values() if issubclass(c, boto.BotoCoreError)]
    for theirs in raised:
        word = next((w for t, w in ERRORS.items() if issubclass(theirs, t)), None)
        assert word is not None
        assert issubclass(word, OperationError)
