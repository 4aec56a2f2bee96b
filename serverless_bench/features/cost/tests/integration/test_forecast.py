"""Forecasts of runs under Lambda's runtime on a store with known laws of latency."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from serverless_bench.base.units import KIB, NS_PER_S
from serverless_bench.features.cost.expected import expected
from serverless_bench.features.cost.forecast import CostConditions
from serverless_bench.features.cost.tests.models import changed
from serverless_bench.features.loopback.server import serving
from serverless_bench.features.loopback.shaping import Shape
from serverless_bench.features.loopback.state import LoopbackSettings
from serverless_bench.rundir.run import Run, load_run
from tests.clouds.lambda_hosts import NAME, running_host
from tests.commands.command import Apart
from tests.house.members import uses
from tests.stores.servers import KEYS

OVERHEAD_S: Final = 0.004
"""Time of a request on this machine without the law."""


@dataclass(frozen=True)
class Law:
    """A job, and the law of its store."""

    median_s: float
    sigma: float
    objects: int
    number: int = 2
    threads: int = 1
    size: int = KIB
    rate: float | None = None
    reads: bool = False


JOBS: Final = (
    Law(0.10, 0.5, 20),
    Law(0.10, 0.5, 20, reads=True),
    Law(0.20, 0.3, 8),
    Law(0.20, 0.3, 8, reads=True),
    Law(0.15, 0.8, 20, number=3),
    Law(0.15, 0.8, 20, number=3, reads=True),
    Law(0.30, 0.4, 20, threads=4),
    Law(0.30, 0.4, 20, threads=4, reads=True),
    Law(0.10, 0.4, 6, size=256 * KIB, rate=1e6),
    Law(0.10, 0.4, 6, size=256 * KIB, rate=1e6, reads=True),
    Law(0.40, 0.6, 5, number=4),
    Law(0.40, 0.6, 5, number=4, reads=True),
)
RUNS: Final = 40


@contextmanager
def place(directory: Path) -> Iterator[Any]:
    """Yield how a command runs with functions of a host of this machine."""
    with running_host() as host:
        own = {**KEYS, "HOME": str(directory), "TMPDIR": str(directory), **host.environment}
        yield Apart(directory, own)


def ran(sbench: Any, law: Law, name: str) -> Run:
    """Return a run of a job."""
    shape = Shape(
        latency=f"lognormal:{1000 * law.median_s:g}ms,{law.sigma}",
        connection_bytes_per_s=law.rate,
    )
    how: tuple[Any, ...] = (
        "--executor",
        "lambda",
        "--function",
        NAME,
        "--number",
        law.number,
        "--bucket",
        "any",
    )
    how = (*how, "--concurrency", law.number, "--objects", law.objects, "--threads", law.threads)
    with serving(LoopbackSettings(shape=shape)) as server:
        where = ("--endpoint-url", server.endpoint_url)
        done = sbench("write", *where, *how, "--size", law.size, "--name", name)
        assert done.code == 0, done.err
        if law.reads:
            read = ("--from", name, "--name", f"{name}-read")
            done = sbench("read", *where, *how, *read)
            assert done.code == 0, done.err
            name = f"{name}-read"
    return load_run(sbench.directory / "sbench-runs" / name)


def mean_s(run: Run) -> float:
    """Return the mean time of functions from the first operation to the end of the last."""
    operations, count = run.operations, len(run.functions["index"])
    first, last = np.full(count, np.inf), np.zeros(count)
    np.minimum.at(first, operations["function"], operations["start_ns"])
    np.maximum.at(last, operations["function"], operations["end_ns"])
    return float((last - first).mean()) / NS_PER_S


@pytest.mark.full
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="functions need Linux")
@uses("feature lambda_host", "feature loopback", "workload read", "executor lambda")
def test_intervals_hold_as_many_runs_as_they_say(tmp_path: Path) -> None:
    """90 % of 40 is 36; of 40 fair draws 33 to 40 are inside in 95 % of cases."""
    found = []
    with place(tmp_path) as sbench:
        for number in range(RUNS):
            law = JOBS[number % len(JOBS)]
            run = ran(sbench, law, f"r{number}")
            kind = "get" if law.reads else "put"
            model = changed(
                store={f"{kind}_s": law.median_s + OVERHEAD_S, f"{kind}_sigma": law.sigma},
                function={f"connection_{kind}_bytes_per_s": law.rate, "core_s_per_gib": 2.0},
            )
            forecast = expected(run.job, CostConditions(object_bytes=law.size), model)
            assert forecast is not None
            means = forecast.times.transfer_s.mean(axis=1)
            low, high = np.percentile(means, (5, 95))
            found.append((law, low, mean_s(run), high))
    inside = sum(low <= measured <= high for _, low, measured, high in found)
    assert 33 <= inside <= RUNS, found
