"""What a directory bucket (S3 Express One Zone) cannot serve is refused before anything starts."""

from collections.abc import Iterator
from contextlib import suppress

from serverless_bench.clients import CLIENTS
from serverless_bench.errors import PluginError, UsageError
from serverless_bench.job.endpoint import (
    is_directory_bucket,
    is_zone_in,
    zonal_endpoint,
    zone_of,
)
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Addressing, Target
from serverless_bench.job.types import wrong


def check_express(job: JobSpec, control: str | None) -> None:
    """Refuse a job whose settings do not fit its bucket, if that is a directory bucket.

    Parameters
    ----------
    job
        To be run.
    control
        Bucket of claims and records; empty for that of the objects, None for no such records.

    Raises
    ------
    UsageError
        With the first setting that does not fit.
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
    """Yield each setting that does not fit, what is wrong, and what to do."""
    target, client = job.target, CLIENTS.load(job.target.client).info
    if not client.express:
        yield (
            "client",
            f"{target.client} makes no sessions, without which nothing is allowed",
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
    """Yield the clients that make sessions, of those whose library is installed."""
    for name in CLIENTS.names():
        with suppress(PluginError):
            if CLIENTS.load(name).info.express:
                yield name


def check_zone(bucket: str, region: str) -> None:
    """Refuse a region in which the zone of a directory bucket is not.

    Raises
    ------
    UsageError
        If so: the host name would not exist.
    """
    zone = zone_of(bucket)
    if zone is not None and not is_zone_in(zone, region):
        raise UsageError(
            f"bucket {bucket!r} is in zone {zone}, which is not in region {region}",
            hint="`region` R, where the bucket was made",
        )


def standard_endpoint(target: Target) -> str:
    """Return the endpoint for buckets of another kind beside a target's."""
    zone = zone_of(target.bucket)
    if zone is None or target.endpoint_url != zonal_endpoint(zone, target.region):
        return target.endpoint_url
    return target.endpoint_url.replace(f"s3express-{zone}.", "s3.")
