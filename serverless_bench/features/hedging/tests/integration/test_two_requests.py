"""Two requests for one read: which of them counts, and that both are rows of the record."""

import os
import random
import select
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from serverless_bench.base.clock import EpochClock, monotonic_ns
from serverless_bench.base.units import MIB, NS_PER_S
from serverless_bench.clients import open_client
from serverless_bench.clients.wire.connect import _tls_context
from serverless_bench.features.hedging.patience import Hedging
from serverless_bench.features.hedging.race import connect_beside
from serverless_bench.features.testing.client_parts import PatientMeter
from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.job.target import Target, Transfer
from serverless_bench.worker.operation import MeasuredOperation, measure
from serverless_bench.worker.operation_context import OperationContext
from serverless_bench.worker.retry import Retrier
from tests.commands.processes import PATIENCE_S
from tests.integration.clients.test_wire import answering
from tests.stores import faulty as fault
from tests.stores.faulty import Answer, Exchange, FaultServer
from tests.stores.network import certificate, server_context
from tests.stores.servers import KEYS

SIZE = MIB + 5
KEY = f"{'0' * 32}.{SIZE}"
AT_ONCE = 0.001


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("serverless_bench.base.clock.sleep", lambda _: None)


class Hedged(FaultServer):
    """A store, and a client that hedges its reads."""

    def retrier(
        self, *, hedge: float = AT_ONCE, deadline_s: float = 60, timeout_s: float = 20
    ) -> Retrier:
        target = Target(client="wire", bucket="bucket", endpoint_url=self.endpoint_url)
        self.transfer = Transfer(timeout=timeout_s)
        self.client = open_client(target, self.transfer)
        deadline_ns = monotonic_ns() + round(deadline_s * NS_PER_S)
        return Retrier(self.client, 0, deadline_ns, random.Random(1), hedging=Hedging(hedge))

    def __enter__(self) -> Self:
        self._peers: list[object] = []
        # By connection: on a busy machine the second request may be read before the first.
        self._roles, self.script = tuple(self.script), [self._answer] * 9
        return super().__enter__()

    def _spawn(self, target: Callable[..., None], *args: object) -> None:
        self._peers += [line.getpeername() for line in args if isinstance(line, socket.socket)]
        super()._spawn(target, *args)

    def _answer(self, exchange: Exchange) -> bool:
        number = self._peers.index(exchange.connection.getpeername())
        return (*self._roles, *[fault.works] * 9)[number](exchange)

    def __exit__(self, *raised: object) -> None:
        self.client.close()
        super().__exit__(*raised)

    def read(self, retrier: Retrier) -> MeasuredOperation:
        spec = OperationSpec(kind=OperationKind.GET, key=KEY, size=SIZE)
        return measure(OperationContext(spec, self.transfer, retrier), EpochClock())[0]


class Order:
    """Answers of two requests, of which one waits for the other."""

    def __init__(self) -> None:
        self.first_is_through, self.second_is_there = threading.Event(), threading.Event()

    def never(self, exchange: Exchange) -> bool:
        """Say nothing until the client hangs up."""
        exchange.over.wait(0)
        return bool(exchange.connection.recv(1))

    def after_second(self, answer: Answer) -> Answer:
        """Answer once the second request is there."""

        def held(exchange: Exchange) -> bool:
            assert self.second_is_there.wait(PATIENCE_S)
            goes_on = answer(exchange)
            self.first_is_through.set()
            return goes_on

        return held

    def second(self, answer: Answer, *, after_first: bool = False) -> Answer:
        """Answer the second request, at once or after the first was answered."""

        def reported(exchange: Exchange) -> bool:
            self.second_is_there.set()
            if after_first:
                assert self.first_is_through.wait(PATIENCE_S)
            return answer(exchange)

        return reported


@pytest.fixture
def order() -> Order:
    return Order()


def rows(done: MeasuredOperation) -> list[tuple[str | None, int | None, int]]:
    return [(one.error, one.status, one.number) for one in done.attempts]


def test_a_read_that_is_answered_in_time_is_requested_once() -> None:
    with Hedged() as store:
        done = store.read(store.retrier(hedge=PATIENCE_S / 2))
    assert rows(done) == [(None, 200, 0)]
    assert store.connections == len(store.seen) == 1


@pytest.mark.parametrize("tls", [False, True])
def test_the_second_answer_counts_if_the_first_does_not_come(
    order: Order, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, tls: bool
) -> None:
    path = certificate(tmp_path)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(path))
    _tls_context.cache_clear()
    context = server_context(path) if tls else None
    with Hedged([order.never], context) as store:
        retrier = store.retrier()
        done = store.read(retrier)
        assert rows(done) == [("hedged", None, 0), (None, 200, 0)]
        first, second = done.attempts
        assert (first.bytes, second.bytes) == (0, SIZE)
        assert first.start_ns < second.start_ns <= first.end_ns <= second.end_ns
        assert not second.reused
        assert done.operation.verified_bytes == done.operation.bytes == SIZE
        assert sum(moved for _, moved in done.step_rows) == SIZE
        # The connection that won is kept.
        retrier.done, retrier.hedging = [], None
        assert [one.reused for one in store.read(retrier).attempts] == [True]
        assert (store.connections, len(store.seen)) == (2, 3)
    _tls_context.cache_clear()


def test_the_first_answer_counts_if_it_comes_first(order: Order) -> None:
    with Hedged([order.after_second(fault.works), order.second(order.never)]) as store:
        done = store.read(store.retrier())
    assert rows(done) == [(None, 200, 0), ("hedged", None, 0)]
    assert done.operation.verified_bytes == SIZE


def test_a_second_request_that_fails_is_no_failure_of_the_read(order: Order) -> None:
    script = [
        order.after_second(fault.works),
        order.second(fault.fails(503, "SlowDown")),
    ]

    def later(exchange: Exchange) -> bool:
        assert order.second_is_there.wait(PATIENCE_S)
        assert store.hung_up.wait(PATIENCE_S)
        return fault.works(exchange)

    script[0] = later
    with Hedged(script) as store:
        done = store.read(store.retrier())
    assert rows(done) == [(None, 200, 0), ("throttled", 503, 0)]
    assert done.operation.error is None


def test_a_first_request_that_fails_leaves_the_read_to_the_second(order: Order) -> None:
    script = [
        order.after_second(fault.fails(500, "InternalError")),
        order.second(fault.works, after_first=True),
    ]
    with Hedged(script) as store:
        done = store.read(store.retrier())
    assert rows(done) == [("server_error", 500, 0), (None, 200, 0)]
    assert done.operation.error is None


def test_if_both_fail_the_first_failure_is_that_of_the_read(order: Order) -> None:
    script = [
        order.after_second(fault.fails(404, "NoSuchKey")),
        order.second(fault.fails(503, "SlowDown"), after_first=True),
    ]
    with Hedged(script) as store:
        done = store.read(store.retrier())
    assert {row[:2] for row in rows(done)} == {("not_found", 404), ("throttled", 503)}
    assert done.operation.error in {"not_found", "throttled"}
    assert len(store.seen) == 2


def test_a_connection_with_an_error_is_not_used_again() -> None:
    with Hedged([fault.fails(503, "SlowDown")]) as store:
        retrier = store.retrier(hedge=PATIENCE_S / 2)
        assert rows(store.read(retrier)) == [("throttled", 503, 0)]
        assert not vars(store.client)["_idle"]
        retrier.done = []
        assert rows(store.read(retrier)) == [(None, 200, 0)]


def test_a_failure_before_the_second_request_is_one_row() -> None:
    with Hedged([fault.resets_after(0)]) as store:
        done = store.read(store.retrier(hedge=PATIENCE_S / 2))
    assert rows(done) == [("connection_error", None, 0)]


def test_a_second_connection_that_cannot_be_opened_is_no_failure_of_the_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    is_closed, was_refused = threading.Event(), threading.Event()

    def tries(*arguments: Any) -> socket.socket:
        assert is_closed.wait(PATIENCE_S)
        try:
            return connect_beside(*arguments)
        finally:
            was_refused.set()

    def closes_the_door(exchange: Exchange) -> bool:
        store._listener.shutdown(socket.SHUT_RDWR)
        store._listener.close()
        is_closed.set()
        assert was_refused.wait(PATIENCE_S)
        return fault.works(exchange)

    monkeypatch.setattr("serverless_bench.features.hedging.race.connect_beside", tries)
    with Hedged([closes_the_door]) as store:
        done = store.read(store.retrier())
    assert rows(done) == [(None, 200, 0), ("connection_error", None, 0)]
    assert len(store.seen) == 1


class Mute(Hedged):
    """A store whose later connections get no handshake."""

    def _serve(self, connection: socket.socket) -> None:
        if self.connections > 1:
            self._open.append(connection)
            self.second_is_there.set()
            self._over.wait(PATIENCE_S)
        else:
            super()._serve(connection)

    second_is_there = threading.Event()


def test_an_answer_to_the_first_does_not_wait_for_the_handshake_of_the_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = certificate(tmp_path)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(path))
    _tls_context.cache_clear()

    def when_the_other_opens(exchange: Exchange) -> bool:
        assert Mute.second_is_there.wait(PATIENCE_S)
        return fault.works(exchange)

    with Mute([when_the_other_opens], server_context(path)) as store:
        done = store.read(store.retrier())
    _tls_context.cache_clear()
    # No second request was sent, so none is recorded.
    assert rows(done) == [(None, 200, 0)]


def test_a_flipped_byte_is_found_in_the_answer_that_counts(order: Order) -> None:
    with Hedged([order.never, fault.flips_a_byte_at(1000)]) as store:
        done = store.read(store.retrier())
    assert done.operation.error == "corrupt"
    assert (done.operation.verified_bytes, done.operation.bad_bytes) == (SIZE - 1, 1)
    assert rows(done) == [("hedged", None, 0), (None, 200, 0)]


def test_the_other_answer_is_not_verified(order: Order) -> None:
    def late(exchange: Exchange) -> bool:
        exchange.connection.recv(1)
        return fault.flips_a_byte_at(1000)(exchange)

    with Hedged([late]) as store:
        done = store.read(store.retrier())
    assert (done.operation.error, done.operation.verified_bytes) == (None, SIZE)
    assert done.operation.bad_ranges == 0


@pytest.mark.parametrize(
    ("limits", "error"), [({"deadline_s": 2}, "deadline"), ({"timeout_s": 2}, "timeout")]
)
def test_limits_hold_for_both(order: Order, limits: dict[str, float], error: str) -> None:
    with Hedged([order.never, order.never]) as store:
        done = store.read(store.retrier(**limits))
    assert rows(done) == [(error, None, 0)] * 2
    assert done.operation.error == error


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Restore Ctrl-C, which is ignored in background processes of scripts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_both_are_rows_after_ctrl_c(order: Order) -> None:
    def interrupts(exchange: Exchange) -> bool:
        os.kill(os.getpid(), signal.SIGINT)
        return order.never(exchange)

    with Hedged([order.never, interrupts]) as store:
        retrier = store.retrier()
        with pytest.raises(KeyboardInterrupt):
            store.read(retrier)
    assert [failure is not None for _, failure in retrier.done] == [True, True]
    assert all(meter.end_ns for meter, _ in retrier.done)


@pytest.mark.parametrize(("status", "counted"), [(200, 5000), (503, 0)])
def test_bytes_that_had_arrived_of_a_request_given_up_are_counted(
    status: int, counted: int
) -> None:
    head, body = b"HTTP/1.1 %d OK\r\nContent-Length: 9000\r\n\r\n" % status, bytes(5000)
    with answering(head + body, close=False) as connection:
        meter = PatientMeter()
        connection.ask(b"GET / HTTP/1.1\r\n\r\n", meter)
        assert select.select([connection.socket], [], [], PATIENCE_S)[0]
        connection.give_up(meter)
    # The buffer of this connection has room for a kibibyte, the kernel holds the rest.
    assert (meter.status, meter.bytes) == (status, counted)
