"""The harness ceiling: the rate of this machine and client with a store that costs no time."""

from pathlib import Path

import pytest

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import MIB
from serverless_bench.features.loopback.ceiling import Ceiling, check_ceiling, measure_ceiling
from serverless_bench.job.keys import object_key
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from tests.commands.command import Sbench
from tests.house.members import uses

TARGET = Target(bucket="b", endpoint_url="http://store")


def key(number: int) -> str:
    return object_key(prefix="", run_id="r", index=0, launch=0, number=number, size=MIB)


@pytest.mark.parametrize("workload", ["write", "read"])
def test_a_job_has_a_ceiling(
    workload: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    job = JobSpec(
        workload=workload,
        target=TARGET,
        executor="inline",
        number=4,
        concurrency=1,
        size=MIB if workload == "write" else None,
    )
    keys = [key(number) for number in range(4)] if workload == "read" else []
    ceiling = measure_ceiling(job, keys)
    assert ceiling.bytes_per_s > 0
    assert list(tmp_path.iterdir()) == []


def test_it_is_one_sentence() -> None:
    ceiling = Ceiling(bytes_per_s=2e9)
    assert ceiling.sentence(5e8).endswith("; the result is 25 % of it")
    assert ceiling.sentence(None).startswith("harness ceiling: 2.00 GB/s (")


@pytest.mark.parametrize(("executor", "workload"), [("lithops", "write"), ("local", "noop")])
def test_other_jobs_have_no_ceiling(executor: str, workload: str) -> None:
    job = JobSpec(workload=workload, target=TARGET, executor=executor, number=1, size=1)
    with pytest.raises(UsageError, match="`ceiling`"):
        check_ceiling(job)


@uses("executor lithops")
def test_the_command_says_it_beside_the_result(sbench: Sbench) -> None:
    done = sbench("write", "--number", 2, "--mb", 4, "--ceiling", "--name", "w")
    assert done.code == 0
    assert "harness ceiling: " in done.out
    assert "% of it" in done.out
    sbench("clean", "sbench-runs/w")
    refused = sbench("write", "--number", 2, "--mb", 4, "--ceiling", "--executor", "lithops")
    assert refused.code == 2
