"""Notes about a job that are shown before the first write."""

import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from serverless_bench.base.errors import SbenchError, StoreError
from serverless_bench.base.units import format_count, format_rate, format_size
from serverless_bench.clients.s3_http import texts
from serverless_bench.driver.bucket import Setting, open_bucket
from serverless_bench.driver.plan import uses_store
from serverless_bench.job.planned_objects import mean_bytes, mean_size
from serverless_bench.job.spec import JobSpec, idle_words, waves_words
from serverless_bench.job.target import StoreProtocol
from serverless_bench.job.workload import Workload

VERSIONING: Final = Setting("GetBucketVersioning", "versioning", "VersioningConfiguration")
OBJECT_LOCK: Final = Setting("GetObjectLockConfiguration", "object-lock", "ObjectLockConfiguration")
LOCKED: Final = "has Object Lock, which sbench does not support: S3 keeps deleted objects"
NO_LOCK: Final = "name another `bucket`"


def remarks(job: JobSpec, keys: Sequence[str]) -> Iterator[str]:
    """Yield notes for the user about a job with these keys; its store must be running.

    Raises
    ------
    StoreError
        If the job's bucket has Object Lock.
    """
    yield from beyond_the_link(job, keys)
    if _keeps_versions(job):
        yield (
            f"bucket {job.target.bucket_name!r} keeps versions: objects deleted by sbench clean"
            " still cost money, unless --versions deletes these, too"
        )
    count, size = _first_written(job)
    if size:
        objects = format_count(count, "object")
        yield f"written before the measurement: {objects} ({format_size(size)})"
    if job.idle_threads:
        yield f"idle threads: {idle_words(job.idle_threads, job.load.threads)}"
    if job.waves_s is not None:
        yield f"waves: {waves_words(job.number, job.at_once, job.waves_s)}"


def _first_written(job: JobSpec) -> tuple[int, int]:
    """Return number and bytes of the objects that are created before the measurement."""
    if (tally := job.declared.tally(job.load)) is not None:
        return tally.prepared
    prepares = job.declared.needs_size and type(job.declared).prepare is not Workload.prepare
    count = job.number * job.objects if prepares else 0
    return count, round(count * (mean_size(job) or 0))


def beyond_the_link(job: JobSpec, keys: Sequence[str]) -> Iterator[str]:
    """Yield a note for a job if its rate exceeds the bandwidth of its link.

    Parameters
    ----------
    job
        Job; without a rate and a link there is no note.
    keys
        Keys of the objects to read.
    """
    rate, link = job.load.rate, job.link
    object_bytes = mean_bytes(job, keys)
    if rate is not None and link is not None and rate * object_bytes > link:
        yield (
            f"{rate:g} operations per second of {format_size(round(object_bytes))} are"
            f" {format_rate(rate * object_bytes)}, and the link carries {format_rate(link)}:"
            " some will be overdue"
        )


def _keeps_versions(job: JobSpec) -> bool:
    """Return whether a job's objects will be kept after their deletion.

    A store without a versioning status is assumed to keep none.

    Raises
    ------
    StoreError
        If the bucket has Object Lock.
    """
    target, keeps, lock = job.target, False, None
    is_asked = target.protocol is StoreProtocol.S3 and target.store is None and uses_store(job)
    if not is_asked or not job.declared.creates_objects:
        return False
    with suppress(SbenchError), open_bucket(target) as bucket:
        keeps = "Enabled" in texts(bucket.read_setting(VERSIONING), "Status")
        # Object Lock needs versions.
        lock = bucket.read_setting(OBJECT_LOCK) if keeps else None
    if lock is not None and is_locked(lock):
        raise StoreError(f"bucket {target.bucket_name!r} {LOCKED}", hint=NO_LOCK)
    return keeps


def is_locked(answer: ET.Element) -> bool:
    """Return whether the setting of a bucket turns Object Lock on."""
    return "Enabled" in texts(answer, "ObjectLockEnabled")
