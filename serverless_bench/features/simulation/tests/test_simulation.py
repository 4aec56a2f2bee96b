"""A simulation follows its model to the last byte, and is reproducible."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import MIB, NS_PER_S
from serverless_bench.features.cost.limits import CostConditions
from serverless_bench.features.cost.model import AWS_LAMBDA, LOOPBACK, MODELS, load_model
from serverless_bench.features.cost.tests.models import changed
from serverless_bench.features.simulation.simulated_run import simulate
from serverless_bench.features.simulation.tests.models import job, simulated
from serverless_bench.job.invocations import derive_seed
from serverless_bench.job.target import Stat, Transfer
from serverless_bench.job.workload import Load
from serverless_bench.metrics.summary import summarize
from serverless_bench.rundir.run import Run, load_run
from serverless_bench.rundir.tables import is_text
from serverless_bench.worker.retry import drawn_wait_s, jitter_of, longest_wait_s
from tests.house.members import uses
from tests.unit.metrics.test_reference import agree_on

BUSY = {
    "parts, threads and connections": (
        {},
        {
            "transfer": Transfer(part_size=5 * MIB, connections=3),
            "load": Load(threads=2),
            "objects": 3,
        },
    ),
    "refused, and some given up": (
        {"store": {"put_per_s": 2.0}},
        {
            "transfer": Transfer(part_size=5 * MIB, connections=2, retries=1),
            "objects": 2,
            "functions": 8,
        },
    ),
    "sizes that are drawn": (
        {"store": {"bytes_per_s": 50e6}},
        {"load": Load(sizes="uniform:1KiB:20MiB"), "size": None, "objects": 4},
    ),
    "a deadline": ({"function": {"bytes_per_s": 5e6}}, {"objects": 4, "deadline": 5.0}),
}


@pytest.mark.parametrize(("parts", "settings"), BUSY.values(), ids=list(BUSY))
def test_a_simulated_run_passes_the_self_checks_and_the_reference_agrees(
    tmp_path: Path, parts: dict[str, Any], settings: dict[str, Any]
) -> None:
    run = simulated(tmp_path / "run", changed(LOOPBACK, **parts), **settings)
    assert (run.skipped_lines, run.problems, run.ended) == (0, (), True)
    assert summarize(run).withheld == ()
    agree_on(run.path, settings, with_warmup=False)


def test_one_on_lambda_agrees_with_the_reference_bill_included(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", AWS_LAMBDA, 6, deployed=CostConditions(quota=2), objects=2)
    summary = summarize(run)
    assert summary.withheld == ()
    assert "bill" in summary.parts
    assert summary.cold_starts < 6  # later functions reused an environment
    agree_on(run.path, "lambda", with_warmup=False)


def contents(run: Run) -> Mapping[str, bytes]:
    return {file.name: file.read_bytes() for file in run.path.iterdir()}


def test_the_same_seed_gives_the_same_bytes_and_another_one_others(tmp_path: Path) -> None:
    runs = [simulated(tmp_path / f"{n}", AWS_LAMBDA, seed=seed) for n, seed in enumerate((7, 7, 8))]
    first, again, other = map(contents, runs)
    assert first == again
    assert set(first) == {"run.json", "records.jsonl", "keys.txt", "ledger.txt"}
    assert first["records.jsonl"] != other["records.jsonl"]
    assert runs[0].run_id != runs[2].run_id


@uses("workload read")
def test_its_ledger_is_empty_and_its_objects_can_be_read(tmp_path: Path) -> None:
    written = simulated(tmp_path / "w", AWS_LAMBDA)
    assert written.ledger() == []
    keys = written.keys()
    assert len(keys) == 4
    read = simulated(tmp_path / "r", AWS_LAMBDA, workload="read", size=None, keys=keys)
    assert sorted(load_run(read.path).operations["key"]) == sorted(keys)
    found = summarize(read)
    # A simulation compares no bytes.
    assert (found.bytes, found.verified_bytes) == (64 * MIB, 0)


def spans_s(run: Run) -> "np.ndarray[Any, Any]":
    return (run.operations["end_ns"] - run.operations["start_ns"]) / NS_PER_S


def test_a_connection_a_latency_and_a_bucket_add_up(tmp_path: Path) -> None:
    model = changed(function={"connection_put_bytes_per_s": 4e6}, store={"put_s": 0.25})
    assert spans_s(simulated(tmp_path / "c", model)) == pytest.approx(16 * MIB / 4e6 + 0.25)
    # The burst at the speed of the CPU, the rest at the rate of the bucket.
    model = changed(function={"burst_bytes": 4 * MIB, "bytes_per_s": 2 * MIB})
    assert spans_s(simulated(tmp_path / "b", model)) == pytest.approx(6, rel=0.03)
    model = changed(function={"core_s_per_gib": 64.0})
    assert spans_s(simulated(tmp_path / "p", model)) == pytest.approx(1)


def test_parts_are_moved_side_by_side_between_two_more_requests(tmp_path: Path) -> None:
    model = changed(function={"connection_put_bytes_per_s": 8 * MIB}, store={"put_s": 0.5})
    transfer = Transfer(part_size=8 * MIB, connections=2)
    run = simulated(tmp_path / "run", model, 1, mib=32, transfer=transfer)
    assert list(run.attempts["request"]) == [
        *("create_multipart", *["upload_part"] * 4, "complete_multipart"),
    ]
    assert run.attempts["part"].tolist() == [0, 1, 2, 3, 4, 0]
    # Opened, two rounds of two parts each, closed: five waits for an answer? Four.
    assert spans_s(run) == pytest.approx(0.5 + 2 * (1 + 0.5) + 0.5)


def test_environments_start_at_the_rate_of_the_cloud(tmp_path: Path) -> None:
    model = changed(launch={"burst": 3, "per_s": 2.0, "cold_s": 60.0})
    run = simulated(tmp_path / "run", model, 9)
    at_s = (run.functions["submitted_ns"] - run.created_ns) / NS_PER_S
    assert at_s == pytest.approx([0, 0, 0, 0.5, 1, 1.5, 2, 2.5, 3], abs=1e-6)
    assert run.functions["cold_start"].all()
    # Two names have two rates.
    run = simulated(tmp_path / "two", model, 9, deployed=CostConditions(names=2))
    assert (run.functions["submitted_ns"] - run.created_ns).max() / NS_PER_S == pytest.approx(0.75)


def test_concurrency_stays_within_the_limit_and_slots_are_reused(tmp_path: Path) -> None:
    model = changed(launch={"collect_s": 1.0}, function={"connection_put_bytes_per_s": 16 * MIB})
    run = simulated(tmp_path / "run", model, 6, concurrency=2)
    start_s = (run.functions["start_ns"] - run.created_ns) / NS_PER_S
    assert start_s == pytest.approx([0, 0, 2, 2, 4, 4], abs=0.02)
    assert len(set(run.functions["worker_id"])) == 2


def test_a_partition_admits_its_rate_and_refused_requests_wait_by_the_clients_law(
    tmp_path: Path,
) -> None:
    run = simulated(tmp_path / "run", changed(LOOPBACK, store={"put_per_s": 10.0}), 60, mib=1)
    attempts = run.attempts
    admitted = is_text(attempts["error"], None)
    assert admitted.sum() == 60
    # The quota of a second may be used at once; after that the requests are refused.
    at_s = np.sort(attempts["start_ns"][admitted] - run.created_ns) / NS_PER_S
    assert (np.arange(1, 61) <= 10 + 10 * (at_s + 0.1)).all()
    waits = attempts["wait_ns"] / NS_PER_S
    longest = np.array([0.0, *map(longest_wait_s, range(1, 30))])
    assert (waits <= longest[attempts["number"]]).all()
    assert (waits[attempts["number"] > 0] > 0).all()


def test_refused_functions_wait_like_a_worker_with_that_seed(tmp_path: Path) -> None:
    run = simulated(
        tmp_path / "run", changed(LOOPBACK, store={"put_per_s": 5.0}), 8, objects=3, seed=4
    )
    attempts = run.attempts
    again = attempts["number"] > 0
    for row, index in enumerate(run.functions["index"].tolist()):
        its = again & (attempts["function"] == row)
        source = jitter_of(derive_seed(4, index), 0)
        drawn = [drawn_wait_s(source, number) for number in attempts["number"][its].tolist()]
        assert attempts["wait_ns"][its] / NS_PER_S == pytest.approx(drawn)
    assert again.sum() > 20


def test_more_partitions_admit_more_and_they_split_with_time(tmp_path: Path) -> None:
    one, four = (
        summarize(
            simulated(tmp_path / f"{n}", changed(LOOPBACK, store=limits), 60, mib=1)
        ).elapsed_s
        or 0
        for n, limits in enumerate(
            (
                {"put_per_s": 5.0},
                {"put_per_s": 5.0, "split_s": 0.2, "most_partitions": 4},
            )
        )
    )
    assert four < one / 2


def test_a_ceiling_is_shared_and_never_passed(tmp_path: Path) -> None:
    model = changed(
        LOOPBACK,
        store={"bytes_per_s": 100e6, "share_sigma": 0.4},
        function={"connection_put_bytes_per_s": 9e6, "connection_put_sigma": 0.5},
    )
    summary = summarize(simulated(tmp_path / "run", model, 20, mib=32))
    assert 98e6 < (summary.peak_1s_bytes_per_s or 0) <= 101e6


@uses("workload noop", "workload read")
@pytest.mark.parametrize(
    ("says", "settings"),
    [
        ("a noop is not simulated", {"workload": "noop", "size": None}),
        ("--duration is not simulated", {"duration": 1.0}),
        ("--warm-up is not simulated", {"warm_up": 1}),
        ("--barrier is not simulated", {"options": {"barrier": 1.0}}),
        ("--stat is not simulated", {"transfer": Transfer(stat=Stat.EACH)}),
        ("a simulation takes", {"objects": 1_000_000, "functions": 400}),
        (
            "the size of 'foreign' is unknown",
            {"workload": "read", "size": None, "keys": ["foreign"]},
        ),
    ],
)
def test_unknown_parameters_are_refused(
    tmp_path: Path, says: str, settings: dict[str, Any]
) -> None:
    keys, functions = settings.pop("keys", ()), settings.pop("functions", 4)
    with pytest.raises(UsageError, match=says):
        simulate(job(functions, **settings), tmp_path / "run", keys=keys)
    assert not (tmp_path / "run").exists()


def test_a_run_of_more_than_a_day_is_refused_and_any_seed_will_do(tmp_path: Path) -> None:
    slow = changed(launch={"burst": 1, "per_s": 1e-5, "cold_s": 1e5})
    with pytest.raises(UsageError, match="takes more than a day"):
        simulated(tmp_path / "slow", slow, 3)
    assert not (tmp_path / "slow").exists()
    assert simulated(tmp_path / "run", AWS_LAMBDA, seed=-5).ended


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("bases = 'x'", "`bases` is unknown; use base, launch, function, store"),
        ("base = 'x'", "`base` must be one of aws-lambda, loopback"),
        ("store = 3", "`store` must be a table"),
        ("[store]\nputs = 3", "`store.puts` is unknown"),
        ("[store]\nput_s = -1", "`store.put_s`: Expected `float` >= 0"),
        ("[store]\nput_s = 'long'", "`store.put_s`: Expected `float`, got `str`"),
        ("[store]\nput_s = nan", "`store.put_s`"),
        ("[store]\nbytes_per_s = 0", "`store.bytes_per_s`"),
        ("[store]\npartitions = 3", "`store.most_partitions` is below"),
        ("[launch]\nburst = 'none'", "have to be set together"),
        ("[function]\nburst_bytes = 5", "needs `function.bytes_per_s`"),
        ("[store", "is not a model"),
    ],
)
def test_a_file_that_is_no_model_is_refused_by_the_field(
    tmp_path: Path, text: str, says: str
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as found:
        load_model(str(path))
    assert says in str(found.value)


def test_a_file_changes_what_it_names_and_may_take_a_limit_away(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('base = "aws-lambda"\n[store]\nput_per_s = "none"\nbytes_per_s = 1e12\n')
    made = load_model(str(path))
    store = {**asdict(AWS_LAMBDA.store), "put_per_s": None, "bytes_per_s": 1e12}
    assert asdict(made) == {**asdict(AWS_LAMBDA), "name": "mine", "store": store}
    assert load_model("loopback") is MODELS["loopback"]
