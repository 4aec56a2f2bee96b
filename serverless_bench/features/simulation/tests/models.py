"""Simulations of few functions, under conditions that a test knows."""

from pathlib import Path
from typing import Any

from serverless_bench.base.units import MIB
from serverless_bench.features.cost.limits import CostConditions
from serverless_bench.features.cost.model import Model
from serverless_bench.features.simulation.simulated_run import simulate
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from serverless_bench.rundir.run import Run


def job(functions: int = 4, *, mib: int = 16, **settings: Any) -> JobSpec:
    """Return a write."""
    given = {"concurrency": functions, "size": mib * MIB, "workload": "write", **settings}
    return JobSpec(target=Target(bucket="b"), number=functions, **given)


def simulated(
    where: Path,
    model: Model,
    functions: int = 4,
    deployed: CostConditions | None = None,
    **settings: Any,
) -> Run:
    """Return the run of a simulated write."""
    keys = settings.pop("keys", ())
    return simulate(job(functions, **settings), where, model=model, keys=keys, deployed=deployed)
