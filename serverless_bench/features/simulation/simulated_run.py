"""Run directory, marked as simulated, from a job and a model."""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson

from serverless_bench.base.errors import ArchiveError, UsageError
from serverless_bench.base.units import format_count
from serverless_bench.driver.plan import check
from serverless_bench.features.cost.advice import MAX_FUNCTION_S
from serverless_bench.features.cost.forecast import Operations, Sampler
from serverless_bench.features.cost.limits import (
    CostConditions,
    FunctionLauncher,
    limits_of,
    shared_bytes_per_s,
)
from serverless_bench.features.cost.model import AWS_LAMBDA, Model, load_model
from serverless_bench.features.simulation.demand import Demand, demand_of
from serverless_bench.features.simulation.engine import Engine
from serverless_bench.features.simulation.records import CREATED_NS, outcomes
from serverless_bench.features.simulation.state import SimulationState
from serverless_bench.features.simulation.store import Retries
from serverless_bench.job.invocations import derive_seed
from serverless_bench.job.spec import DescribedJob, JobSpec
from serverless_bench.job.target import Verify
from serverless_bench.rundir.archive import Archive
from serverless_bench.rundir.record import Outcome, Shown
from serverless_bench.rundir.run import Run, load_run
from serverless_bench.version import __version__

EXECUTOR: Final = "simulated"


def simulate(
    job: JobSpec,
    directory: str | Path,
    *,
    model: Model | str = AWS_LAMBDA.name,
    keys: Sequence[str] = (),
    deployed: CostConditions | None = None,
) -> Run:
    """Simulate a job with a model and write a run directory, without any store.

    Parameters
    ----------
    job
        A write or a read; all random numbers derive from its seed.
    directory
        The new run directory.
    model
        A model, its name (aws-lambda or loopback), or a file that changes one.
    keys
        Objects that it reads, for example of a simulated write.
    deployed
        Memory, quota and network of functions on Lambda; None for the defaults.

    Raises
    ------
    UsageError
        If the job is inconsistent, has a setting that is not simulated, or takes more than a day,
        or a function exceeds Lambda's limit on its duration.
    ArchiveError
        If the directory holds a run, or cannot be written.

    Examples
    --------
    >>> target = sbench.Target(bucket="mine")
    >>> job = sbench.JobSpec(
    ...     workload="write",
    ...     target=target,
    ...     number=5000,
    ...     concurrency=5000,
    ...     size=64 * MIB,
    ... )
    >>> imagined = sbench.simulate(job, "imagined")
    >>> imagined.simulated, sbench.summarize(imagined).ok
    ('aws-lambda', 5000)
    """
    model = load_model(model) if isinstance(model, str) else model
    check(job, keys)
    deployed = deployed or CostConditions()
    job = _described(job, deployed)
    run_id = _run_id(job, model, deployed, keys)
    demand, simulated, core_s_per_gib = advance(job, keys, run_id, model, deployed)
    if model.function.on_lambda:
        _check_times(simulated)
    results = outcomes(demand, simulated, run_id, model, deployed, core_s_per_gib)
    header = {
        "run_id": run_id,
        "created_ns": CREATED_NS,
        "job": job.to_json(),
        "provenance": _provenance(_model_json(model, deployed)),
        "simulated": model.name,
    }
    return _saved(Path(directory), header, keys, results)


def advance(
    job: JobSpec, keys: Sequence[str], run_id: str, model: Model, deployed: CostConditions
) -> tuple[Demand, SimulationState, float]:
    """Return the demand of a job, its simulation, and the core-seconds per GiB of its client."""
    demand = demand_of(job, keys, run_id=run_id)
    rng = np.random.default_rng(derive_seed(job.seed))
    concurrency, client, bucket = job.concurrency, job.target.client, job.target.bucket
    ceiling = shared_bytes_per_s(model, bucket, deployed)
    store = replace(model.store_of(bucket), bytes_per_s=ceiling if math.isfinite(ceiling) else None)
    limits = replace(
        limits_of(model, demand.kind, (job.number,), deployed, client=client, rng=rng),
        function_s=_function_s(job, demand, model, deployed),
    )
    launcher = FunctionLauncher(
        model.launch, job.number, concurrency=concurrency, names=deployed.names, rng=rng
    )
    engine = Engine(
        demand,
        replace(model, store=store),
        limits,
        launcher,
        retries=Retries(job.seed, demand.threads, job.transfer.retries),
        deadline_s=job.deadline,
        rng=rng,
    )
    return demand, engine.run(), limits.core_s_per_gib


def _function_s(job: JobSpec, demand: Demand, model: Model, deployed: CostConditions) -> float:
    """Return about how long a function takes, of which the engine's steps are a fraction."""
    count = len(demand.size) / demand.functions
    each = Operations(
        kind=demand.kind,
        count=count,
        size=float(demand.size.mean()),
        parts=max(1, round(float(demand.parts.mean()))),
        lanes=demand.lanes,
        threads=demand.threads,
    )
    sampler = Sampler(job=job, conditions=deployed, model=model)
    return float(np.median(sampler.times([each]).transfer_s))


def _check_times(simulated: SimulationState) -> None:
    """Check the duration of functions, as the model lets operations finish regardless of it.

    Raises
    ------
    UsageError
        If any function is longer than Lambda's limit.
    """
    took_s = simulated.end_s - simulated.launcher.start_s
    late = int(np.count_nonzero(took_s > MAX_FUNCTION_S))
    if late:
        raise UsageError(
            f"{late:,} of {format_count(len(took_s), 'function')} would run longer than the"
            f" {MAX_FUNCTION_S} s that Lambda allows, up to {took_s.max():,.0f} s",
            hint="move less in each function: --size, --objects; or give it more --memory",
        )


def _saved(
    directory: Path, header: Mapping[str, Any], keys: Sequence[str], results: Iterator[Outcome]
) -> Run:
    with Archive(directory, header=header, keys=keys) as archive:
        last_ns = CREATED_NS
        for outcome in results:
            archive.append(outcome)
            last_ns = max(last_ns, outcome.collected_ns)
        archive.closing["ended_ns"] = last_ns
    if archive.failure is not None:
        raise ArchiveError(archive.shortfall, hint="free space on the disk, and simulate again")
    return load_run(directory, detail=False)


def _described(job: JobSpec, deployed: CostConditions) -> JobSpec:
    """Return the job as the run directory records it: without verification or launching."""
    concurrency = min(job.max_concurrency, deployed.quota or job.number)
    settings = {setting.name: getattr(job, setting.name) for setting in fields(JobSpec)}
    settings |= {
        "executor": EXECUTOR,
        "concurrency": concurrency,
        "control": None,
        "transfer": replace(job.transfer, verify=Verify.NONE),
    }
    return DescribedJob(**settings)


def _model_json(model: Model, deployed: CostConditions) -> dict[str, Any]:
    return {
        **asdict(model),
        **({"deployed": asdict(deployed)} if model.function.on_lambda else {}),
    }


def _run_id(job: JobSpec, model: Model, deployed: CostConditions, keys: Sequence[str]) -> str:
    """Return an id that depends on everything that the records depend on, and on nothing more."""
    inputs = {
        **job.to_json(),
        "name": "",
        "model": _model_json(model, deployed),
        "keys": list(keys),
    }
    digest = hashlib.blake2b(orjson.dumps(inputs, option=orjson.OPT_SORT_KEYS), digest_size=6)
    # Exporters and keys include the id, so it marks the run as simulated everywhere.
    return f"simulated-{digest.hexdigest()}"


def _provenance(model: dict[str, Any]) -> dict[str, Any]:
    shows = (Shown.CONNECTION, Shown.FIRST_BYTE, Shown.ACKNOWLEDGED)
    return {
        "sbench": __version__,
        "payload": "none: simulated",
        "client": {
            "attempts": "exact",
            "progress": "wire",
            "shows": sorted(shows),
            "signing": "none",
            "checksum": "none",
        },
        "model": model,
    }
