"""The bottleneck of a run is found for stores with a set behaviour."""

import os
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest

from serverless_bench import JobSpec, run_job, summarize
from serverless_bench.features.aws.lambda_network import BURST_BYTES, function_network
from serverless_bench.features.bottleneck.rate_limit import BucketFit, bucket_fits
from serverless_bench.job.keys import object_key
from serverless_bench.job.target import Target
from serverless_bench.metrics.summary import Summary
from serverless_bench.metrics.timeline import good_operations
from serverless_bench.rundir.run import load_run
from tests.house.members import uses
from tests.stores.servers import KEYS, Server, loopback
from tests.twice import two_of_three

MIB = 1 << 20


@pytest.fixture(autouse=True)
def _credentials_of_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


def perform(
    server: Server, path: Path, workload: str, keys: list[str] | None = None, **job: Any
) -> tuple[Summary, list[str]]:
    spec = JobSpec(
        workload=workload, target=Target(bucket="any", endpoint_url=server.endpoint_url), **job
    )
    run = run_job(spec, path, keys=keys or [])
    summary = summarize(run)
    assert summary.ok == job["number"]
    return summary, run.keys()


@pytest.mark.timing
def test_a_bucket_that_each_function_has(tmp_path: Path) -> None:
    two_of_three(lambda: check_buckets(Path(mkdtemp(dir=tmp_path))))


def check_buckets(tmp_path: Path) -> None:
    """Check Lambda's bucket, scaled down: both measured values are within 5 %.

    The rate is low relative to the burst, because a bucket that is more than half full
    discards its refill: a burst that a busy machine slows down loses it.
    """
    shape = ("--function-burst", "60MiB", "--function-rate", "5MiB")
    with loopback(*shape, log=tmp_path / "log") as server:
        asked: dict[str, Any] = {"number": 3, "concurrency": 3}
        write, keys = perform(server, tmp_path / "w", "write", size=82 * MIB, **asked)
        read, _ = perform(server, tmp_path / "r", "read", keys=keys, **asked)
    for summary in (write, read):
        assert summary.parts["bottleneck"].functions == {"rate_limit": 3}
        assert summary.parts["bottleneck"].sustained_bytes_per_s == pytest.approx(5 * MIB, rel=0.05)
        assert summary.parts["bottleneck"].burst_bytes == pytest.approx(60 * MIB, rel=0.05)


@pytest.mark.timing
@pytest.mark.full
@pytest.mark.parametrize("quota", [625, 3000])
@pytest.mark.parametrize("memory", [1769, 4096, 10240])
def test_the_network_of_one_lambda_function(tmp_path: Path, memory: int, quota: int) -> None:
    """A single function shows the model's curve, scaled to a tenth or less: burst, bend, rate."""
    bytes_per_s = function_network(memory, quota_mbps=quota)
    # The machine has to be much faster than the bucket, or the curve has no bend.
    scale = min(0.1, 15e6 / bytes_per_s)
    burst, rate = BURST_BYTES * scale, bytes_per_s * scale
    size = round(burst + 3 * rate)
    key = object_key(prefix="", run_id="network", index=0, launch=0, number=0, size=size)

    def network(attempt: int) -> BucketFit | None:
        shape = ("--function-memory", memory, "--network-quota", quota, "--function-scale", scale)
        with loopback(*map(str, shape), log=tmp_path / "log") as server:
            asked: dict[str, Any] = {"number": 1, "concurrency": 1}
            perform(server, tmp_path / f"{attempt}", "read", keys=[key], **asked)
        run = load_run(tmp_path / f"{attempt}")
        return bucket_fits(run, good_operations(run), np.arange(1), np.arange(1)).get(0)

    found: BucketFit | None = None
    # While the bucket is more than half full, it is not refilled: a busy machine loses that.
    for attempt in range(3):
        if (found := network(attempt)) is None:
            continue
        near = pytest.approx(burst, rel=0.05, abs=0.05 * found.total_bytes)
        if (
            found.sustained_bytes_per_s == pytest.approx(rate, rel=0.05)
            and found.burst_bytes == near
        ):
            return
    pytest.fail(f"{found} is not a burst of {burst} bytes, then {rate} a second")


def test_a_slow_store(tmp_path: Path) -> None:
    with loopback("--latency", "lognormal:150ms,0.7", log=tmp_path / "log") as server:
        found, _ = perform(
            server,
            tmp_path / "w",
            "write",
            number=4,
            concurrency=4,
            objects=10,
            size=1000,
        )
    assert found.parts["bottleneck"].functions == {"answers": 4}


def test_more_functions_than_cpus(tmp_path: Path) -> None:
    many = 8 * (os.cpu_count() or 1)
    with loopback("--check", "none", log=tmp_path / "log") as server:
        found, _ = perform(
            server,
            tmp_path / "w",
            "write",
            number=many,
            concurrency=many,
            size=32 * MIB,
        )
    # The store has to wait for its turn, too, and time that the hypervisor takes is not counted as
    # waiting: the bottleneck may be unknown. The unit tests are exact.
    reported = found.parts["bottleneck"].functions
    assert reported.get("client", 0) + reported.get("unknown", 0) > many / 2


@uses("executor lithops")
def test_a_slow_launch(tmp_path: Path) -> None:
    with loopback(log=tmp_path / "log") as server:
        found, _ = perform(server, tmp_path / "w", "write", number=2, executor="lithops", size=1000)
    assert found.parts["bottleneck"].functions == {"launch": 2}
