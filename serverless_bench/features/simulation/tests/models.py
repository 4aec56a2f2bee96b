"""Simulations of few functions, under conditions that a test knows."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from serverless_bench.base.units import MIB
from serverless_bench.features.simulation.limits import Deployed
from serverless_bench.features.simulation.model import FunctionModel, Launch, Model, Store
from serverless_bench.features.simulation.simulated_run import simulate
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from serverless_bench.rundir.run import Run

PLAIN = Model(
    name="plain", launch=Launch(), function=FunctionModel(core_s_per_gib=0.01), store=Store()
)
"""Model in which only the steps that a test adds take time."""


def changed(base: Model = PLAIN, **parts: dict[str, Any]) -> Model:
    """Return a model with other parameters, by part."""
    made = {name: replace(getattr(base, name), **values) for name, values in parts.items()}
    return replace(base, **made)


def job(functions: int = 4, *, mib: int = 16, **settings: Any) -> JobSpec:
    """Return a write."""
    given = {"concurrency": functions, "size": mib * MIB, "workload": "write", **settings}
    return JobSpec(target=Target(bucket="b"), number=functions, **given)


def simulated(
    where: Path, model: Model, functions: int = 4, deployed: Deployed | None = None, **settings: Any
) -> Run:
    """Return the run of a simulated write."""
    keys = settings.pop("keys", ())
    return simulate(job(functions, **settings), where, model=model, keys=keys, deployed=deployed)
