"""The forecast's bounded sample against whole simulations."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from serverless_bench.base.units import KIB, MIB
from serverless_bench.features.cost.forecast import Sampler, load_of
from serverless_bench.features.cost.limits import CostConditions
from serverless_bench.features.cost.model import AWS_LAMBDA
from serverless_bench.features.simulation.simulated_run import advance
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target, Transfer
from serverless_bench.job.workload import Load
from tests.house.members import uses
from tests.tables import each_row

RUNS = {"a large object": 500, "parts": 500}
"""Simulations of each job, each of which is one run with its own drift; 100 of the others, whose
longest function varies less.
"""

JOBS: dict[str, dict[str, Any]] = {
    "small reads": {"workload": "read", "number": 10, "size": KIB, "objects": 300},
    "small writes in Express": {"number": 10, "size": KIB, "objects": 300, "express": True},
    "a large object": {"number": 200, "size": 512 * MIB},
    "a large object after the burst": {"workload": "read", "number": 50, "size": 1500 * MIB},
    "parts": {
        "number": 40,
        "size": 256 * MIB,
        "objects": 2,
        "transfer": Transfer(part_size=16 * MIB, connections=4),
    },
    "ranges at the line rate": {
        "workload": "read",
        "number": 20,
        "size": 256 * MIB,
        "transfer": Transfer(part_size=8 * MIB, connections=32),
    },
    "threads": {
        "workload": "read",
        "number": 20,
        "size": 64 * KIB,
        "objects": 100,
        "load": Load(threads=8),
    },
    "batches": {"number": 900, "size": 64 * MIB, "concurrency": 200},
    "a long launch": {"number": 2500, "size": 16 * MIB},
    "a full partition": {"number": 300, "size": KIB, "objects": 150},
}


def job(
    *,
    workload: str = "write",
    number: int,
    size: int,
    express: bool = False,
    **settings: Any,
) -> tuple[JobSpec, Sequence[str]]:
    target = Target(bucket="b--use1-az4--x-s3" if express else "b")
    given = {"target": target, "number": number, "concurrency": number, **settings}
    if workload == "write":
        return JobSpec(workload="write", size=size, **given), ()
    keys = [f"sbench/{n:032x}.{size}" for n in range(number * given.get("objects", 1))]
    return JobSpec(workload="read", **given), keys


@pytest.mark.full
@uses("workload read")
@each_row("name", JOBS)
def test_a_sample_agrees_with_whole_simulations(name: str) -> None:
    described, keys = job(**JOBS[name])
    conditions = CostConditions(quota=described.concurrency)
    load = load_of(Sampler(job=described, conditions=conditions), JOBS[name]["size"])
    assert load is not None
    sampled = Sampler(job=described, conditions=conditions).times([load])
    launch, functions, runs = AWS_LAMBDA.launch, [], []
    for seed in range(RUNS.get(name, 100)):
        seeded = replace(described, seed=seed)
        _, state, _ = advance(seeded, keys, "run", AWS_LAMBDA, conditions)
        functions.append(state.end_s - state.launcher.start_s)
        runs.append(state.end_s.max() - state.launcher.start_s.min())
    for part, whole in (
        (sampled.billed_s - launch.billed_s, np.concatenate(functions)),
        (sampled.run[0], np.array(runs)),
    ):
        low, median, high = np.percentile(part, (5, 50, 95)) / np.percentile(whole, (5, 50, 95))
        assert median == pytest.approx(1, abs=0.05)
        assert (low, high) == pytest.approx((1, 1), abs=0.1)
