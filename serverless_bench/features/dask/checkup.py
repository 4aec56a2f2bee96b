"""Checks of ``sbench doctor`` for the workers of a Dask cluster."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Final

from serverless_bench.base.units import GIB, format_count, format_size
from serverless_bench.features.dask.executor import (
    UPDATE,
    DaskCluster,
    DaskConnection,
    DaskWorker,
    check_place,
)
from serverless_bench.features.doctor.findings import Finding, clock, fail, ok, warn

_SLOTS_PER_CPU: Final = 4
"""Default of sbench; with more, functions wait for CPUs."""


def cluster(scheduler: str | None = None, slots: int | None = None) -> Iterator[Finding]:
    """Check an existing cluster, or a cluster started for this check.

    Parameters
    ----------
    scheduler, slots
        See ``JobSpec``.
    """
    check_place(scheduler, slots)
    with closing(DaskConnection(scheduler, slots)) as connection:
        info = connection.cluster
        text = f"{format_count(len(info.workers), 'worker')}, {format_count(info.slots, 'slot')}"
        yield ok("dask", f"{info.scheduler}: {text}, distributed {info.distributed}")
        for worker in info.workers:
            yield from _worker(info, worker)


def _worker(info: DaskCluster, worker: DaskWorker) -> Iterator[Finding]:
    what = f"dask worker {worker.host} {worker.address}"
    text = f"sbench {worker.sbench}, Python {worker.python} on {worker.machine}"
    problem = next(replace(info, workers=(worker,)).problems(), None)
    yield fail(what, problem, UPDATE) if problem else ok(what, text)
    text = f"{format_count(worker.cpus, 'CPU')} for {format_count(worker.slots, 'slot')}"
    text += f", {format_size(worker.memory_bytes)} of memory"
    if worker.slots > _SLOTS_PER_CPU * worker.cpus:
        yield warn(what, text, "give it fewer threads: functions would wait for CPUs")
    else:
        yield ok(what, text)
    text = f"{format_size(worker.free_bytes)} free for temporary files"
    yield warn(what, text, "make room") if worker.free_bytes < GIB else ok(what, text)
    yield replace(clock((worker.clock_low_ns, worker.clock_high_ns), answered=True), what=what)
