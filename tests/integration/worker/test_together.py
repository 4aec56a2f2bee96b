"""Functions that begin together, run for a time, and have clocks that are wrong."""

import json
import subprocess
import sys
from collections.abc import Generator, Iterable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from serverless_bench import JobSpec, Transfer, run_job, summarize
from serverless_bench.base.clock import wall_ns
from serverless_bench.driver.boto import open_s3
from serverless_bench.executors import EXECUTORS
from serverless_bench.executors.base import ExecutorInfo, RunProgress
from serverless_bench.job.spec import InvocationSpec
from serverless_bench.job.target import Target
from serverless_bench.metrics.clock_offsets import worker_offsets
from serverless_bench.rundir.received import record_of
from serverless_bench.rundir.record import Outcome
from serverless_bench.rundir.run import load_run
from tests.commands.command import Sbench
from tests.house.members import uses
from tests.stores.servers import Server, credentials

S = 10**9
MIB = 1 << 20


@uses("feature check", "feature barrier")
def test_a_barrier_starts_all_together(sbench: Sbench) -> None:
    done = sbench(
        *("write", "--number", 6, "--concurrency", 6, "--mb", 1, "--barrier", 1, "--name", "w"),
        *("--warm-up", 1, "--duration", 1, "--format", "json"),
    )
    assert done.code == 0
    report = done.json
    assert (report["barrier"]["expected"], report["barrier"]["announced"]) == (6, 6)
    assert report["barrier"]["late"] == 0
    assert report["barrier"]["wait_s"]["p50"] > 0
    assert report["warmup_operations"] == 6
    assert report["operations"] >= 6
    run = load_run(sbench.directory / "sbench-runs" / "w")
    warmed = run.operations["warmup"] > 0
    # The warm-up is before the barrier: no function measures while others still warm up.
    assert run.operations["end_ns"][warmed].max() <= run.operations["start_ns"][~warmed].min()
    # The barrier's own objects are in the ledger, and are deleted with the run.
    assert any("/barrier/" in key for key in run.ledger())
    assert len(set(run.keys())) == len(run.keys()) == 6
    checked = sbench("check", "sbench-runs/w")
    assert checked.code == 0
    assert "11 self-checks passed" in checked.out
    assert len(json.loads(sbench("check", "sbench-runs/w", "--format", "json").out)) > 5
    warm = sbench("report", "sbench-runs/w", "--with-warm-up", "--format", "json").json
    assert warm["operations"] == report["operations"] + 6
    assert sbench("clean", "sbench-runs/w").code == 0


@uses("feature barrier")
def test_the_barrier_opens_without_the_missing(sbench: Sbench) -> None:
    done = sbench(
        *("write", "--number", 2, "--concurrency", 2, "--mb", 1, "--barrier", 1, "--name", "w"),
        *("--barrier-timeout", 2, "--executor", "inline", "--format", "json"),
    )
    # Two functions are requested and one is present: the second comes when the barrier is open.
    assert done.json["barrier"]["late"] == 1
    assert done.json["ok"] == 2
    sbench("clean", "sbench-runs/w")


def test_reads_repeat_for_the_duration(sbench: Sbench) -> None:
    sbench("write", "--number", 2, "--mb", 1, "--key-file", "k", "--name", "w")
    done = sbench("read", "--key-file", "k", "--duration", 2, "--format", "json")
    assert done.code == 0
    # A busy machine reads less often, and for longer, but not each object once.
    assert done.json["operations"] > 2
    assert done.json["elapsed_s"] > 1
    assert done.json["verified_bytes"] == done.json["bytes"] == done.json["operations"] * MIB
    sbench("clean", "sbench-runs/w")


@uses("feature barrier")
@pytest.mark.parametrize(
    "flags",
    [
        ("--barrier", "0"),
        ("--barrier", "1.5"),
        ("--duration", "0"),
        ("--warm-up", "-1"),
        ("--network-rate", "x"),
    ],
)
def test_wrong_values_are_refused(sbench: Sbench, flags: tuple[str, str]) -> None:
    done = sbench("write", "--number", 1, "--mb", 1, *flags)
    assert done.code == 2
    assert flags[0] in done.err or "x" in done.err
    assert len(done.err.splitlines()) <= 2


SKEW_NS = 60 * S
"""More than processes of a busy machine need to start."""
SKEWED = """
import json, sys, time
from serverless_bench.base import clock
from serverless_bench.worker import invocation
skew = int(sys.argv[1])
clock.wall_ns = invocation.wall_ns = lambda: time.time_ns() + skew
print(json.dumps(invocation.handle(json.load(sys.stdin))))
"""


def skew_of(index: int) -> int:
    """Return by how much the clock of a function is wrong: half of them are, by a minute."""
    return (0, SKEW_NS, 0, -SKEW_NS)[index % 4]


class SkewedExecutor:
    """A process per function, and half of their clocks are wrong."""

    info = ExecutorInfo()

    def __init__(self, job: JobSpec) -> None:
        del job

    def map(
        self, invocations: Iterable[InvocationSpec], live: RunProgress
    ) -> Generator[Outcome, None, None]:
        running = []
        for spec in invocations:
            command = [sys.executable, "-c", SKEWED, str(skew_of(spec.index))]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            submitted_ns = wall_ns()
            assert process.stdin is not None
            process.stdin.write(json.dumps(asdict(spec)).encode())
            process.stdin.close()
            running.append((submitted_ns, process))
        for submitted_ns, process in running:
            assert process.stdout is not None
            record = record_of(json.loads(process.stdout.read()))
            process.stdout.close()
            assert process.wait() == 0
            yield Outcome(submitted_ns=submitted_ns, collected_ns=wall_ns(), result=record)


def test_wrong_clocks_are_found_and_put_right(
    tmp_path: Path, moto: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = f"{__name__}:SkewedExecutor"
    monkeypatch.setitem(EXECUTORS.builtin, "skewed", here)
    target = Target(bucket=moto.bucket, endpoint_url=moto.endpoint_url, prefix="skew/")
    job = JobSpec(
        workload="write",
        target=target,
        transfer=Transfer(),
        executor="skewed",
        number=8,
        concurrency=8,
        size=2 * MIB,
        duration=2,
    )
    with credentials(moto.environment):
        run = run_job(job, tmp_path / "run")
        open_s3(target).close()
    found = worker_offsets(run)
    true = np.array([skew_of(index) for index in run.functions["index"].tolist()])
    assert not found.suspect.any()
    assert ((found.low_ns <= true) & (true <= found.high_ns)).all()
    assert len(run.probes) > 3
    assert (run.attempts["date_s"] > 0).all()
    summary = summarize(run)
    assert summary.clocks.corrected == 4
    # All started together, although by their clocks they were two minutes apart.
    assert summary.elapsed_s is not None
    assert summary.elapsed_s * S < SKEW_NS
    assert np.ptp(run.operations["start_ns"]) > SKEW_NS
