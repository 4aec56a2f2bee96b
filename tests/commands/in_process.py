"""Jobs that run in the process of a test, which spares the start of another, if they can."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from serverless_bench.driver.boto import open_s3
from serverless_bench.driver.run import run_job
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target, Transfer
from serverless_bench.rundir.run import Run
from tests.stores.servers import Server

ONE_STORE = frozenset({"s3dlio"})
"""Clients whose library supports one store per process: they run in workers of their own."""


def run_here(path: Path, on: Server, keys: Sequence[str] = (), **job: Any) -> Run:
    """Run a job; settings are those of the job, and ``client`` and ``prefix`` of its target."""
    client, prefix = job.pop("client", "wire"), job.pop("prefix", "sbench/")
    target = Target(client=client, bucket=on.bucket, endpoint_url=on.endpoint_url, prefix=prefix)
    transfer = job.pop("transfer", Transfer(retries=0))
    executor = "local" if client in ONE_STORE else "inline"
    spec = JobSpec(target=target, transfer=transfer, executor=executor, concurrency=1, **job)
    return run_job(spec, path, keys=keys)


def names(on: Server, prefix: str) -> list[str]:
    """Return the keys below a prefix."""
    with closing(open_s3(Target(bucket=on.bucket, endpoint_url=on.endpoint_url))) as s3:
        listed: Any = s3.list_objects_v2(Bucket=on.bucket, Prefix=prefix)
    return [entry["Key"] for entry in listed.get("Contents", ())]
