"""The cost of runs, against the table that was computed by hand from the price lists."""

import io
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.base.errors import UsageError
from serverless_bench.features.aws.account import network_mbps
from serverless_bench.features.aws.lambda_network import function_network
from serverless_bench.features.cost.bill import bill, outcome_usage
from serverless_bench.features.cost.expected import expected
from serverless_bench.features.cost.forecast import CostConditions, Sampler, load_of
from serverless_bench.features.cost.outlook import plan
from serverless_bench.features.cost.places import placed
from serverless_bench.features.cost.prices import (
    BilledUsage,
    Dollars,
    Prices,
    format_money,
    load_prices,
    price,
    price_text,
)
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target, Transfer
from serverless_bench.job.workload import Load as JobLoad
from serverless_bench.metrics.summary import summarize
from serverless_bench.report import open_reporter
from serverless_bench.rundir.run import load_run
from tests.data.loads import array_load
from tests.data.runs import S, attempt, job, lost, operation, outcome, record, saved
from tests.house.members import uses
from tests.tables import each_row

MIB = 1 << 20
PRICES = load_prices()
PUT, GET = OperationKind.PUT, OperationKind.GET


def dollars(
    kind: OperationKind,
    *,
    architecture: str = "x86_64",
    part_mib: int | None = None,
    bucket: str = "b",
) -> Dollars:
    """Return the expected cost of the table's job."""
    size = 2000 * MIB
    workload, written = ("write", size) if kind is PUT else ("read", None)
    of = replace(
        job(number=1800, concurrency=1800, workload=workload, size=written),
        target=Target(bucket=bucket, endpoint_url="http://store"),
        transfer=Transfer(part_size=None if part_mib is None else part_mib * MIB),
        control=Target(bucket="c", endpoint_url="http://store"),
    )
    found = expected(
        of, CostConditions(memory_mib=1769, architecture=architecture, object_bytes=size)
    )
    assert found is not None
    return price(found.usage, PRICES)


def storage(hours: float, *, express: bool = False) -> float:
    kept = 1800 * 2000 * MIB * hours
    return price(BilledUsage(storage_byte_h=kept, express=express), PRICES).storage


TABLE: Mapping[str, tuple[Callable[[], float], float]] = {
    "Lambda, x86": (lambda: dollars(PUT).compute, 1.36),
    "single PUT": (lambda: dollars(PUT).puts, 0.009),
    "8 MiB parts": (lambda: dollars(PUT, part_mib=8).puts, 2.27),
    "64 MiB parts": (lambda: dollars(PUT, part_mib=64).puts, 0.31),
    "an hour": (lambda: storage(1), 0.11),
    "a day": (lambda: storage(24), 2.66),
    "a month": (lambda: storage(730), 80.9),
}
"""The forecast, and for requests and storage measurement_and_aws.md section 1.5, which rounds."""
READ_TABLE: Mapping[str, tuple[Callable[[], float], float]] = {
    "Lambda, arm": (lambda: dollars(GET, architecture="arm64").compute, 1.05),
    "8 MiB ranges": (lambda: dollars(GET, part_mib=8).gets, 0.18),
    "arm64, single PUT": (
        lambda: storage(1) + sum(dollars(kind, architecture="arm64").total for kind in (PUT, GET)),
        2.29,
    ),
    # 450,000 parts of 8 MiB are rejected for two minutes by a partition that takes 3,500 a second.
    "x86, 8 MiB": (
        lambda: storage(1) + sum(dollars(kind, part_mib=8).total for kind in (PUT, GET)),
        10.1,
    ),
}
"""Its rows with reads."""


@each_row("row", TABLE)
def test_the_cost_table_comes_out_within_5_percent(row: str) -> None:
    ours, table = TABLE[row]
    assert ours() == pytest.approx(table, rel=0.05)


@uses("workload read")
@pytest.mark.parametrize("row", READ_TABLE)
def test_the_cost_table_of_reads_comes_out_within_5_percent(row: str) -> None:
    ours, table = READ_TABLE[row]
    assert ours() == pytest.approx(table, rel=0.05)


@uses("workload read")
def test_figures_of_the_table_with_one_digit_only() -> None:
    """A single GET, and 64 MiB ranges: the table rounds them to one digit."""
    assert round(dollars(GET).gets, 4) == 0.0007
    assert round(dollars(GET, part_mib=64).gets, 2) == 0.02


@each_row(
    ("memory", "quota", "in_vpc", "mbps"),
    [
        (128, 625, False, 625),
        (10240, 625, False, 625),
        (1769, 3000, False, 625),
        (2048, 3000, False, 625),
        (4096, 3000, False, 1218.75),
        (10240, 3000, False, 3000),
        (10240, 2000, False, 2000),
        (10240, 3000, True, 625),
    ],
)
def test_the_network_by_memory_quota_and_vpc(
    *, memory: int, quota: float, in_vpc: bool, mbps: float
) -> None:
    found = function_network(memory, quota_mbps=quota, in_vpc=in_vpc)
    assert found == pytest.approx(mbps * 1e6 / 8)
    shown = plan(job(number=2), memory=memory, network_quota=quota, in_vpc=in_vpc)
    assert ("network:" in " ".join(shown.warnings)) == (quota > 625 >= mbps and not in_vpc)
    assert ("VPC:" in " ".join(shown.warnings)) == in_vpc


def test_the_network_quota_is_found_by_its_name() -> None:
    others = [
        {"QuotaName": "Concurrent executions", "Value": 1000.0, "Unit": "None"},
        {"QuotaName": "Elastic network interfaces per VPC", "Value": 500.0, "Unit": "None"},
    ]
    assert network_mbps(others) is None
    own = {"QuotaName": "Network bandwidth per execution environment", "Value": 3000.0}
    assert network_mbps([*others, own]) == 3000
    assert network_mbps([*others, {**own, "Value": 3.0, "Unit": "Gigabits/Second"}]) == 3000


def test_s3_express_as_in_awss_own_example() -> None:
    """S3 FAQs, example 1: 10 GB for a month, 10**6 writes and 9 * 10**6 reads of 10 KB."""
    usage = BilledUsage(
        express=True,
        puts=10**6,
        gets=9 * 10**6,
        uploaded_bytes=10**6 * 10 * 1024,
        retrieved_bytes=9 * 10**6 * 10 * 1024,
        storage_byte_h=10 * 2**30 * 730,
        # Claims and records are in a bucket of another kind.
        control_puts=1000,
    )
    found = price(usage, PRICES)
    assert found.storage == pytest.approx(1.10)
    assert found.puts == pytest.approx(1.13)
    assert found.gets == pytest.approx(0.27)
    assert found.network == pytest.approx(0.03 + 0.05, abs=0.01)
    assert found.control == pytest.approx(0.005)
    assert found.total == pytest.approx(2.58, abs=0.01)


def test_objects_in_s3_express_have_its_prices(tmp_path: Path) -> None:
    target = Target(bucket="b--use1-az4--x-s3", endpoint_url="http://store")
    standard, express = dollars(PUT), dollars(PUT, bucket=target.bucket)
    assert express.network == pytest.approx(3515.6 * 0.0032, rel=0.001)
    assert storage(1, express=True) == pytest.approx(storage(1) * 0.11 / 0.023)
    # A function that takes longer looks for a stop more often.
    assert express.control == pytest.approx(standard.control, rel=0.01)
    for of in (job(number=1), replace(job(number=1), target=target)):
        one = replace(record(0, [operation()], attempts=[attempt(0, size=2**30)]), memory_mib=1024)
        found = bill(saved(tmp_path / of.target.bucket, [outcome(one)], of=of), PRICES)
        assert found is not None
        is_express = of.target is target
        assert found.dollars.network == pytest.approx(0.0032 if is_express else 0)
        assert found.dollars.puts == pytest.approx(1.13e-6 if is_express else 5e-6)
        usage = outcome_usage(outcome(one), of, memory_mib=1024, architecture="x86_64")
        assert price(usage, PRICES).network == pytest.approx(found.dollars.network)


@pytest.mark.parametrize("kind", [PUT, pytest.param(GET, marks=uses("workload read"))])
def test_components_sum_to_the_total(kind: OperationKind) -> None:
    found = dollars(kind)
    parts = [getattr(found, field.name) for field in fields(Dollars)]
    assert all(part >= 0 for part in parts)
    assert found.total == pytest.approx(sum(parts))


@given(st.floats(0, 1e7))
def test_money_is_short_and_right(amount: float) -> None:
    text = format_money(amount)
    assert len(text) <= 12
    assert float(text[1:].replace(",", "")) == pytest.approx(amount, rel=0.1, abs=1e-6)


def test_other_currencies() -> None:
    assert format_money(2.04, "EUR") == "2.04 EUR"


def test_the_price_file_that_comes_with_sbench_is_dated_and_sourced() -> None:
    assert PRICES.as_of == "2026-10-02"
    assert price_text().count("source = ") == len(fields(Prices)) - 4


def test_a_price_file_of_the_user(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(price_text().replace("price = 0.0000133334", "price = 0.0000100000"))
    assert load_prices(path).lambda_arm64_gb_s == 1e-5
    path.write_text(price_text().replace('as_of = "2026-10-02"', "as_of = 2027-01-01"))
    assert load_prices(path).as_of == "2027-01-01"


@each_row(
    ("old", "new", "says"),
    [
        ("[logs]", "[blogs]", "no price logs.ingest_gb"),
        ("price = 0.50", 'price = "much"', "not a number"),
        ("price = 0.50", "price = true", "not a number"),
        ("price = 0.50", "price = -1", "of -1"),
        ("price = 0.50", "price = nan", "is nan, which is not a number"),
        ('currency = "USD"', "", "has no currency"),
        ("[s3]", "[s3", "is not TOML"),
    ],
)
def test_bad_price_files_are_one_line(tmp_path: Path, old: str, new: str, says: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(price_text().replace(old, new))
    with pytest.raises(UsageError, match=says):
        load_prices(path)


def test_price_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        load_prices(tmp_path / "absent.toml")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not text"):
        load_prices(tmp_path / "binary")


def on_lambda(index: int, *, spent_ns: int, memory_mib: int = 1024) -> object:
    one = record(
        index,
        [operation(start_ns=S, end_ns=S + spent_ns, size=10**6)],
        attempts=[
            attempt(0, size=10**6),
            replace(attempt(0, error="throttled"), status=503),
            replace(attempt(0), request="abort_multipart"),
        ],
    )
    one = replace(one, memory_mib=memory_mib, machine="aarch64", import_ns=200_000_001)
    return replace(one, control_puts=2, control_gets=0)


def test_the_bill_of_a_run(tmp_path: Path) -> None:
    outcomes = [outcome(on_lambda(i, spent_ns=1_000_000_001)) for i in range(3)]  # type: ignore[arg-type]
    of = replace(
        job(number=4, size=10**6),
        control=Target(bucket="c", endpoint_url="http://store"),
        deadline=100.0,
    )
    found = bill(saved(tmp_path / "run", [*outcomes, outcome(lost(3))], of=of))
    assert found is not None
    # 1.000000001 s, 0.200000001 s of imports and 0.1 s of claim and record, rounded up.
    assert found.billed_s == pytest.approx(3 * 1.301)
    assert found.gb_s == pytest.approx(3 * 1.301)
    assert found.architecture == "arm64"
    assert found.dollars.compute == pytest.approx(3 * 1.301 * 0.0000133334)
    # A 503 and an abort are free.
    assert found.requests == {"put": 3, "control": 3 * 2 + 1 + 3}
    assert found.dollars.puts == pytest.approx(3 * 0.000005)
    assert (found.unknown, found.on_aws) == (1, False)
    # Until the deadline, with a second to start and five for the record; a look every 2 s for a
    # stop, and an object of progress, which the driver gets; and requests beside it.
    at_most = 106 * 0.0000133334 + 54 * (5e-6 + 2 * 4e-7) + 2e-7
    assert found.unknown_at_most == pytest.approx(at_most, rel=0.02)
    assert found.estimate is not None
    assert found.estimate_error is not None
    assert found.total * (1 + found.estimate_error) == pytest.approx(found.estimate)


def test_requests_of_kms_are_in_the_bill_of_a_bucket_without_a_bucket_key(tmp_path: Path) -> None:
    attempts = [replace(attempt(n, size=0), request=name) for n, name in enumerate(("get", "put"))]
    one = replace(record(0, [operation(0), operation(1)], attempts=attempts), memory_mib=1024)
    of = replace(job(number=1), target=Target(bucket="b", uses_kms=True))
    with_kms = bill(saved(tmp_path / "kms", [outcome(one)], of=of), PRICES)
    without = bill(saved(tmp_path / "none", [outcome(one)]), PRICES)
    assert with_kms is not None
    assert without is not None
    assert with_kms.dollars.puts - without.dollars.puts == pytest.approx(PRICES.kms_request)
    assert with_kms.dollars.gets - without.dollars.gets == pytest.approx(PRICES.kms_request)


def test_each_request_has_its_class(tmp_path: Path) -> None:
    names = ("get", "head", "put", "copy", "list", "delete", "delete_many")
    ops = [operation(number) for number in range(len(names))]
    attempts = [replace(attempt(n, size=0), request=name) for n, name in enumerate(names)]
    one = replace(record(0, ops, attempts=attempts), memory_mib=1024)
    found = bill(saved(tmp_path / "run", [outcome(one)]), PRICES)
    assert found is not None
    assert set(found.requests) == {"get", "head", "put", "copy", "list", "control"}
    assert found.dollars.gets == pytest.approx(2 * PRICES.s3_get)
    assert found.dollars.puts == pytest.approx(3 * PRICES.s3_put)
    of = job(number=1)
    expected = outcome_usage(outcome(one), of, memory_mib=1024, architecture="x86_64")
    assert (expected.gets, expected.puts) == (2, 3)


def test_storage_counts_the_objects_at_the_end(tmp_path: Path) -> None:
    """Sizes are those of the objects; rewritten objects count once, deleted ones do not count."""
    sizes, kinds = [1000, 3000, 5000, 5000, 3000], [PUT, PUT, PUT, PUT, OperationKind.DELETE]
    keys = ["a.1000", "b.3000", "c.5000", "c.5000", "b.3000"]
    ops = [
        replace(operation(n, size=size, kind=kind, end_ns=(n + 1) * S), key=key)
        for n, (size, kind, key) in enumerate(zip(sizes, kinds, keys, strict=True))
    ]
    one = replace(record(0, ops), memory_mib=1024)
    of = job(number=1, size=None)
    run = saved(tmp_path / "run", [outcome(one)], of=of)
    found = bill(run, PRICES)
    assert found is not None
    assert found.storage_per_month == pytest.approx(6000 / 2**30 * PRICES.s3_storage_gb_month)
    # Without the keys the number is unknown: at most as many objects as the job has places for.
    without = bill(load_run(run.path, detail=False), PRICES)
    assert without is not None
    assert without.storage_per_h > 0


@uses("workload array")
@pytest.mark.parametrize("operation_kind", ["write_array", "read_array", "append_array"])
def test_an_array_costs_a_request_for_each_of_its_chunks(
    tmp_path: Path, operation_kind: str
) -> None:
    array = {"library": "zarr", "shape": (1024, 1024), "chunks": (512, 512), "driver": "zarr3"}
    size = 4 * 1024 * 1024
    kind = OperationKind(operation_kind)
    op = replace(operation(0, size=size, kind=kind), key=f"{'0' * 32}.{size}")
    attempts = [
        replace(attempt(0, size=n), request=name)
        for n, name in ((0, "create_array"), (size, operation_kind))
    ]
    one = replace(
        record(0, [op, replace(op, index=1, error="timeout")], attempts=attempts), memory_mib=1024
    )
    of = replace(job(number=1, workload="array", size=None), load=array_load(**array))
    found = bill(saved(tmp_path / "run", [outcome(one)], of=of), PRICES)
    assert found is not None
    expected = {
        "write_array": {"put": 4 + 1},
        "read_array": {"get": 4 + 1},
        "append_array": {"put": 4},
    }[operation_kind]
    assert found.requests == {**expected, "control": 0}
    in_files = replace(of, load=array_load(**array, path="/data"))
    found = bill(saved(tmp_path / "files", [outcome(one)], of=in_files), PRICES)
    assert found is not None
    assert found.requests == {"control": 0}


@pytest.mark.parametrize("attempts", ["exact", "hidden"])
def test_a_client_that_hides_its_requests_has_a_lower_bound(tmp_path: Path, attempts: str) -> None:
    one = replace(record(0, [operation()]), memory_mib=1024)
    run = saved(tmp_path / "run", [outcome(one)])
    found = bill(replace(run, provenance={"client": {"attempts": attempts}}), PRICES)
    assert found is not None
    assert found.requests_exact is (attempts == "exact")


def test_runs_without_memory_have_no_bill(tmp_path: Path) -> None:
    summary = summarize(saved(tmp_path / "run", [outcome(record(0, [operation()]))]))
    assert "bill" not in summary.parts
    assert "bill" not in summary.to_json()


@uses("workload noop")
def test_metadata_operations_have_no_load() -> None:
    of = job(number=1, workload="noop")
    assert load_of(Sampler(job=of, conditions=CostConditions()), 1) is None


@uses("workload read")
def test_functions_that_share_an_object_read_it_once() -> None:
    of = replace(job(number=2, workload="read", size=None), load=JobLoad(split=2))
    setting = CostConditions(memory_mib=1769, architecture="arm64", object_bytes=1000)
    found = expected(of, setting)
    assert found is not None
    assert found.bytes == 1000


def test_a_duration_decides_how_many_objects_move() -> None:
    of = replace(job(number=1, size=MIB), duration=100.0)
    found = expected(of, CostConditions())
    assert found is not None
    assert found.times.transfer_s.mean() == pytest.approx(100)
    # A put of 1 MiB takes 46 ms, and 11 ms at 93 MB/s; the network then limits to 75 MiB/s.
    assert found.operations == pytest.approx(100 / 0.057, rel=0.05)


def test_an_empty_run_is_free() -> None:
    assert price(BilledUsage(), PRICES).total == 0


@pytest.mark.parametrize("style", ["full", "markdown"])
def test_reports_show_the_bill_next_to_the_estimate(tmp_path: Path, style: str) -> None:
    outcomes = [outcome(on_lambda(i, spent_ns=S)) for i in range(3)]  # type: ignore[arg-type]
    of = replace(
        job(number=4, size=10**6),
        target=Target(bucket="b", endpoint_url="https://s3.us-east-1.amazonaws.com"),
    )
    run = saved(tmp_path / "run", [*outcomes, outcome(lost(3))], of=of)
    out = io.StringIO()
    open_reporter(style)(summarize(run), out)
    text = " ".join(out.getvalue().split())
    assert "Lambda $0.000049" in text
    assert "as if on AWS Lambda" not in text
    assert "1 without a record, $0.012" in text
    assert "error -4.6%" in text
    assert "a month if forgotten" in text
    dear = replace(PRICES, lambda_arm64_gb_s=1.0, as_of="2030-01-01")
    summary = summarize(run, prices=dear)
    assert summary.parts["bill"].total == pytest.approx(3 * 1.2, rel=0.01)
    assert summary.to_json()["bill"]["as_of"] == "2030-01-01"


def test_a_plan_has_the_memory_and_architecture_of_the_job_unless_they_are_given() -> None:
    of = job(number=1).with_options(memory=512, arch="x86_64")
    own, other = plan(of), plan(of, memory=1024, arch="arm64")
    assert other.at_most.gb_s == 2 * own.at_most.gb_s
    assert (own.at_most.architecture, other.at_most.architecture) == ("x86_64", "arm64")


def test_claims_and_records_ask_kms_where_they_are_encrypted_so() -> None:
    target = Target(bucket="b", sse="aws:kms", uses_kms=True)
    of = JobSpec(workload="write", target=target, number=1, size=1)
    assert placed(of)["control_uses_kms"], "a plan does not know the bucket"
    assert not placed(replace(of, target=replace(target, sse="")))["control_uses_kms"]
    assert not placed(replace(of, control=replace(target, sse="")))["control_uses_kms"]
    control = replace(target, uses_kms=False)
    assert not placed(replace(of, control=control))["control_uses_kms"]
    assert placed(replace(of, control=target))["control_uses_kms"]
