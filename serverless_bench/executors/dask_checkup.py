"""What ``sbench doctor`` finds on a Dask cluster, worker by worker."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Final

from serverless_bench.executors.dask import (
    UPDATE,
    DaskCluster,
    DaskConnection,
    DaskWorker,
    check_place,
)
from serverless_bench.executors.findings import Finding, clock, fail, ok, warn
from serverless_bench.units import GIB, format_count, format_size

_SLOTS_PER_CPU: Final = 4
"""What sbench takes by itself; with more, functions wait for processors."""


def cluster(scheduler: str | None = None, slots: int | None = None) -> Iterator[Finding]:
    """Look at a cluster that is there, or at one that is started for this.

    Parameters
    ----------
    scheduler, slots
        As in ``JobSpec``.
    """
    check_place(scheduler, slots)
    with closing(DaskConnection(scheduler, slots)) as connection:
        found = connection.cluster
        text = f"{format_count(len(found.workers), 'worker')}, {format_count(found.slots, 'slot')}"
        yield ok("dask", f"{found.scheduler}: {text}, distributed {found.distributed}")
        for worker in found.workers:
            yield from _worker(found, worker)


def _worker(found: DaskCluster, worker: DaskWorker) -> Iterator[Finding]:
    what = f"dask worker {worker.host} {worker.address}"
    text = f"sbench {worker.sbench}, Python {worker.python} on {worker.machine}"
    problem = next(replace(found, workers=(worker,)).problems(), None)
    yield fail(what, problem, UPDATE) if problem else ok(what, text)
    text = f"{format_count(worker.cpus, 'processor')} for {format_count(worker.slots, 'slot')}"
    text += f", {format_size(worker.memory_bytes)} of memory"
    if worker.slots > _SLOTS_PER_CPU * worker.cpus:
        yield warn(what, text, "give it fewer threads: functions would wait for processors")
    else:
        yield ok(what, text)
    text = f"{format_size(worker.free_bytes)} free for temporary files"
    yield warn(what, text, "make room") if worker.free_bytes < GIB else ok(what, text)
    yield replace(clock((worker.clock_low_ns, worker.clock_high_ns), answered=True), what=what)
