"""The harness ceiling: the same job against a store that keeps no data.

A result near the ceiling characterizes this machine and this client, not the store. The
job is the same apart from its length: a few GB, so that it takes seconds.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from serverless_bench.base.errors import StoreError, UsageError
from serverless_bench.base.units import format_rate
from serverless_bench.driver.run import run_job
from serverless_bench.executors import info_of
from serverless_bench.features.cost.forecast import moving_kind
from serverless_bench.features.loopback.process import served
from serverless_bench.job.keys import listed, object_key
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from serverless_bench.metrics.summary import summarize

_LIMIT_BYTES: Final = 4_000_000_000
_LEAST_BYTES: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """Rate of the harness if the store takes almost no time."""

    bytes_per_s: float
    """Rate of the complete run, as ``Summary.throughput_bytes_per_s``."""

    def sentence(self, throughput_bytes_per_s: float | None) -> str:
        """Return a line for the report of a run."""
        text = (
            f"harness ceiling: {format_rate(self.bytes_per_s)}"
            " (this machine and client against a store that keeps nothing)"
        )
        if throughput_bytes_per_s is None:
            return text
        return (
            f"{text}; the result is {100 * throughput_bytes_per_s / self.bytes_per_s:.0f} % of it"
        )


def check_ceiling(job: JobSpec) -> None:
    """Check that the ceiling of a job is measurable; call this before the run.

    Raises
    ------
    UsageError
        If functions run elsewhere, or the job neither writes nor reads.
    """
    if not info_of(job.executor).shares_memory:
        raise UsageError(
            f"`ceiling` needs functions on this machine, not {job.executor!r}",
            hint="run sbench serve --host on a machine near them as a store to compare with",
        )
    if moving_kind(job) is None:
        raise UsageError(f"`ceiling` is for write and read, not {job.workload!r}")


def measure_ceiling(job: JobSpec, keys: Sequence[str] = ()) -> Ceiling:
    """Run ``job``, shortened, against a loopback store that discards all data.

    Parameters
    ----------
    job
        A write or a read that has been run.
    keys
        Keys that it read; only the sizes matter.

    Raises
    ------
    StoreError
        If the loopback store does not start.
    SbenchError
        As ``run_job`` does.
    """
    check_ceiling(job)
    sizes = [size for _, size in map(listed, keys) if size]
    # The part of an object that one function reads becomes an object of the loopback store.
    size = job.size or max(1, max(sizes, default=_LEAST_BYTES) // (job.load.split or 1))
    total = sum(sizes) * job.read_times or job.number * job.objects * size
    invocations = job.max_concurrency
    size = min(size, _LIMIT_BYTES // invocations)
    objects = max(1, min(total, _LIMIT_BYTES) // (invocations * size))
    reads = moving_kind(job) is OperationKind.GET
    with served("--check", "none") as url, tempfile.TemporaryDirectory() as scratch:
        short = replace(
            job,
            target=Target(client=job.target.client, bucket="any", endpoint_url=url),
            number=invocations,
            objects=1 if reads else objects,
            size=None if reads else size,
            read_times=1,
            duration=None,
            warm_up=0,
            load=replace(job.load, split=None),
        ).with_options(barrier=None)
        made_up = _keys(invocations * objects, size) if reads else ()
        summary = summarize(run_job(short, Path(scratch) / "ceiling", keys=made_up))
    if not summary.throughput_bytes_per_s:
        raise StoreError("the harness ceiling could not be measured", hint="see `timeout`")
    return Ceiling(bytes_per_s=summary.throughput_bytes_per_s)


def _keys(count: int, size: int) -> list[str]:
    # The loopback store has all objects whose keys declare a size.
    return [
        object_key(prefix="sbench/", run_id="ceiling", index=0, launch=0, number=number, size=size)
        for number in range(count)
    ]
