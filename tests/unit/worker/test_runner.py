"""Threads and open loops of one invocation."""

from dataclasses import replace
from itertools import pairwise

import pytest

from serverless_bench.base.clock import EpochClock
from serverless_bench.base.errors import ServerFault
from serverless_bench.base.units import MIB, NS_PER_S
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Stat, Transfer
from serverless_bench.job.workload import Load
from serverless_bench.rundir.record import InvocationRecord
from serverless_bench.worker import runner
from serverless_bench.worker.invocation import forget_clients, run_invocation
from tests.data.runs import TARGET
from tests.house.members import uses
from tests.stores.virtual_time import SlowClient, virtual_time
from tests.unit.flaky import FlakyClient


def writes(objects: int = 8, *, workload: str = "write", **load: object) -> JobSpec:
    return JobSpec(
        workload=workload,
        target=TARGET,
        transfer=Transfer(retries=0),
        number=1,
        objects=objects,
        size=1000,
        load=Load(**load),  # type: ignore[arg-type]
    )


def run(job: JobSpec, client: FlakyClient | None = None) -> InvocationRecord:
    forget_clients()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "open_client", lambda *_: client or FlakyClient())
        (spec, *_) = invocation_specs(job, run_id="r", created_ns=1 << 62)
        record = run_invocation(spec)
        forget_clients()
    return record


@pytest.mark.parametrize("threads", [1, 3, 8, 20])
def test_threads_share_the_objects(threads: int) -> None:
    record = run(writes(threads=threads))
    assert record.ok
    assert len({op.key for op in record.operations}) == len(record.operations) == 8
    assert [op.index for op in record.operations] == list(range(8))


def test_an_open_loop_begins_at_even_distances() -> None:
    record = run(writes(20, rate=200.0))
    intended = [op.intended_ns for op in record.operations]
    assert None not in intended
    distances = {b - a for a, b in pairwise(intended) if a and b}
    assert all(abs(distance - NS_PER_S // 200) <= 1 for distance in distances)
    assert all(op.start_ns >= (op.intended_ns or 0) for op in record.operations)


def test_poisson_arrivals_have_the_rate() -> None:
    record = run(writes(300, rate=3000.0, arrivals="poisson", threads=2))
    intended = sorted(op.intended_ns or 0 for op in record.operations)
    mean_ns = (intended[-1] - intended[0]) / (len(intended) - 1)
    assert mean_ns * 3000 == pytest.approx(NS_PER_S, rel=0.25)


def test_a_closed_loop_has_no_intended_starts() -> None:
    assert {op.intended_ns for op in run(writes()).operations} == {None}


def test_functions_have_their_share_of_a_rate() -> None:
    job = replace(writes(rate=90.0), number=3)
    shares = [spec.load.rate for spec in invocation_specs(job, run_id="r", created_ns=0)]
    assert shares == [30.0] * 3


def test_functions_take_turns_at_the_endpoints() -> None:
    job = replace(writes(), number=5, endpoints=("http://second", "http://third"))
    specs = list(invocation_specs(job, run_id="r", created_ns=0))
    assert [spec.target.endpoint_url for spec in specs] == [
        "http://store",
        "http://second",
        "http://third",
        "http://store",
        "http://second",
    ]


def test_a_failure_in_one_thread_is_a_failure_of_the_function() -> None:
    client = FlakyClient({"put": [ServerFault("no", status=500)]})
    record = run(writes(threads=4), client)
    assert [op.error for op in record.operations].count("server_error") == 1
    assert len(record.operations) == 8
    assert not record.ok


# The end of a function, and its records


def test_a_bug_in_one_thread_stops_the_others() -> None:
    client = FlakyClient({"put": [None, ZeroDivisionError("no")]})
    record = run(writes(4000, threads=2), client)
    assert record.error == "ZeroDivisionError: no"
    # The other thread would have completed all of its half.
    assert len(record.operations) < 2000


def test_after_the_deadline_no_operation_starts() -> None:
    with virtual_time() as time:
        client = SlowClient(time, 1.0)
        record = run(replace(writes(9), deadline=3.5), client)
    assert record.error == "deadline: stopped before the last operation"
    # The fourth would end after it.
    assert [op.error for op in record.operations] == [None, None, None, "deadline"]


def test_one_that_ends_at_the_deadline_is_in_time() -> None:
    with virtual_time() as time:
        record = run(replace(writes(3), deadline=3.0), SlowClient(time, 1.0))
    assert (record.error, len(record.operations)) == (None, 3)


def test_a_duration_is_over_at_its_end() -> None:
    with virtual_time() as time:
        record = run(replace(writes(1), duration=3.0), SlowClient(time, 1.0))
    assert [op.start_ns - record.operations[0].start_ns for op in record.operations] == [
        0,
        NS_PER_S,
        2 * NS_PER_S,
    ]


def test_a_refusal_is_followed_by_a_pause_in_a_closed_loop_with_a_duration() -> None:
    refused = [ServerFault("no", status=500)] * 2
    for rate, duration_s, expected_s in ((None, 1.0, 0.1), (None, None, 0), (1000.0, 1.0, 0)):
        with virtual_time() as time:
            client = SlowClient(time, 0.01)
            client.script["put"] = list(refused)
            record = run(replace(writes(5, rate=rate), duration=duration_s), client)
        first, second, *_ = record.operations
        assert second.start_ns - first.end_ns == round(expected_s * NS_PER_S)


def test_connections_are_kept_for_equal_settings() -> None:
    opened: list[FlakyClient] = []

    def opens(*_: object) -> FlakyClient:
        opened.append(FlakyClient())
        return opened[-1]

    forget_clients()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "open_client", opens)
        first, second = invocation_specs(
            replace(writes(1), number=2), run_id="r", created_ns=1 << 62
        )
        run_invocation(first)
        run_invocation(second)
        assert len(opened) == 1
        elsewhere = replace(first, target=replace(TARGET, bucket="another"))
        run_invocation(elsewhere)
        assert len(opened) == 2
        assert [client.calls.count("close") for client in opened] == [1, 0]
        forget_clients()
        assert [client.calls.count("close") for client in opened] == [1, 1]


def test_operations_are_numbered_in_the_order_in_which_they_began() -> None:
    record = run(writes(12, threads=4))
    starts = [op.start_ns for op in record.operations]
    assert starts == sorted(starts)
    assert [op.index for op in record.operations] == list(range(12))
    assert {tried.operation for tried in record.attempts} == set(range(12))


@pytest.mark.parametrize(
    ("threads", "connections", "asked"), [(1, 1, False), (2, 1, True), (1, 2, True)]
)
def test_the_interpreter_lock_is_sampled_where_threads_share_it(
    threads: int,
    connections: int,
    asked: bool,  # noqa: FBT001
) -> None:
    job = writes(4, threads=threads)
    job = replace(job, transfer=replace(job.transfer, connections=connections))
    (spec, *_) = invocation_specs(job, run_id="r", created_ns=1 << 62)
    found = runner.InvocationRunner(invocation=spec, clock=EpochClock())
    forget_clients()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "open_client", lambda *_: FlakyClient())
        assert found.measure_all() is None
        forget_clients()
    assert (found.probe is not None) is asked


def test_jitter_is_of_each_thread_and_always_the_same() -> None:
    (spec, *_) = invocation_specs(writes(1, threads=2), run_id="r", created_ns=1 << 62)
    found = runner.InvocationRunner(invocation=spec, clock=EpochClock())
    first, again, other = (found._rng(thread).random() for thread in (0, 0, 1))
    assert first == again != other


@uses("workload mixed")
def test_preparation_must_succeed() -> None:
    mix = (("get", 1.0),)
    job = replace(writes(3, workload="mixed", mix=mix, operations=5), size=100)
    record = run(job, FlakyClient({"put": [None, ServerFault("no", status=500)]}))
    second = record.operations[1]
    assert record.error == f"prepare: put of {second.key} failed: server_error"
    assert [op.index for op in record.operations] == [0, 1]
    assert all(op.warmup for op in record.operations)


@uses("workload read")
def test_sizes_from_earlier_heads_are_known_to_every_get() -> None:
    client = FlakyClient()
    client.objects["foreign"] = bytes(2 * MIB + 1)
    transfer = Transfer(retries=0, part_size=MIB, stat=Stat.BEFORE)
    job = JobSpec(workload="read", target=TARGET, transfer=transfer, number=1, objects=1)
    (spec,) = invocation_specs(job, run_id="r", created_ns=1 << 62, keys=["foreign"])
    forget_clients()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "open_client", lambda *_: client)
        record = run_invocation(spec)
        forget_clients()
    assert record.ok
    # With a known size the object is requested in ranges.
    assert client.calls == ["head", "get", "get", "get", "close"]
