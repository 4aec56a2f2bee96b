"""Threads and open loops of one invocation."""

from dataclasses import replace
from itertools import pairwise

import pytest

from serverless_bench import work
from serverless_bench.body import forget_clients, run_invocation
from serverless_bench.errors import ServerFault
from serverless_bench.plan import plan
from serverless_bench.record import InvocationRecord
from serverless_bench.spec import JobSpec, Load, Transfer
from serverless_bench.units import NS_PER_S
from tests.runs import TARGET
from tests.unit.flaky import FlakyClient


def writes(objects: int = 8, **load: object) -> JobSpec:
    return JobSpec(
        workload="write",
        target=TARGET,
        transfer=Transfer(retries=0),
        invocations=1,
        objects=objects,
        object_bytes=1000,
        load=Load(**load),  # type: ignore[arg-type]
    )


def run(job: JobSpec, client: FlakyClient | None = None) -> InvocationRecord:
    forget_clients()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work, "open_client", lambda *_: client or FlakyClient())
        (spec, *_) = plan(job, run_id="r", created_ns=1 << 62)
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
    record = run(writes(20, rate_per_s=200.0))
    intended = [op.intended_ns for op in record.operations]
    assert None not in intended
    distances = {b - a for a, b in pairwise(intended) if a and b}
    assert all(abs(distance - NS_PER_S // 200) <= 1 for distance in distances)
    assert all(op.start_ns >= (op.intended_ns or 0) for op in record.operations)


def test_poisson_arrivals_have_the_rate() -> None:
    record = run(writes(300, rate_per_s=3000.0, arrivals="poisson", threads=2))
    intended = sorted(op.intended_ns or 0 for op in record.operations)
    mean_ns = (intended[-1] - intended[0]) / (len(intended) - 1)
    assert mean_ns * 3000 == pytest.approx(NS_PER_S, rel=0.25)


def test_a_closed_loop_intends_nothing() -> None:
    assert {op.intended_ns for op in run(writes()).operations} == {None}


def test_functions_have_their_share_of_a_rate() -> None:
    job = replace(writes(rate_per_s=90.0), invocations=3)
    shares = [spec.load.rate_per_s for spec in plan(job, run_id="r", created_ns=0)]
    assert shares == [30.0] * 3


def test_functions_take_turns_at_the_endpoints() -> None:
    job = replace(writes(), invocations=5, endpoints=("http://second", "http://third"))
    specs = list(plan(job, run_id="r", created_ns=0))
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
    assert [op.error for op in record.operations].count("server_fault") == 1
    assert len(record.operations) == 8
    assert not record.ok
