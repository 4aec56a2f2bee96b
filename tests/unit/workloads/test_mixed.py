"""The mixed workload against a store in memory: every read knows the expected content."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.base.errors import ServerFault
from serverless_bench.driver.plan import ledger
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.operations import MIXED, OperationKind
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.job.target import Transfer
from serverless_bench.job.workload import Load
from serverless_bench.rundir.received import readable_keys
from serverless_bench.rundir.record import InvocationRecord
from serverless_bench.worker import runner
from serverless_bench.worker.invocation import forget_clients, run_invocation
from tests.data.runs import TARGET
from tests.unit.flaky import FlakyClient

ALL = tuple((kind.value, 1.0) for kind in MIXED)
Run = Callable[[JobSpec, FlakyClient], InvocationRecord]


def mixed(**load: object) -> JobSpec:
    return JobSpec(
        workload="mixed",
        target=TARGET,
        transfer=Transfer(retries=0),
        number=1,
        objects=6,
        size=5000,
        load=Load(**{"mix": ALL, "operations": 200, **load}),  # type: ignore[arg-type]
    )


def invocation(job: JobSpec) -> InvocationSpec:
    return next(invocation_specs(job, run_id="r", created_ns=1 << 62))


def run(job: JobSpec, client: FlakyClient) -> InvocationRecord:
    forget_clients()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "open_client", lambda *_: client)
        record = run_invocation(invocation(job))
        forget_clients()
    return record


def test_every_kind_happens_and_every_byte_agrees() -> None:
    job, client = mixed(), FlakyClient()
    record = run(job, client)
    assert record.ok
    measured = [op for op in record.operations if not op.warmup]
    counts = Counter(op.kind for op in measured)
    assert set(counts) == set(MIXED)
    assert len(measured) == 200
    assert [op.kind for op in record.operations if op.warmup] == [OperationKind.PUT] * 6
    reads = [op for op in measured if op.kind in {OperationKind.GET, OperationKind.GET_RANGE}]
    assert all(op.verified_bytes == op.bytes > 0 for op in reads)
    assert max(op.generation for op in measured) > 1


@given(seed=st.integers(0, 1000))
def test_created_keys_are_in_the_ledger(seed: int) -> None:
    job = replace(mixed(mix=(("put", 2.0), ("copy", 1.0)), operations=60), seed=seed)
    record = run(job, FlakyClient())
    made = {op.key for op in record.operations if op.kind.creates}
    assert made <= set(ledger(job, [invocation(job)]))
    assert {op.kind for op in record.operations} == {OperationKind.PUT, OperationKind.COPY}


def test_threads_have_objects_of_their_own() -> None:
    job, client = mixed(threads=3), FlakyClient()
    record = run(job, client)
    assert record.ok
    assert len([op for op in record.operations if not op.warmup]) == 200
    assert [op.index for op in record.operations] == list(range(206))
    assert {row.operation for row in record.attempts} == set(range(206))
    starts = [op.start_ns for op in record.operations]
    assert starts == sorted(starts)


@given(
    seed=st.integers(0, 1000),
    failing=st.lists(st.booleans(), max_size=60),
    kinds=st.sets(st.sampled_from(["put", "delete", "delete_many", "copy"])),
)
def test_failures_never_make_a_read_wrong(
    seed: int, failing: Sequence[bool], kinds: set[str]
) -> None:
    # A put that failed may have stored its bytes or not: here it has not.
    errors = [ServerFault("no", status=500) if fails else None for fails in failing]
    prepared: list[ServerFault | None] = [None] * 6
    client = FlakyClient({kind: (prepared if kind == "put" else []) + errors for kind in kinds})
    record = run(replace(mixed(operations=60), seed=seed), client)
    assert {op.error for op in record.operations} <= {None, "server_error"}
    assert all(op.error is None for op in record.operations if op.kind.value not in kinds)


def test_failed_preparation_ends_the_function() -> None:
    client = FlakyClient({"put": [None, ServerFault("no", status=500)]})
    record = run(mixed(), client)
    assert str(record.error).startswith("prepare: put of ")
    assert len(record.operations) == 2


def test_a_key_file_lists_what_a_reader_can_check() -> None:
    client = FlakyClient()
    record = run(mixed(mix=(("put", 2.0), ("delete", 1.0)), operations=12), client)
    good = readable_keys(record.to_json()["operations"])
    assert good
    assert set(good) <= set(client.objects)
    overwritten = {op.key for op in record.operations if op.generation}
    assert not set(good) & overwritten


def test_an_empty_pool_is_filled_first() -> None:
    record = run(mixed(mix=(("delete", 1.0),), operations=20), FlakyClient())
    assert record.ok
    counts = Counter(op.kind for op in record.operations if not op.warmup)
    assert counts[OperationKind.PUT] > 0
    assert counts[OperationKind.DELETE] > counts[OperationKind.PUT]
