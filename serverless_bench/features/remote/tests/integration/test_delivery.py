"""A queue that delivers an event once, twice, late, or after it was revoked."""

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import pytest

from serverless_bench.base.clock import wall_ns
from serverless_bench.base.units import NS_PER_S
from serverless_bench.driver.boto import open_s3
from serverless_bench.features.remote.claims import (
    claim,
    claim_name,
    for_run,
    get_claim,
    parse_record,
)
from serverless_bench.features.remote.delivery import (
    RECORD_S,
    deliver,
    forget_stores,
    handle_delivery,
)
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.job.target import Target
from serverless_bench.rundir.received import record_of
from serverless_bench.worker.object_io import ObjectIO
from tests.stores.servers import Server, credentials

SIZE = 10_000
NOBODY = "http://127.0.0.1:1"


@pytest.fixture
def target(moto: Server, prefix: str) -> Iterator[Target]:
    with credentials(moto.environment):
        yield Target(bucket=moto.bucket, endpoint_url=moto.endpoint_url, prefix=prefix)
        forget_stores()


@pytest.fixture
def spec(target: Target) -> InvocationSpec:
    job = JobSpec(
        workload="write",
        target=target,
        control=replace(target, prefix=f"{target.prefix}control/"),
        number=3,
        objects=2,
        size=SIZE,
        deadline=20,
    )
    return list(invocation_specs(job, run_id="run", created_ns=wall_ns()))[1]


def control_of(spec: InvocationSpec) -> ObjectIO:
    assert spec.control is not None
    return ObjectIO(for_run(spec.control, spec.run_id))


def sizes(spec: InvocationSpec) -> dict[str, int]:
    """Everything below the prefix."""
    listed = open_s3(spec.target).list_objects_v2(
        Bucket=spec.target.bucket, Prefix=spec.target.prefix
    )
    return {entry["Key"]: entry["Size"] for entry in listed.get("Contents", ())}


def records(spec: InvocationSpec) -> list[str]:
    pages = control_of(spec).list_pages("records/", timeout_s=5)
    return [name for page in pages for name in page]


def claim_of(spec: InvocationSpec) -> Any:
    return get_claim(control_of(spec), spec.index, spec.launch, timeout_s=5)


def test_a_delivery_claims_works_and_leaves_a_record(spec: InvocationSpec) -> None:
    before_ns = wall_ns()
    record, refused = deliver(asdict(spec))
    assert record is not None
    assert (record.ok, record.duplicate, refused) == (True, False, "")
    assert [op.size for op in record.operations] == [SIZE, SIZE]
    (name,) = records(spec)
    key = parse_record(name)
    assert key is not None
    assert (key.index, key.launch, key.delivery) == (1, 0, record.delivery)
    claimed = claim_of(spec)
    assert (claimed["run_id"], claimed["delivery"]) == ("run", record.delivery)
    assert claimed["held_s"] == spec.deadline + RECORD_S
    assert claimed["until_ns"] >= before_ns + round(claimed["held_s"] * NS_PER_S)
    assert sorted(sizes(spec).values())[-2:] == [SIZE, SIZE]


def test_the_record_in_the_store_is_the_record(spec: InvocationSpec) -> None:
    record, _ = deliver(asdict(spec))
    (name,) = records(spec)
    data = control_of(spec).get(f"records/{name}", timeout_s=5)
    assert record_of(json.loads(data)) == record


def test_a_second_delivery_moves_no_bytes_and_is_reported(spec: InvocationSpec) -> None:
    first, _ = deliver(asdict(spec))
    there = {key: size for key, size in sizes(spec).items() if size == SIZE}
    second, refused = deliver(asdict(spec))
    assert first is not None
    assert second is not None
    assert (second.duplicate, second.operations, second.ok) == (True, (), False)
    assert (
        refused == second.error == f"duplicate: delivery {first.delivery} already runs this launch"
    )
    assert len(records(spec)) == 2
    assert there == {key: size for key, size in sizes(spec).items() if size == SIZE}
    assert claim_of(spec)["delivery"] == first.delivery


def test_a_revoked_event_does_not_run(spec: InvocationSpec) -> None:
    store = control_of(spec)
    claim(store, claim_name(1, 0), {"run_id": "run", "taken_back_ns": 1}, timeout_s=5)
    before = sizes(spec)
    record, refused = deliver(asdict(spec))
    assert record is None
    assert refused.startswith("cancelled")
    assert sizes(spec) == before
    again = replace(spec, launch=1)
    assert handle_delivery(asdict(again))["ok"], "the next launch has a claim of its own"


def test_a_late_delivery_sends_no_request(spec: InvocationSpec) -> None:
    nowhere = replace(spec.target, endpoint_url=NOBODY)
    late = replace(spec, not_after_ns=wall_ns() - 1, target=nowhere, control=nowhere)
    refused = "expired: delivered after the run had stopped waiting"
    assert handle_delivery(asdict(late)) == {"refused": refused}


def test_time_that_the_process_has_bounds_the_work(spec: InvocationSpec) -> None:
    deliver(asdict(spec), remaining_s=9.0)
    assert claim_of(spec)["held_s"] == pytest.approx(9.0, abs=0.01)
    deliver(asdict(replace(spec, launch=1)), remaining_s=2.0)
    held_s = get_claim(control_of(spec), 1, 1, timeout_s=5)
    assert held_s is not None
    assert held_s["held_s"] == pytest.approx(RECORD_S + 0.1)


def test_a_control_target_is_required(spec: InvocationSpec) -> None:
    with pytest.raises(ValueError, match="no control target"):
        deliver(asdict(replace(spec, control=None)))


def test_a_claim_without_valid_json_has_no_owner(spec: InvocationSpec) -> None:
    control_of(spec).put(claim_name(1, 0), b"[]", timeout_s=5)
    record, refused = deliver(asdict(spec))
    assert (record, refused.split(":")[0]) == (None, "cancelled")
