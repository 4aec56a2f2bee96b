"""The forecast against published measurements, bills made by hand, and laws that it has to keep."""

import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serverless_bench.features.cost import model as parameters
from serverless_bench.features.cost.expected import expected
from serverless_bench.features.cost.forecast import (
    DRAWS,
    FUNCTIONS,
    CostConditions,
    FunctionTimes,
    Operations,
    Sampler,
)
from serverless_bench.features.cost.model import AWS_LAMBDA, MODELS, Model
from serverless_bench.features.cost.outlook import JobPlan, plan
from serverless_bench.features.cost.prices import load_prices, price
from serverless_bench.features.cost.tests.models import PLAIN, changed
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target, Transfer
from serverless_bench.job.workload import Load
from tests.house.members import uses
from tests.tables import each_row

KIB, MIB = 1 << 10, 1 << 20
PUT, GET = OperationKind.PUT, OperationKind.GET
EXPRESS = "b--use1-az4--x-s3"


def job(
    workload: str = "write",
    number: int = 10,
    size: int = MIB,
    *,
    bucket: str = "b",
    **settings: Any,
) -> tuple[JobSpec, Sequence[str]]:
    """Return a write, or a read and its keys."""
    given = {"target": Target(bucket=bucket), "number": number, "concurrency": number, **settings}
    if workload == "write":
        return JobSpec(workload="write", size=size, **given), ()
    keys = [f"sbench/{n:032x}.{size}" for n in range(number * given.get("objects", 1))]
    return JobSpec(workload="read", **given), keys


def planned(
    *words: Any, memory: int = 1769, model: Model | str = "aws-lambda", **of: Any
) -> JobPlan:
    described, keys = job(*words, **of)
    return plan(described, keys, memory=memory, quota=10_000, model=model)


SKYRISE = {
    "S3 read": ("read", "b", 32.7, (23.8, 47.6)),
    "S3 write": ("write", "b", 46.5, (39.3, 51.2)),
    # The files give the throughput of functions with two digits: 0.12 to 0.15 MB/s for writes.
    "Express read": ("read", EXPRESS, 4.9, (4.6, 5.3)),
    "Express write": ("write", EXPRESS, 7.4, (6.8, 8.3)),
}
"""Skyrise, EDBT 2025: 10 functions of 7,076 MB with 1,000 objects of 1 KB each; seconds of their
operations, median and p5 to p95."""


@uses("workload read")
@each_row("row", SKYRISE)
def test_the_jobs_of_skyrise_are_forecast(row: str) -> None:
    workload, bucket, median, (low, high) = SKYRISE[row]
    found = planned(workload, 10, KIB, bucket=bucket, objects=1000, memory=7076)
    assert found.forecast is not None
    assert found.cost is not None
    whole, moving = found.forecast.function_s, found.forecast.transfer_s
    assert whole.p50 == pytest.approx(median, rel=0.15)
    assert moving.p50 == pytest.approx(median, rel=0.15)
    assert moving.p5 <= low < high <= moving.p95
    assert whole.p95 <= 2.5 * whole.p5
    assert found.cost.p95 <= 2 * found.cost.p5
    assert found.forecast.bound_by == "the latency of requests"


PUBLISHED = {
    "write, 100": ("write", 100, 84.8, 12.0),
    "read, 100": ("read", 100, 99.8, 7.4),
    "write, 1,000": ("write", 1000, 94.1, 24.3),
    "read, 1,000": ("read", 1000, 99.8, 14.3),
}
"""Lithops' records of 2022: median MB/s of functions, and seconds from first start to last end."""
BEFORE = {"write, 100": 0.47, "read, 100": 0.14, "write, 1,000": 0.74, "read, 1,000": 0.56}
"""Misses of the span by the formula that the forecast replaced."""


@uses("workload read")
@each_row("row", PUBLISHED)
def test_the_published_runs_of_lithops_are_forecast(row: str) -> None:
    workload, number, rate, span = PUBLISHED[row]
    found = planned(workload, number, 512 * MIB, memory=1024).forecast
    assert found is not None
    assert 512 * MIB / 1e6 / found.transfer_s.p50 == pytest.approx(rate, rel=0.07)
    assert found.run_s.p5 <= span <= found.run_s.p95
    assert abs(found.run_s.p50 / span - 1) <= BEFORE[row]


GB_S, INVOCATION = 0.0000133334, 0.0000002
PRICE = {PUT: 0.000005, GET: 0.0000004}
EXPRESS_PRICE = {PUT: 0.00000113, GET: 0.00000003}
LOG_GB = 0.50 / 2**30
"""AWS's prices of 2026-10-02, us-east-1: arm64, S3 Standard, S3 Express One Zone, CloudWatch."""


def by_hand(functions: int, seconds: float, memory: int, requests: float) -> float:
    """Return a bill: Lambda, 700 bytes of log each, and the price of the requests.

    Each function claims its invocation and saves its record, and looks for a stop once and every 2
    seconds; the driver fetches each record, lists a fifth of a time for each, puts the stop object,
    and asks the store's clock 20 times. A function puts an object of progress every 2 seconds, and
    one at the end, and the driver gets it.
    """
    progress = functions * (seconds // 2 + 1) if seconds >= 2 else 0
    compute = functions * seconds * memory / 1024 * GB_S
    control = (np.ceil(2.2 * functions) + 1 + progress) * PRICE[PUT]
    control += (np.ceil(functions * (2 + seconds / 2)) + progress) * PRICE[GET]
    return float(compute + functions * (INVOCATION + 700 * LOG_GB) + control + requests)


BILLS: dict[str, tuple[dict[str, Any], float, float]] = {
    # 1,000 puts.
    "small writes": (
        {"objects": 100},
        5.0,
        by_hand(10, 5.0, 1769, 10 * 100 * PRICE[PUT] + 20 * PRICE[GET]),
    ),
    # Each object is created, uploaded in 4 parts, and completed.
    "parts": (
        {"size": 64 * MIB, "transfer": Transfer(part_size=16 * MIB)},
        2.0,
        by_hand(10, 2.0, 1769, 10 * 6 * PRICE[PUT] + 20 * PRICE[GET]),
    ),
    # 8 ranges of 8 MiB, read twice.
    "ranges": (
        {
            "workload": "read",
            "size": 64 * MIB,
            "read_times": 2,
            "transfer": Transfer(part_size=8 * MIB),
        },
        3.0,
        by_hand(10, 3.0, 1769, (10 * 2 * 8 + 20) * PRICE[GET]),
    ),
    # Uploaded bytes have a price of $0.0032 a GB; the driver asks this store for its clock.
    "Express": (
        {"size": MIB, "objects": 50, "bucket": EXPRESS},
        1.5,
        by_hand(
            10,
            1.5,
            1769,
            500 * EXPRESS_PRICE[PUT] + 20 * EXPRESS_PRICE[GET] + 500 / 1024 * 0.0032,
        ),
    ),
    # Functions in one region, objects in another: $0.02 a GB.
    "another region": (
        {"size": 128 * MIB, "options": {"function_region": "us-east-1", "memory": 512}},
        9.0,
        by_hand(10, 9.0, 512, 10 * PRICE[PUT] + 20 * PRICE[GET] + 10 / 8 * 0.02),
    ),
}


@uses("workload read", "executor lambda")
@each_row("row", BILLS)
def test_a_bill_by_hand_is_the_cost_of_a_given_time(row: str) -> None:
    given, seconds, dollars = BILLS[row]
    described, keys = job(**given)
    if row == "another region":
        described = replace(described, target=Target(bucket="b", region="eu-west-1"))
    memory = described.options.get("memory", 1769)
    size = int(keys[0].rpartition(".")[2]) if keys else None
    conditions = CostConditions(memory_mib=memory, architecture="arm64", object_bytes=size)
    controlled = replace(described, control=Target(bucket="control"))
    found = expected(controlled, conditions, function_s=seconds)
    assert found is not None
    assert price(found.usage, load_prices()).total == pytest.approx(dollars, rel=1e-9)


@each_row("number", [1, 3, 100_000])
def test_the_sample_is_bounded_for_any_job(number: int) -> None:
    described, _ = job("write", number, KIB, objects=100_000, load=Load(threads=64))
    sampler = Sampler(job=described, conditions=CostConditions(quota=number))
    found = sampler.times([Operations(kind=PUT, count=1e6, size=KIB, parts=1000, lanes=100)])
    assert found.transfer_s.shape == (DRAWS, min(number, FUNCTIONS))
    runs, launches = found.run
    assert (launches >= 0).all()
    assert (runs >= launches).all()


def times(
    model: Model, *rows: Operations, number: int = 20, quota: int | None = None, **setting: Any
) -> FunctionTimes:
    described, _ = job("write", number)
    conditions = CostConditions(quota=quota, **setting)
    return Sampler(job=described, conditions=conditions, model=model).times(rows)


def test_what_bounds_a_job_is_named() -> None:
    function: dict[str, Any] = {"on_lambda": True, "core_s_per_gib": 0.0}
    large = Operations(kind=PUT, count=1, size=2000 * MIB)
    small = Operations(kind=PUT, count=1000, size=KIB)
    slow = {"connection_put_bytes_per_s": 1e6}
    found = {
        times(model, row).forecast(row.requests).bound_by
        for model, row in (
            (changed(PLAIN, store={"put_s": 1.0}), small),
            (changed(PLAIN, function={**function, **slow}), large),
            (changed(PLAIN, function={**function, "line_put_bytes_per_s": 9e6}), large),
            (changed(PLAIN, function={"core_s_per_gib": 50.0}), large),
            (changed(PLAIN, function={**function, "connection_put_bytes_per_s": 1e9}), large),
            (changed(PLAIN, launch={"cold_s": 90.0, "cold_sigma": 0.5}), small),
            (changed(PLAIN, store={"bytes_per_s": 1e6}), large),
            (changed(PLAIN, store={"put_s": 0.001, "put_per_s": 10.0}), small),
        )
    }
    assert found == {
        "the latency of requests",
        "the rate of a connection",
        "a function's line rate",
        "a function's CPU",
        "a function's network after the burst",
        "the launch of the functions",
        "the rate that all functions share",
        "the request rate of a partition",
    }
    queue = times(changed(PLAIN, store={"put_s": 1.0}), replace(small, count=1), quota=5)
    assert queue.forecast(1).bound_by == "the quota of concurrent functions"
    assert queue.forecast(1).batches == 4
    assert queue.run[0] == pytest.approx(4)


@each_row(
    ("size_mib", "connections", "seconds"),
    [
        # Within the burst, at 100 MB/s and at the line rate of 1.2 GiB/s.
        (100, 1, 100 * MIB / 100e6),
        (100, 32, 100 / 1024 / 1.2),
        # 300 MiB, half of them not refilled while they are used, then 625 Mbps.
        (2000, 1, 150 * MIB / 100e6 + (2000 - 300) * MIB / 78.125e6),
        (2000, 32, 150 / 1024 / 1.2 + (2000 - 300) * MIB / 78.125e6),
    ],
)
def test_the_network_of_a_function_has_a_burst(
    size_mib: int, connections: int, seconds: float
) -> None:
    model = changed(
        PLAIN,
        function={
            "on_lambda": True,
            "connection_get_bytes_per_s": 100e6,
            "line_get_bytes_per_s": 1.2 * 2**30,
            "core_s_per_gib": 0.0,
        },
    )
    row = Operations(kind=GET, count=1, size=size_mib * MIB, parts=connections, lanes=connections)
    assert times(model, row).transfer_s == pytest.approx(seconds, rel=1e-6)


def test_small_memory_is_a_small_cpu() -> None:
    row = Operations(kind=PUT, count=1, size=100 * MIB)
    full, small = (
        times(AWS_LAMBDA, row, memory_mib=memory).transfer_s.mean() for memory in (1769, 128)
    )
    # 1.19 core-seconds per GiB, and 90 ms for the connection and the response.
    assert small == pytest.approx(0.09 + 100 / 1024 * 1.19 * 1769 / 128, rel=0.03)
    assert small > full


def test_latencies_have_a_body_a_tail_a_drift_and_a_connection() -> None:
    store = {"get_s": 0.02, "get_sigma": 0.5}
    row = Operations(kind=GET, count=2000)

    def found(**more: float) -> FunctionTimes:
        return times(changed(PLAIN, store={**store, **more}), row)

    usual = found().transfer_s
    assert usual.mean() == pytest.approx(2000 * 0.02 * np.exp(0.5**2 / 2), rel=0.01)
    assert found(connect_s=1.0).transfer_s.mean() == pytest.approx(usual.mean() + 1, rel=0.01)
    # A hundredth of the requests takes 10 medians or more: 20 with this exponent, on average.
    tail = found(get_tail=0.01, get_tail_from=10.0, get_tail_slope=2.0).transfer_s
    assert tail.mean() == pytest.approx(usual.mean() + 2000 * 0.01 * 0.02 * 20, rel=0.1)
    drift = np.log(found(get_drift_sigma=0.3).transfer_s)
    assert drift.mean(axis=1).std() == pytest.approx(0.3, rel=0.2)
    assert drift.std(axis=1).max() < 0.05
    spread = np.log(found(get_spread_sigma=0.3).transfer_s)
    assert spread.std(axis=1).mean() == pytest.approx(0.3, rel=0.1)


def test_the_slowest_of_many_is_found_in_a_sample() -> None:
    """5,000 functions with exponential-like times: the sample has 1,000 of them."""
    model = changed(PLAIN, store={"put_s": 1.0, "put_sigma": 0.4})
    row = Operations(kind=PUT, count=1)
    found = times(model, row, number=5000).run[0]
    source = np.random.default_rng(5)
    whole = np.exp(0.4 * source.standard_normal((400, 5000))).max(axis=1)
    assert np.median(found) == pytest.approx(np.median(whole), rel=0.05)


def test_a_quota_of_few_functions_takes_its_time() -> None:
    model = changed(PLAIN, store={"put_s": 1.0})
    row = Operations(kind=PUT, count=1)
    for quota in (1, 3, 700):
        found = times(model, row, number=20_000, quota=quota).run[0]
        assert np.median(found) == pytest.approx(20_000 / quota, rel=0.05)


@given(
    st.sampled_from((PUT, GET)),
    st.integers(1, 1 << 33),
    st.integers(1, 1 << 33),
    st.integers(1, 16),
    st.integers(128, 10240),
)
@settings(max_examples=20, deadline=None)
def test_more_bytes_are_never_faster(
    kind: OperationKind, size: int, more: int, lanes: int, memory: int
) -> None:
    small, large = (
        times(
            AWS_LAMBDA,
            Operations(kind=kind, count=1, size=moved, parts=lanes, lanes=lanes),
            memory_mib=memory,
        ).transfer_s
        for moved in (size, size + more)
    )
    assert (large >= small * (1 - 1e-9)).all()


@each_row("name", MODELS)
def test_each_number_has_a_source_a_date_and_a_confidence(name: str) -> None:
    path = Path(parameters.__file__).parent / "models" / f"{name}.toml"
    known = {"documented", "measured", "fitted", "assumed"}
    for part, table in tomllib.loads(path.read_text("utf-8")).items():
        for parameter, number in table.items():
            assert set(number) == {"value", "source", "date", "confidence"}, f"{part}.{parameter}"
            assert number["confidence"] in known
            assert number["date"][:4].isdigit()


def test_the_laws_of_latency_have_the_published_percentiles() -> None:
    """Skyrise's raw data: p50, p90, p99 and mean in milliseconds."""
    rng = np.random.default_rng(1)
    express = AWS_LAMBDA.express
    assert express is not None
    for store, kind, published in (
        (AWS_LAMBDA.store, GET, (26.9, 59.2, 105.5, 33.0)),
        (AWS_LAMBDA.store, PUT, (40.4, 74.9, 123.4, 45.8)),
        (express, GET, (4.78, 5.28, 7.05, 4.92)),
        (express, PUT, (7.35, 8.30, 12.5, 7.64)),
    ):
        drawn = 1000 * store.latencies(kind, (400_000,), rng)
        found = [*np.percentile(drawn, (50, 90, 99)), drawn.mean()]
        assert found == pytest.approx(published, rel=0.1)
