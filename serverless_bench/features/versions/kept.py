"""Count and delete the versions that a bucket with versioning keeps of deleted objects.

In such a bucket a deletion only adds a delete marker; all bytes remain and are billed (Amazon S3
user guide, "Deleting object versions from a versioning-enabled bucket").
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from typing import ClassVar

from serverless_bench.base.errors import NotFound, OperationError
from serverless_bench.base.plugins import TOOLS
from serverless_bench.base.units import GIB, format_count, format_size
from serverless_bench.driver.bucket import DENIED, Bucket, BucketClient, is_not_offered
from serverless_bench.driver.clean import KeptVersions
from serverless_bench.driver.cleanup import (
    HEAD_BYTES,
    THREADS,
    names_run,
    ownership,
)
from serverless_bench.driver.policy import control_folders
from serverless_bench.driver.store_errors import explained
from serverless_bench.features.versions.listing import ObjectVersion, VersionsClient
from serverless_bench.job.endpoint import is_aws
from serverless_bench.job.target import Target
from serverless_bench.rundir.run import Run
from serverless_bench.worker.object_io import Head


class VersionedBucket(Bucket):
    """A bucket that may keep versions."""

    _client: VersionsClient
    _client_of_s3: ClassVar[type[BucketClient]] = VersionsClient

    def versions(self, prefix: str) -> Iterator[ObjectVersion]:
        """Yield the versions and delete markers of all keys that start with ``prefix``.

        Yields no versions if the store does not support them.
        """
        try:
            yield from self.marked("versions", partial(self._client.list_versions, prefix))
        except OperationError as exc:
            if not is_not_offered(exc) or exc.status in DENIED:
                raise

    def head_version(self, version: ObjectVersion, length: int) -> Head:
        """Return the first bytes of a version."""
        call = partial(self._client.get_head, version.key, length, query=version.query)
        return Head.from_response(*self._run("get", call))

    def delete_version(self, version: ObjectVersion) -> None:
        """Delete a version or delete marker permanently."""
        with suppress(NotFound):
            self._run("delete", partial(self._client.delete_version, version))


def kept_versions(run: Run, keys: Collection[str], *, delete: bool) -> KeptVersions:
    """Count the versions that buckets keep of a run's objects, claims and records.

    Parameters
    ----------
    run
        The run, with the current address of its store.
    keys
        Keys of the run's objects.
    delete
        Whether to permanently delete the run's versions, and then their delete markers.

    Returns
    -------
    KeptVersions
        The remaining versions, and the number of deleted ones.

    Raises
    ------
    StoreError
        If they cannot be listed.
    """
    places: list[tuple[Target, str, Callable[[str], bool], Callable[[str, Head], bool]]]
    job, run_id = run.job, run.run_id
    places = [(job.target, "", set(keys).__contains__, ownership(keys, job.declared))]
    for where, folder, is_named in control_folders(job.control, run_id):
        prefix = where.prefix + folder
        below = replace(where, prefix=prefix)
        places.append((below, prefix, is_named, partial(names_run, run_id=run_id)))
    remaining, deleted = list[ObjectVersion](), 0
    for where, folder, is_named, is_ours in places:
        with explained(where), closing(VersionedBucket(where)) as bucket:
            listed = bucket.versions(where.prefix)
            run_versions = [
                version for version in listed if is_named(version.key.removeprefix(folder))
            ]
            undeleted = _delete_all(bucket, run_versions, is_ours) if delete else run_versions
        remaining += undeleted
        deleted += len(run_versions) - len(undeleted)
    count, size = (
        sum(not version.is_marker for version in remaining),
        sum(version.size for version in remaining),
    )
    text = _text(job.target, count, size) if count else ""
    return KeptVersions(count=count, text=text, deleted=deleted)


def _text(target: Target, count: int, size: int) -> str:
    cost = ""
    if is_aws(target.endpoint_url) and "prices" in TOOLS:
        dollars = size / GIB * TOOLS.load("prices")().s3_storage_gb_month
        cost = f", about ${dollars:,.2f} a month"
    return f"{format_count(count, 'version')} of its objects still cost ({format_size(size)}{cost})"


def _delete_all(
    bucket: VersionedBucket, versions: Iterable[ObjectVersion], is_ours: Callable[[str, Head], bool]
) -> list[ObjectVersion]:
    """Delete the versions that the run wrote, and return the remaining ones."""
    by_key: dict[str, list[ObjectVersion]] = defaultdict(list)
    for version in versions:
        by_key[version.key].append(version)
    with ThreadPoolExecutor(THREADS) as pool:
        kept_by_key = pool.map(partial(_delete_key, bucket, is_ours), by_key.values())
        return [version for kept in kept_by_key for version in kept]


def _delete_key(
    bucket: VersionedBucket, is_ours: Callable[[str, Head], bool], versions: list[ObjectVersion]
) -> list[ObjectVersion]:
    """Delete the versions of one key, and return the remaining ones."""
    remaining = [version for version in versions if not _is_deleted(bucket, is_ours, version)]
    if any(not version.is_marker for version in remaining):
        # Deleting the marker would make the remaining version the current object again.
        return remaining
    for marker in remaining:
        bucket.delete_version(marker)
    return []


def _is_deleted(
    bucket: VersionedBucket, is_ours: Callable[[str, Head], bool], version: ObjectVersion
) -> bool:
    """Delete a version that the run wrote; return False for a marker and for other versions."""
    if version.is_marker:
        return False
    try:
        head = bucket.head_version(version, HEAD_BYTES) if version.size else Head(b"", "", 0)
        if not is_ours(version.key, head):
            return False
        bucket.delete_version(version)
    except OperationError:
        return False
    return True
