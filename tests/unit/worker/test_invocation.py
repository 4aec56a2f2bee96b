import random
import resource
import sys
from dataclasses import replace

import pytest

from serverless_bench.base.clock import EpochClock, monotonic_ns
from serverless_bench.base.errors import (
    AccessDenied,
    ConnectionLost,
    NotFound,
    OperationError,
    ServerFault,
    Throttled,
    WrongRegion,
)
from serverless_bench.base.units import MIB
from serverless_bench.clients.base import Exchange, Source
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.job.target import Transfer
from serverless_bench.payload.keystream import Keystream
from serverless_bench.worker import invocation, runner
from serverless_bench.worker import meter as meter_module
from serverless_bench.worker.invocation import run_invocation
from serverless_bench.worker.operation import MeasuredOperation, measure
from serverless_bench.worker.operation_context import OperationContext
from serverless_bench.worker.retry import THROTTLED_S, Retrier
from tests.data.runs import job
from tests.stores.virtual_time import virtual_time
from tests.unit.flaky import FlakyClient

SIZE = 1000
KEY = f"{'0' * 32}.{SIZE}"


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Record every pause instead of waiting."""
    made: list[float] = []
    monkeypatch.setattr("serverless_bench.base.clock.sleep", made.append)
    return made


def run(
    client: FlakyClient,
    kind: OperationKind = OperationKind.PUT,
    *,
    transfer: Transfer | None = None,
    size: int | None = SIZE,
    deadline_ns: int | None = None,
) -> MeasuredOperation:
    transfer = transfer or Transfer()
    retrier = Retrier(
        client,
        transfer.retries,
        monotonic_ns() + 10**13 if deadline_ns is None else deadline_ns,
        random.Random(1),
    )
    spec = OperationSpec(kind=kind, key=KEY, size=size)
    return measure(OperationContext(spec, transfer, retrier), EpochClock())[0]


def content(size: int = SIZE, key: str = KEY) -> bytes:
    data = bytearray(size)
    Keystream(key).readinto_at(0, data)
    return bytes(data)


def test_a_put_stores_the_keystream_and_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    # The answer comes immediately, unlike that of a store.
    monkeypatch.setattr(meter_module, "_AT_ONCE_NS", 0)
    client = FlakyClient()
    done = run(client)
    assert client.objects[KEY] == content()
    op = done.operation
    assert (op.bytes, op.error, op.first_byte_ns) == (SIZE, None, None)
    assert op.last_byte_sent_ns is not None
    assert op.start_ns <= op.last_byte_sent_ns <= op.end_ns
    assert [a.request_id for a in done.attempts] == ["good"]


def test_every_attempt_is_a_row_with_its_status_and_its_pause(waits: list[float]) -> None:
    client = FlakyClient({"put": [ServerFault("x", status=500), ConnectionLost("reset")]})
    done = run(client)
    assert done.operation.error is None
    assert [(a.number, a.status, a.error) for a in done.attempts] == [
        (0, 500, "server_error"),
        (1, None, "connection_error"),
        (2, 200, None),
    ]
    assert [a.wait_ns / 1e9 for a in done.attempts] == pytest.approx([0, *waits], abs=1e-9)
    assert [a.bytes for a in done.attempts] == [10, 10, SIZE]
    assert done.operation.bytes == sum(moved for _, moved in done.step_rows) == SIZE


def test_pauses_are_jittered_below_a_doubling_bound(waits: list[float]) -> None:
    errors = [ServerFault("x", status=500)] * 12
    run(FlakyClient({"put": errors}), transfer=Transfer(retries=12))
    assert len(waits) == 12
    assert all(0 <= wait <= min(20, 0.1 * 2 ** (n + 1)) for n, wait in enumerate(waits))
    assert len(set(waits)) == 12


def test_the_store_may_say_how_long_to_wait(waits: list[float]) -> None:
    client = FlakyClient({"put": [Throttled("SlowDown", status=503, retry_after_s=7)]})
    run(client)
    assert waits == [7]


def test_throttled_requests_are_retried_by_time_and_not_by_number() -> None:
    transfer = Transfer(retries=2)
    with virtual_time() as time:
        errors = [Throttled("x", status=503, retry_after_s=1)] * 20
        done = run(
            FlakyClient({"put": errors}), transfer=transfer, deadline_ns=time.now_ns + 10**12
        )
        assert (done.operation.error, len(done.attempts)) == (None, 21)
        began_ns = time.now_ns
        endless = FlakyClient({"put": [*errors] * 9})
        done = run(endless, transfer=transfer, deadline_ns=began_ns + 10**12)
        assert done.operation.error == "throttled"
        assert time.now_ns - began_ns == 2 * THROTTLED_S * 10**9
    # Other errors in between have their own limit of attempts, as always.
    mixed = [Throttled("x", status=503, retry_after_s=0), ConnectionLost("reset")] * 3
    done = run(FlakyClient({"put": mixed}), transfer=transfer)
    assert (done.operation.error, len(done.attempts)) == ("connection_error", 6)


def test_thousands_of_short_pauses_are_no_bug_and_no_pause_is_jittered() -> None:
    transfer = Transfer(retries=2)
    with virtual_time() as time:
        short = [Throttled("x", status=503, retry_after_s=0.01)] * 4000
        done = run(FlakyClient({"put": short}), transfer=transfer, deadline_ns=time.now_ns + 10**12)
        assert (done.operation.error, done.bug) == ("throttled", None)
        assert len(done.attempts) > 2000
        none = [Throttled("x", status=503, retry_after_s=0)] * 4000
        done = run(FlakyClient({"put": none}), transfer=transfer, deadline_ns=time.now_ns + 10**12)
        assert done.operation.error == "throttled"
        assert len(done.attempts) < 100


def test_retries_can_be_switched_off(waits: list[float]) -> None:
    done = run(FlakyClient({"put": [Throttled("x", status=503)]}), transfer=Transfer(retries=0))
    assert (done.operation.error, len(done.attempts), waits) == ("throttled", 1, [])


@pytest.mark.parametrize("error", [NotFound("x", status=404), AccessDenied("x", status=403)])
def test_permanent_errors_are_not_retried(error: OperationError) -> None:
    done = run(FlakyClient({"put": [error]}))
    assert (done.operation.error, len(done.attempts)) == (error.code, 1)


def test_a_redirect_is_followed_at_once_and_costs_no_retry(waits: list[float]) -> None:
    elsewhere = WrongRegion("x", status=301, region="eu-west-1", endpoint="http://there")
    client = FlakyClient({"put": [elsewhere]})
    done = run(client, transfer=Transfer(retries=0))
    assert done.operation.error is None
    assert client.moves == [("eu-west-1", "http://there")]
    assert [a.error for a in done.attempts] == ["wrong_region", None]
    assert waits == []


def test_a_circle_of_redirects_ends() -> None:
    client = FlakyClient({"put": [WrongRegion("x", status=301)] * 9})
    done = run(client, transfer=Transfer(retries=0))
    assert (done.operation.error, len(done.attempts)) == ("wrong_region", 3)


def test_no_pause_goes_beyond_the_deadline(waits: list[float]) -> None:
    client = FlakyClient({"put": [Throttled("x", status=503, retry_after_s=15)]})
    done = run(client, deadline_ns=monotonic_ns() + 10**9)
    assert (done.operation.error, waits) == ("deadline", [])


def test_an_attempt_stops_in_the_middle_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serverless_bench.worker.meter.STEP_NS", 1)
    done = run(FlakyClient(), deadline_ns=0)
    assert done.operation.error == "deadline"
    assert done.attempts[0].bytes == SIZE


def test_a_read_compares_every_byte() -> None:
    client = FlakyClient()
    client.objects[KEY] = content()
    done = run(client, OperationKind.GET)
    op = done.operation
    assert (op.bytes, op.verified_bytes, op.error) == (SIZE, SIZE, None)
    assert op.first_byte_ns is not None


def test_a_wrong_byte_is_an_error_with_a_place() -> None:
    client = FlakyClient()
    client.objects[KEY] = content()[:500] + b"\0" + content()[501:]
    done = run(client, OperationKind.GET)
    assert (done.operation.error, done.operation.bad_bytes) == ("corrupt", 1)
    (bad,) = done.bad_ranges
    assert (bad.key, bad.offset, bad.length) == (KEY, 500, 1)


def test_a_failed_attempt_does_not_affect_the_comparison(waits: list[float]) -> None:
    client = FlakyClient({"get": [ConnectionLost("reset")]})
    client.objects[KEY] = content()
    done = run(client, OperationKind.GET)
    assert (done.operation.verified_bytes, done.operation.error) == (SIZE, None)
    assert [a.bytes for a in done.attempts] == [10, SIZE]


def test_a_foreign_object_is_read_unverified() -> None:
    client = FlakyClient()
    client.objects[KEY] = b"anything"
    op = run(client, OperationKind.GET, size=None).operation
    assert (op.bytes, op.verified_bytes, op.error, op.size) == (8, 0, None, None)


BIG = 12 * MIB + 5
PARTED = Transfer(part_size=5 * MIB, connections=3)


def test_parts_are_moved_side_by_side_and_add_up() -> None:
    client = FlakyClient()
    done = run(client, transfer=PARTED, size=BIG)
    assert client.objects[KEY] == content(BIG)
    assert done.operation.bytes == sum(moved for _, moved in done.step_rows) == BIG
    assert sorted(a.part for a in done.attempts if a.request == "upload_part") == [1, 2, 3]
    assert client.calls[0] == "create_multipart"
    assert client.calls[-1] == "complete_multipart"


def test_ranges_are_moved_side_by_side_and_add_up() -> None:
    client = FlakyClient()
    client.objects[KEY] = content(BIG)
    done = run(client, OperationKind.GET, transfer=PARTED, size=BIG)
    assert done.operation.verified_bytes == done.operation.bytes == BIG
    assert sorted(a.part for a in done.attempts) == [1, 2, 3]


def test_an_upload_that_fails_is_given_up() -> None:
    client = FlakyClient({"upload_part": [None, AccessDenied("x", status=403)]})
    done = run(client, transfer=replace(PARTED, connections=1), size=BIG)
    assert done.operation.error == "access_denied"
    assert client.calls[-1] == "abort_multipart"
    assert client.parts == {}


def test_a_failing_abort_does_not_hide_the_error() -> None:
    client = FlakyClient(
        {
            "complete_multipart": [AccessDenied("x", status=403)],
            "abort_multipart": [NotFound("x", status=404)],
        }
    )
    done = run(client, transfer=PARTED, size=BIG)
    assert done.operation.error == "access_denied"
    assert [a.error for a in done.attempts if a.request == "abort_multipart"] == ["not_found"]


def test_a_bug_in_a_client_keeps_the_measurements(monkeypatch: pytest.MonkeyPatch) -> None:
    client = FlakyClient({"put": [None, ZeroDivisionError("a bug, no OperationError")]})
    monkeypatch.setattr(runner, "open_client", lambda *_: client)
    invocation.forget_clients()
    of = replace(job(number=1), objects=3)
    (spec,) = invocation_specs(of, run_id="r", created_ns=sys.maxsize // 2)
    record = run_invocation(spec)
    assert [op.error for op in record.operations] == [None, "bug"]
    assert record.error == "ZeroDivisionError: a bug, no OperationError"
    assert [a.error for a in record.attempts] == [None, "error"]
    invocation.forget_clients()


def test_a_plugin_that_is_missing_is_reported_not_raised() -> None:
    (spec,) = invocation_specs(job(number=1), run_id="r", created_ns=sys.maxsize // 2)
    record = run_invocation(replace(spec, workload="nope"))
    assert "unknown workload 'nope'" in str(record.error)


def test_a_late_delivery_touches_no_object() -> None:
    (spec,) = invocation_specs(job(number=1), run_id="r", created_ns=0)
    record = run_invocation(spec)
    assert record.operations == ()
    assert str(record.error).startswith("expired")


def test_only_the_first_invocation_of_a_process_is_cold() -> None:
    (spec,) = invocation_specs(
        replace(job(number=1), workload="read"), run_id="r", created_ns=1 << 62
    )
    run_invocation(spec)
    assert not run_invocation(spec).cold_start


def test_a_name_that_is_no_text_does_not_break_the_record() -> None:
    client = FlakyClient({"put": [ConnectionLost("file \udcff")]})
    done = run(client, transfer=Transfer(retries=0))
    str(done.attempts[0].detail).encode()


def test_a_store_that_refuses_is_not_in_a_tight_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = FlakyClient({"put": [AccessDenied("no", status=403)] * 10_000})
    monkeypatch.setattr(runner, "open_client", lambda *_: client)
    invocation.forget_clients()
    of = replace(job(number=1), duration=0.25)
    (spec,) = invocation_specs(of, run_id="r", created_ns=sys.maxsize // 2)
    record = run_invocation(spec)
    invocation.forget_clients()
    assert {op.error for op in record.operations} == {"access_denied"}
    assert 1 <= len(record.operations) <= 4


class BusyAtFirst(FlakyClient):
    """Uses a CPU for its first object."""

    def put(self, key: str, source: Source, exchange: Exchange) -> None:
        until = used_s() + 0.1
        while not self.calls and used_s() < until:
            pass
        super().put(key, source, exchange)


def used_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize("warmup", [0, 1])
def test_the_record_has_the_resources_of_measured_operations(
    warmup: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "open_client", lambda *_: BusyAtFirst())
    invocation.forget_clients()
    (spec,) = invocation_specs(
        replace(job(number=1), warm_up=warmup), run_id="r", created_ns=sys.maxsize // 2
    )
    record = run_invocation(spec)
    invocation.forget_clients()
    assert record.error is None
    assert record.measured_cpu_ns is not None
    used = record.cpu_user_s + record.cpu_sys_s
    before_s = used - record.measured_cpu_ns / 1e9
    assert (before_s > 0.09) if warmup else (record.measured_cpu_ns > 0.09e9)
