"""Whether a bucket keeps what is deleted, told before anything is written to it."""

from contextlib import closing
from typing import Final

from serverless_bench.clients.s3_http import texts
from serverless_bench.driver.bucket import Bucket, Setting, explained
from serverless_bench.driver.plan import uses_store
from serverless_bench.errors import SbenchError
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import StoreProtocol
from serverless_bench.job.workload import open_workload

VERSIONING: Final = Setting("GetBucketVersioning", "versioning", "VersioningConfiguration")


def keeps_versions(job: JobSpec) -> str:
    """Return a note if what a job writes will be kept after its deletion; else nothing.

    A store that does not say so is taken for one that keeps nothing.
    """
    target = job.target
    is_asked = target.protocol is StoreProtocol.S3 and target.store is None and uses_store(job)
    if not is_asked or not open_workload(job.workload).creates_objects:
        return ""
    try:
        with explained(target), closing(Bucket(target)) as bucket:
            if "Enabled" not in texts(bucket.read_setting(VERSIONING), "Status"):
                return ""
    except SbenchError:
        return ""
    return (
        f"bucket {target.bucket_name!r} keeps versions: what sbench clean deletes goes on costing,"
        " unless it is told to delete --versions"
    )
