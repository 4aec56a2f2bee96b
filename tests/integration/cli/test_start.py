"""Modules that a small run loads, in the driver and in a worker: only those that it uses."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.job.target import Target
from serverless_bench.worker.rehearsal import rehearsal
from tests.house.members import uses
from tests.stores.servers import KEYS, loopback

DRIVER = """
import sys
from serverless_bench.cli.main import main
assert main(sys.argv[1:]) == 0
print(*sys.modules)
"""
WORKER = """
from serverless_bench.worker.rehearsal import rehearsal
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
target = Target(bucket="any", endpoint_url="http://127.0.0.1:1")
job = JobSpec(workload="write", target=target, number=1, size=1)
print(rehearsal(job))
"""
REHEARSED = """
import sys
from serverless_bench.worker.rehearsal import rehearse
rehearse(sys.argv[1])
print(*sys.modules)
"""
STORAGE_LIBRARIES = {"awscrt", "boto3", "botocore", "urllib3"}


def last_line(directory: Path, code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=directory,
        env={**os.environ, **KEYS, "HOME": str(directory)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def families(line: str) -> set[str]:
    return {name.partition(".")[0] for name in line.split()}


@pytest.mark.parametrize("executor", ["inline", "local"])
def test_a_small_run_loads_no_storage_library_but_the_measured_one(
    tmp_path: Path, executor: str
) -> None:
    with loopback(log=tmp_path / "log") as store:
        where = ("--endpoint-url", store.endpoint_url, "--bucket", "any", "--executor", executor)
        line = last_line(tmp_path, DRIVER, "write", *where, "--number", "1", "--size", "1000B")
    assert families(line).isdisjoint(STORAGE_LIBRARIES | {"pandas", "rich", "scipy"})
    needless = ("features.cost.bill", "features.formats.export", "stores.embedded")
    assert not {f"serverless_bench.{name}" for name in needless} & set(line.split())


@uses("feature hedging")
def test_a_worker_is_prepared_for_a_hedge_above_its_first_timeout() -> None:
    target = Target(bucket="any", endpoint_url="http://127.0.0.1:1")
    job = JobSpec(workload="read", target=target, number=1, options={"hedge": 2.0})
    invocation = InvocationSpec.from_json(json.loads(rehearsal(job)))
    assert not invocation.options


def test_a_worker_only_loads_modules_of_its_transfers(tmp_path: Path) -> None:
    event = last_line(tmp_path, WORKER)
    seen = last_line(tmp_path, REHEARSED, event)
    assert "cryptography" in families(seen)
    heavy = {"click", "cloudpickle", "msgspec", "numpy", "orjson", "platformdirs", "rich"}
    assert families(seen).isdisjoint(
        STORAGE_LIBRARIES | heavy | {"csv", "decimal", "fractions", "statistics"}
    )
