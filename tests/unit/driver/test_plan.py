import json
from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.base.errors import UsageError
from serverless_bench.driver.plan import ledger
from serverless_bench.job.invocations import derive_seed, invocation_specs
from serverless_bench.job.keys import declared_size
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.job.target import Target, Transfer
from serverless_bench.job.workload import Load
from tests.data.runs import job
from tests.house.members import uses
from tests.tables import each_row


def planned(of: JobSpec, run_id: str = "r", keys: tuple[str, ...] = ()) -> list[InvocationSpec]:
    return list(invocation_specs(of, run_id=run_id, created_ns=5, keys=keys))


def test_a_plan_is_a_function_of_job_and_run() -> None:
    assert planned(job(number=3)) == planned(job(number=3))


def test_new_runs_write_new_keys_for_any_seed() -> None:
    of = job(number=50)
    first, second = (list(ledger(of, planned(of, run_id))) for run_id in ("a", "b"))
    assert len({*first, *second}) == 100
    reseeded = replace(of, seed=9)
    assert list(ledger(reseeded, planned(reseeded, "a"))) == first


def test_sizes_only_depend_on_the_seed() -> None:
    of = replace(job(number=20, size=None), load=Load(sizes="uniform:1:1000000"))
    first, second = (list(ledger(of, planned(of, run_id))) for run_id in ("a", "b"))
    sizes = [declared_size(key) for key in first]
    assert sizes == [declared_size(key) for key in second]
    assert not {*first} & {*second}
    assert len(set(sizes)) == 20
    other = replace(of, seed=1)
    assert sizes != [declared_size(key) for key in ledger(other, planned(other))]


def test_a_key_declares_its_size_and_keeps_its_prefix() -> None:
    of = replace(job(number=1, size=12345), target=target(prefix="my/own/"))
    (key,) = ledger(of, planned(of))
    assert key.startswith("my/own/")
    assert declared_size(key) == 12345


@uses("workload read")
def test_a_ledger_only_lists_created_keys() -> None:
    of = job(number=2, workload="read", size=None)
    assert list(ledger(of, planned(of, keys=("k",)))) == []


@pytest.mark.parametrize(
    ("number", "objects", "expected"),
    [
        (2, 1, [("a",), ("b",)]),
        (4, 1, [("a",), ("b",), ("c",), ("a",)]),
        (2, 2, [("a", "b"), ("c", "a")]),
    ],
)
def test_keys_are_dealt_in_order_and_start_over(
    number: int, objects: int, expected: list[tuple[str, ...]]
) -> None:
    of = replace(job(number=number, workload="read"), objects=objects)
    assert [spec.keys for spec in planned(of, keys=("a", "b", "c"))] == expected


def test_an_invocation_is_below_four_kilobytes() -> None:
    of = replace(job(number=1, workload="read"), target=target(prefix="p" * 200))
    (spec,) = planned(of, run_id="r" * 40, keys=("k" * 1024,))
    assert len(json.dumps(asdict(spec))) < 4096


@given(st.integers(1, 10**5), st.integers(0, 2**63 - 1))
def test_a_job_and_its_invocations_survive_json(invocations: int, seed: int) -> None:
    of = replace(job(number=invocations), seed=seed)
    assert JobSpec.from_json(json.loads(json.dumps(of.to_json()))) == of
    spec = next(invocation_specs(of, run_id="r", created_ns=0))
    assert InvocationSpec.from_json(json.loads(json.dumps(asdict(spec)))) == spec


def test_neighbouring_seeds_are_unrelated() -> None:
    assert len({derive_seed(seed, index) for seed in range(30) for index in range(30)}) == 900


@each_row(
    ("field", "value", "words"),
    [
        ("number", 0, "`number` must be at least 1"),
        ("concurrency", -1, "`concurrency` must be at least 1"),
        ("size", 0, "`size` must be at least 1"),
        ("objects", 0, "`objects` must"),
        ("read_times", 0, "`read_times` must"),
        ("read_times", 1_000_001, "`read_times` must be at most 1,000,000"),
        ("objects", 1_000_001, "`objects` must be at most 1,000,000"),
        ("number", 500_001, "`number` must be at most 500,000"),
        ("deadline", 0.0, "`deadline` must be positive"),
        ("deadline", float("nan"), "`deadline` must be a number"),
    ],
)
def test_a_job_that_makes_no_sense_is_refused(field: str, value: float, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        replace(job(number=1), **{field: value})  # type: ignore[arg-type]


@each_row(
    ("field", "value", "words"),
    [
        ("connections", 0, "`connections` must"),
        ("part_size", 6 << 30, "`part_size` must be between 1 KiB and 5 GiB, got 6 GiB"),
        ("block_size", 0, "`block_size` must"),
        ("retries", -1, "`retries` must"),
        ("timeout", -1.0, "`timeout` must"),
    ],
)
def test_a_transfer_that_makes_no_sense_is_refused(field: str, value: float, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        replace(Transfer(), **{field: value})  # type: ignore[arg-type]


def test_more_than_ten_thousand_parts_are_refused() -> None:
    with pytest.raises(UsageError, match="at most 10000"):
        replace(job(number=1, size=10**12), transfer=Transfer(part_size=5 << 20))


def target(prefix: str) -> Target:
    return Target(bucket="b", endpoint_url="http://store", prefix=prefix)
