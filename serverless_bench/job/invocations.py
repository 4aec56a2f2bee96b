"""Convert a job to one value per function call, by job and run id."""

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import fields, replace

from serverless_bench.base.units import NS_PER_S
from serverless_bench.job.abilities import Dealt
from serverless_bench.job.policy import named_policies
from serverless_bench.job.read_assignment import positions
from serverless_bench.job.spec import InvocationSpec, JobSpec, Work
from serverless_bench.job.workload import Load


def invocation_specs(
    job: JobSpec,
    *,
    run_id: str,
    created_ns: int,
    keys: Sequence[str] = (),
    wave: int = 0,
    indexes: Collection[int] | None = None,
) -> Iterator[InvocationSpec]:
    """Yield one ``InvocationSpec`` per function call, in index order.

    Parameters
    ----------
    job
        Job to run.
    run_id
        Identifier of the run, new for each run; new keys derive from it.
    created_ns
        Start of the wave, on the driver's clock.
    keys
        Objects to read. ``read_assignment`` assigns them to invocations; the list starts over at
        its end, as in PyWren (s3_benchmark.py:95), so there may be fewer or more keys than
        invocations.
    wave
        Number of the wave that launches the missing invocations; 0 for the first, which launches
        all. It is the ``launch`` of its invocations.
    indexes
        Indexes to launch; None for all.
    """
    count = job.number if indexes is None else len(indexes)
    # Batches run one after the other; each may take as long as one invocation may.
    batches = -(-count // job.concurrency)
    not_after_ns = created_ns + round((batches + 1) * job.deadline * NS_PER_S)
    shared = {field.name: getattr(job, field.name) for field in fields(Work)}
    if job.load.rate is not None:
        # Divide the rate among the functions that run at the same time.
        shared["load"] = replace(job.load, rate=job.load.rate / job.max_concurrency)
    endpoints, policies = (job.target.endpoint_url, *job.endpoints), named_policies(job).items()
    for index in range(job.number) if indexes is None else sorted(indexes):
        # Functions take turns at the endpoints.
        shared["target"] = replace(job.target, endpoint_url=endpoints[index % len(endpoints)])
        shared["seed"] = derive_seed(job.seed, index)
        shared["options"] = {name: policy.in_invocation(job, index) for name, policy in policies}
        yield InvocationSpec(
            **{**shared, "load": _load_of(job, shared["load"], index)},
            run_id=run_id,
            index=index,
            launch=wave,
            keys=_dealt(job, index, keys),
            not_after_ns=not_after_ns,
        )


def _load_of(job: JobSpec, load: Load, index: int) -> Load:
    """Return the load of an invocation."""
    workload = job.declared
    return workload.dealt(load, index, job.number) if isinstance(workload, Dealt) else load


def _dealt(job: JobSpec, index: int, keys: Sequence[str]) -> tuple[str, ...]:
    """Return the objects that an invocation reads."""
    if not keys:
        return ()
    dealt = positions(index, keys=len(keys), objects=job.objects, split=job.load.split or 1)
    return tuple(keys[position] for position in dealt)


def derive_seed(seed: int, *path: int) -> int:
    """Return a 63-bit seed for the node at ``path`` below ``seed``.

    ``seed + index`` would give invocation 1 of seed 0 the draws of invocation 0 of seed 1.
    """
    text = "/".join(map(str, (seed, *path)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> 1
