"""A failed attempt leaves a row, and no buffer, connection or frame."""

import gc
import multiprocessing
import os
import tracemalloc
from itertools import repeat

import pytest

from serverless_bench.base.units import KIB, MIB
from serverless_bench.clients import CLIENTS
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target, Transfer
from serverless_bench.job.workload import Load
from serverless_bench.worker.invocation import run_invocation
from tests.stores.faulty import FaultServer, resets_after
from tests.stores.servers import KEYS

FAILURES = 30


def failures_of(job: JobSpec) -> int:
    (spec, *_) = invocation_specs(job, run_id="r", created_ns=1 << 62)
    return sum(attempt.error is not None for attempt in run_invocation(spec).attempts)


def failed_and_kept(client: str, endpoint_url: str) -> tuple[int, int]:
    """Return the number of failed attempts, and the bytes that the process keeps of them."""
    os.environ.update(KEYS)

    def job(objects: int) -> JobSpec:
        return JobSpec(
            workload="write",
            target=Target(client=client, bucket="test", endpoint_url=endpoint_url),
            transfer=Transfer(retries=1, timeout=5.0),
            number=1,
            objects=objects,
            size=256 * KIB,
            load=Load(threads=2),
        )

    # All garbage is kept, which a worker that measures collects rarely.
    gc.disable()
    tracemalloc.start()
    # Libraries and caches are loaded once.
    failures_of(job(2))
    before, _ = tracemalloc.get_traced_memory()
    failed = failures_of(job(FAILURES // 2))
    return failed, tracemalloc.get_traced_memory()[0] - before


@pytest.mark.parametrize("client_name", CLIENTS.names())
def test_failed_attempts_keep_no_memory(client_name: str) -> None:
    """In a process of its own: some libraries have one store in each process."""
    with (
        FaultServer(repeat(resets_after(1000))) as server,
        multiprocessing.get_context("spawn").Pool(1) as pool,
    ):
        failed, kept = pool.apply(failed_and_kept, (client_name, server.endpoint_url))
    assert failed >= FAILURES // 2
    assert kept < 4 * MIB
