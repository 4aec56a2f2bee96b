"""Check the location of a job's objects against environment, disk and bucket type.

Jobs that a directory bucket (S3 Express One Zone) cannot serve are rejected before the start.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from serverless_bench.base.errors import PluginError, UsageError
from serverless_bench.base.units import format_size
from serverless_bench.clients import CLIENTS
from serverless_bench.job.endpoint import (
    is_directory_bucket,
    is_zone_in,
    refuse_password,
    zonal_endpoint,
    zone_of,
)
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Addressing, Target
from serverless_bench.job.types import wrong

ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
"""Variables with a store's endpoint for botocore, which locates buckets (AWS SDKs reference guide,
"Service-specific endpoints"), and the variable that makes botocore ignore them.
"""
IGNORED: Final = "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"


def check_meant(target: Target, *, by_service: bool = False) -> None:
    """Raise an error if the embedded store would be used but the environment names another.

    Parameters
    ----------
    target
        Location of the objects.
    by_service
        Whether a service runs the functions: ``AWS_ENDPOINT_URL`` may then be its endpoint.

    Raises
    ------
    UsageError
        If the environment names another store.
    """
    if target.store is None or os.environ.get(IGNORED, "").lower() == "true":
        return
    for name in ENDPOINTS[:1] if by_service else ENDPOINTS:
        url = os.environ.get(name, "").rstrip("/")
        refuse_password(url)
        if url and url != target.endpoint_url:
            raise UsageError(
                f"{name} names {url}, but without `bucket` the embedded store would be measured",
                hint=f"`bucket` B for a bucket there, or leave {name} out",
            )


def check_room(planned_bytes: int, what: str, folder: Path | None = None) -> None:
    """Raise an error for a job that would fill the disk of the embedded store, or of a folder.

    Raises
    ------
    UsageError
        If ``planned_bytes`` is larger than the free space.
    """
    _, free = room_of_store(folder)
    if planned_bytes > free and folder is not None:
        raise UsageError(
            f"{what} are {format_size(planned_bytes)}; {folder} has room for {format_size(free)}",
            hint="write less (`number`, `shape`), or name another `path`",
        )
    if planned_bytes > free:
        raise UsageError(
            f"{what} are {format_size(planned_bytes)}; the embedded store has room for"
            f" {format_size(free)}",
            hint="write less (`number`, `mb`), or elsewhere: `endpoint_url` URL `bucket` B for a"
            " store of yours, `bucket` B for AWS, and `executor` lithops for functions there",
        )


def room_of_store(directory: Path | None = None) -> tuple[Path, int]:
    """Return the existing or future folder of the embedded store, or another, and its free bytes.

    The folder that is returned exists: it is the folder itself, or one above it.
    """
    import shutil

    from serverless_bench.stores.embedded import default_directory

    directory = (directory or default_directory()).absolute()
    folder = next(path for path in (directory, *directory.parents) if path.exists())
    return folder, shutil.disk_usage(folder).free


def check_express(job: JobSpec, control: str | None) -> None:
    """Raise an error for settings that do not fit a directory bucket.

    Parameters
    ----------
    job
        Job to run.
    control
        Bucket of claims and records; empty for the bucket of the objects, None without such
        records.

    Raises
    ------
    UsageError
        For the first setting that does not fit.
    """
    bucket = job.target.bucket
    if control is not None and is_directory_bucket(control or bucket):
        raise wrong(
            "control_prefix",
            "claims and records are listed in order, which a directory bucket does not do",
            hint="`control_prefix` s3://BUCKET/PREFIX with a bucket of another kind, or `stack`",
        )
    if not is_directory_bucket(bucket):
        return
    for field, problem, hint in _problems(job):
        raise wrong(field, f"{problem} in a directory bucket", hint=hint)


def _problems(job: JobSpec) -> Iterator[tuple[str, str, str]]:
    """Yield each setting that does not fit, the problem, and a hint."""
    target, client = job.target, CLIENTS.load(job.target.client).info
    if not client.express:
        yield (
            "client",
            f"{target.client} cannot create the sessions that a directory bucket requires",
            f"`client` {', '.join(_clients_with_sessions())}",
        )
    if job.load.library is not None:
        yield "library", "array libraries make no sessions", "`workload` write and read"
    if target.prefix and not target.prefix.endswith("/"):
        yield (
            "prefix",
            f"{target.prefix!r} cannot be listed: a prefix ends in a slash",
            f"`prefix` {target.prefix}/",
        )
    if target.addressing is Addressing.PATH and not target.endpoint_url:
        yield "addressing", "the zone's endpoint takes no path style", "`addressing` auto"
    if job.endpoints:
        yield "endpoint_url", "there is one endpoint for each zone", "one `endpoint_url`, or none"


def _clients_with_sessions() -> Iterator[str]:
    """Yield the installed clients that support sessions."""
    for name in CLIENTS.names():
        with suppress(PluginError):
            if CLIENTS.load(name).info.express:
                yield name


def check_zone(bucket: str, region: str) -> None:
    """Raise an error if the zone of a directory bucket is not in a region.

    Raises
    ------
    UsageError
        If it is not: the host name would not exist.
    """
    zone = zone_of(bucket)
    if zone is not None and not is_zone_in(zone, region):
        raise UsageError(
            f"bucket {bucket!r} is in zone {zone}, which is not in region {region}",
            hint="`region` R, where the bucket was made",
        )


def standard_endpoint(target: Target) -> str:
    """Return the endpoint for standard buckets in the region of a target."""
    zone = zone_of(target.bucket)
    if zone is None or target.endpoint_url != zonal_endpoint(zone, target.region):
        return target.endpoint_url
    return target.endpoint_url.replace(f"s3express-{zone}.", "s3.")
