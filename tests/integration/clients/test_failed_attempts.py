"""A failed attempt leaves a row, and no buffer, connection or frame."""

import gc
import tracemalloc
from collections.abc import Iterator
from itertools import repeat

import pytest

from serverless_bench.clients import CLIENTS
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.load import Load
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from serverless_bench.job.transfer import Transfer
from serverless_bench.units import KIB, MIB
from serverless_bench.worker.invocation import forget_clients, run_invocation
from tests.stores.faulty import FaultServer, resets_after
from tests.stores.servers import KEYS

FAILURES = 30


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Keep all garbage, which a worker that measures collects rarely."""
    gc.collect()
    gc.disable()
    tracemalloc.start()
    yield
    tracemalloc.stop()
    gc.enable()


@pytest.mark.parametrize("client_name", CLIENTS.names())
@pytest.mark.usefixtures("uncollected")
def test_failed_attempts_keep_no_memory(client_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    with FaultServer(repeat(resets_after(1000))) as server:
        target = Target(client=client_name, bucket="test", endpoint_url=server.endpoint_url)

        def failures_of(objects: int) -> int:
            job = JobSpec(
                workload="write",
                target=target,
                transfer=Transfer(retries=1, timeout=5.0),
                number=1,
                objects=objects,
                size=256 * KIB,
                load=Load(threads=2),
            )
            (spec, *_) = invocation_specs(job, run_id="r", created_ns=1 << 62)
            return sum(attempt.error is not None for attempt in run_invocation(spec).attempts)

        # Libraries and caches are loaded once.
        failures_of(2)
        before, _ = tracemalloc.get_traced_memory()
        assert failures_of(FAILURES // 2) >= FAILURES // 2
        after, _ = tracemalloc.get_traced_memory()
    forget_clients()
    assert after - before < 4 * MIB
