"""The bill of a run, against figures computed by hand; test_cost.py has the forecast."""

from dataclasses import replace
from pathlib import Path

import pytest

from serverless_bench.features.cost.bill import Bill, bill, outcome_usage
from serverless_bench.features.cost.expected import expected
from serverless_bench.features.cost.forecast import LOG_BYTES, CostConditions
from serverless_bench.features.cost.prices import BilledUsage, load_prices, price
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from serverless_bench.job.workload import Load
from serverless_bench.rundir.record import InvocationRecord, OperationRecord, Outcome
from serverless_bench.rundir.run import Run, load_run
from tests.data.runs import S, attempt, job, lost, operation, outcome, record, saved
from tests.house.members import uses
from tests.tables import each_row

PRICES = load_prices()
MONTH_GB = PRICES.s3_storage_gb_month
GIB = 1 << 30
CONTROL = Target(bucket="c", endpoint_url="http://store")


def billed(run: Run) -> Bill:
    found = bill(run, PRICES)
    assert found is not None
    return found


def one(index: int = 0, *, spent_ns: int = S, memory_mib: int | None = 1024) -> InvocationRecord:
    result = record(index, [operation(start_ns=S, end_ns=S + spent_ns)])
    return replace(result, memory_mib=memory_mib)


# One function


@pytest.mark.parametrize(("control", "billed_s"), [(None, 1.201), (CONTROL, 1.301)])
def test_a_function_is_billed_to_the_next_millisecond(
    control: Target | None, billed_s: float
) -> None:
    result = replace(one(spent_ns=1_000_000_001, memory_mib=2048), import_ns=200_000_000)
    if control is not None:
        result = replace(result, control_puts=2, control_gets=0)
    of = replace(job(number=1), control=control)
    found = outcome_usage(outcome(result), of, memory_mib=128, architecture="arm64")
    # A claim and a record, and the driver's requests to find them.
    assert (found.control_puts > 0, found.control_gets > 0) == (control is not None,) * 2
    assert found.gb_s == pytest.approx(2 * billed_s)
    assert replace(found, gb_s=0.0, control_puts=0, control_gets=0) == BilledUsage(
        architecture="arm64",
        invocations=1,
        puts=1,
        uploaded_bytes=1000,
        log_bytes=LOG_BYTES,
    )


def test_a_function_that_does_not_say_its_memory_has_that_of_the_job() -> None:
    of = job(number=1)
    result = outcome(one(memory_mib=None))
    assert outcome_usage(result, of, memory_mib=512, architecture="arm64").gb_s == 0.5


@each_row(
    ("submitted_s", "collected_s", "not_started", "gb_s", "invocations"),
    [
        (2, 5, None, 6.0, 1),
        (2, 50, None, 20.0, 1),  # the deadline ends it
        (2, 5, True, 0.0, 0),
        (2, 5, False, 6.0, 1),
        (5, 2, None, 0.0, 1),  # a clock that was set back costs nothing
    ],
)
def test_a_function_without_a_record_costs_until_it_was_given_up(
    submitted_s: int,
    collected_s: int,
    not_started: bool | None,  # noqa: FBT001
    gb_s: float,
    invocations: int,
) -> None:
    gone = Outcome(
        submitted_ns=submitted_s * S,
        collected_ns=collected_s * S,
        result=replace(lost(0), not_started=bool(not_started)),
    )
    of = replace(job(number=1), deadline=10.0, control=CONTROL)
    found = outcome_usage(gone, of, memory_mib=2048, architecture="arm64")
    assert found == BilledUsage(architecture="arm64", gb_s=gb_s, invocations=invocations)


# One run


def test_each_function_is_billed_with_its_own_memory_and_time(tmp_path: Path) -> None:
    sizes = [1024, 3072, 2048]
    results = [one(i, spent_ns=(i + 1) * S, memory_mib=mib) for i, mib in enumerate(sizes)]
    results[2] = replace(results[2], machine="arm64")
    of = replace(job(number=4, size=None), deadline=100.0)
    run = saved(tmp_path / "run", [*map(outcome, results), outcome(lost(3))], of=of)
    found = billed(run)
    assert found.billed_s == pytest.approx(1 + 2 + 3)
    assert found.gb_s == pytest.approx(1 * 1 + 2 * 3 + 3 * 2)
    assert (found.invocations, found.unknown, found.architecture) == (3, 1, "arm64")
    assert (found.as_of, found.region, found.currency) == (
        PRICES.as_of,
        PRICES.region,
        PRICES.currency,
    )
    assert found.total == found.dollars.total
    assert found.dollars == price(
        BilledUsage(
            architecture="arm64", gb_s=13.0, invocations=3, puts=3, log_bytes=3 * LOG_BYTES
        ),
        PRICES,
    )
    # Half of them have more memory than the median; the objects have 1,000 bytes each.
    foreseen = expected(
        of, CostConditions(memory_mib=2048, architecture="arm64", object_bytes=1000)
    )
    assert foreseen is not None
    assert found.estimate == price(foreseen.usage, PRICES).total
    assert found.estimate_error == pytest.approx(found.estimate / found.total - 1)
    # The function without a record may have had as much memory as the largest, for the maximum
    # duration, with a second to start.
    assert found.unknown_at_most == pytest.approx(101 * 3 * PRICES.lambda_arm64_gb_s, rel=0.01)


def test_unstarted_launches_are_not_unknown(tmp_path: Path) -> None:
    never = replace(lost(1), not_started=True)
    outcomes = [outcome(one()), outcome(never), outcome(lost(2)), outcome(lost(3))]
    found = billed(saved(tmp_path / "run", outcomes))
    assert found.unknown == 2
    alone = billed(saved(tmp_path / "other", [outcome(one()), outcome(lost(1))]))
    assert found.unknown_at_most == pytest.approx(2 * alone.unknown_at_most, rel=0.01)


@pytest.mark.parametrize(
    ("machines", "architecture"),
    [(["x86_64"], "x86_64"), (["aarch64"], "arm64"), (["arm64", "x86_64"], "arm64")],
)
def test_the_architecture_is_that_of_the_machines(
    tmp_path: Path, machines: list[str], architecture: str
) -> None:
    results = [replace(one(i), machine=machine) for i, machine in enumerate(machines)]
    assert billed(saved(tmp_path / "run", [outcome(r) for r in results])).architecture == (
        architecture
    )


@uses("workload custom")
def test_a_users_function_has_no_estimate(tmp_path: Path) -> None:
    of = replace(job(number=1, size=None), workload="custom")
    found = billed(saved(tmp_path, [outcome(one())], of=of))
    assert found.total > 0
    assert (found.estimate, found.estimate_error) == (None, None)


@each_row(
    ("host", "on_aws"),
    [
        ("https://s3.us-east-1.amazonaws.com", True),
        ("https://s3.cn-north-1.amazonaws.com.cn:443/", True),
        ("http://s3.us-east-1.amazonaws.com.example.org", False),
        ("http://amazonaws.com.localhost", False),
        ("http://127.0.0.1:9000", False),
        ("s3.amazonaws.com", False),
    ],
)
def test_only_the_address_of_aws_is_genuine(tmp_path: Path, host: str, on_aws: bool) -> None:  # noqa: FBT001
    of = replace(job(number=1), target=Target(bucket="b", endpoint_url=host))
    assert billed(saved(tmp_path / "run", [outcome(one())], of=of)).on_aws is on_aws


def test_requests_of_barrier_and_probes_are_separate(tmp_path: Path) -> None:
    result = replace(one(), barrier_puts=1, barrier_gets=4)
    run = saved(tmp_path / "run", [outcome(result)])
    without = billed(saved(tmp_path / "without", [outcome(one())]))
    assert (without.requests, without.overhead) == ({"put": 1, "control": 0}, {"control": {}})
    found = billed(replace(run, store_requests={"head": 7, "list": 2}))
    assert found.requests == {"put": 1, "control": 0, "barrier": 1 + 4 + 2, "probes": 7}
    assert found.overhead == {
        "control": {},
        "barrier": {"put": 1, "get": 4, "list": 2},
        "probes": {"head": 7},
    }
    assert found.dollars.puts == pytest.approx((1 + 1 + 2) * PRICES.s3_put)
    assert found.dollars.gets == pytest.approx((4 + 7) * PRICES.s3_get)


def test_claims_and_records_are_paid_for_too(tmp_path: Path) -> None:
    result = replace(one(), control_puts=2, control_gets=3)
    of = replace(job(number=1), control=CONTROL)
    run = saved(tmp_path, [outcome(result)], of=of)
    found = billed(replace(run, requests={"list": 5, "get": 7}))
    assert found.overhead["control"] == {"put": 2, "get": 10, "list": 5}
    assert found.dollars.control == pytest.approx(7 * PRICES.s3_put + 10 * PRICES.s3_get)
    assert found.requests_exact


# Objects that remain in the store


def kept_bytes(run: Run) -> float:
    return billed(run).storage_per_month / MONTH_GB * GIB


def puts(count: int, *, kind: OperationKind = OperationKind.PUT) -> list[OperationRecord]:
    return [operation(n, kind=kind, end_ns=(n + 1) * S) for n in range(count)]


def test_failed_and_sizeless_writes_are_not_kept(tmp_path: Path) -> None:
    operations = puts(4)
    operations[1] = replace(operations[1], error="timeout")
    operations[2] = replace(operations[2], size=None)
    operations[3] = replace(operations[3], kind=OperationKind.GET)
    result = replace(record(0, operations), memory_mib=1024)
    run = saved(tmp_path / "run", [outcome(result)], of=job(number=1, size=None))
    assert kept_bytes(run) == pytest.approx(1000)


def test_the_last_operation_on_a_key_decides_storage(tmp_path: Path) -> None:
    """Functions end in any order; records are in the order of the functions."""
    first = replace(operation(0, end_ns=9 * S), key="a")
    gone = replace(operation(0, kind=OperationKind.DELETE, end_ns=5 * S), key="a")
    copied = replace(operation(1, kind=OperationKind.COPY, end_ns=6 * S, size=300), key="b")
    results = [record(0, [first]), record(1, [gone, copied])]
    outcomes = [outcome(replace(r, memory_mib=1024)) for r in results]
    run = saved(tmp_path / "run", outcomes, of=job(number=2, size=None))
    assert kept_bytes(run) == pytest.approx(1300)


@uses("workload mixed")
@pytest.mark.parametrize(
    ("objects", "mix", "kept"),
    [(1, (), 2000), (2, (), 4000), (9, (), 6000), (1, (("put", 1.0),), 6000)],
)
def test_without_keys_storage_is_bounded_by_places(
    tmp_path: Path, objects: int, mix: tuple[tuple[str, float], ...], kept: int
) -> None:
    """Two functions wrote three times each, and the third one wrote no object."""
    of = JobSpec(
        name="by-hand",
        workload="mixed" if mix else "write",
        target=job(number=1).target,
        number=3,
        objects=objects,
        load=Load(mix=mix),
        size=1000,
    )
    failed = [replace(operation(0), error="timeout")]
    results = [record(0, puts(3)), record(1, puts(3)), record(2, failed)]
    saved(tmp_path / "run", [outcome(replace(r, memory_mib=1024)) for r in results], of=of)
    assert kept_bytes(load_run(tmp_path / "run", detail=False)) == pytest.approx(kept)


def test_without_keys_reads_store_no_object(tmp_path: Path) -> None:
    reads = puts(3, kind=OperationKind.GET)
    result = record(0, reads, attempts=[replace(attempt(0), request="get")])
    saved(tmp_path / "run", [outcome(replace(result, memory_mib=1024))])
    assert kept_bytes(load_run(tmp_path / "run", detail=False)) == 0
