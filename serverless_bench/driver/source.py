"""Settings for reading the objects of a run with the shape of the job that wrote them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from serverless_bench.driver.checked_job import read_keys
from serverless_bench.job.defaults import DEFAULT_EXECUTOR
from serverless_bench.job.read_assignment import functions_for
from serverless_bench.job.spec import JobSpec
from serverless_bench.rundir.listing import KEYS
from serverless_bench.rundir.run import Run


def settings_to_read(saved: Run, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the store, the keys and the shape of a run, without settings that the user gave."""
    target = saved.job.target
    settings = shape_of(saved.job, saved.path, given)
    if target.store is None and not given.get("bucket"):
        settings |= {
            "bucket": target.bucket_name,
            "endpoint_url": ",".join((target.endpoint_url, *saved.job.endpoints)),
            "region": target.region,
            "addressing": target.addressing,
        }
    return {name: value for name, value in settings.items() if name not in given}


def shape_of(job: JobSpec, path: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a run and the number, objects, concurrency and threads of its job.

    Settings that the user gave are missing. A run that wrote fewer objects than planned is read by
    as many functions as they need. All functions at once stay so with another ``number``, and
    with another executor, which has other limits.
    """
    shape: dict[str, Any] = {"threads": job.load.threads}
    same_executor = job.executor == given.get("executor", DEFAULT_EXECUTOR)
    if same_executor and not ("number" in given and job.concurrency >= job.number):
        shape["concurrency"] = job.concurrency
    if not (given.get("key") or given.get("key_file")):
        shape |= {"key_file": path / KEYS, "objects": job.objects}
        if "split" not in given:
            objects = max(1, given.get("objects", job.objects))
            count = len(read_keys(path / KEYS))
            shape["number"] = min(job.number, functions_for(count, objects=objects, split=1))
    return {name: value for name, value in shape.items() if name not in given}
