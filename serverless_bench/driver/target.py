"""The driver's own view of a bucket: is it there, and may we use it.

Nothing here is measured.
"""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from serverless_bench.clients.clouds import CLOUDS
from serverless_bench.clients.s3_http import texts
from serverless_bench.driver.bucket import ENCRYPTION, open_bucket
from serverless_bench.driver.location import check_zone
from serverless_bench.errors import SbenchError, UsageError
from serverless_bench.job.endpoint import is_aws, zonal_endpoint, zone_of
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import EMBEDDED, StoreProtocol, Target

_FILES: Final = {
    "AWS_CONFIG_FILE": "~/.aws/config",
    "AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials",
}
_PROFILES: Final = ("AWS_DEFAULT_PROFILE", "AWS_PROFILE")


def resolve(target: Target) -> Target:
    """Return ``target`` with the address and region that its bucket really has.

    Parameters
    ----------
    target
        ``endpoint_url`` may be empty: the bucket is on AWS then.

    Raises
    ------
    StoreError
        If the endpoint does not answer, or the bucket is missing or not ours to use.
    UsageError
        If the endpoint is no URL, the bucket's name is none, or no account is named.
    """
    zone = zone_of(target.bucket)
    if target.protocol is not StoreProtocol.S3:
        url = target.endpoint_url or CLOUDS[target.protocol].endpoint()
        target = replace(target, endpoint_url=url)
    elif not target.endpoint_url and zone is None:
        return _found_on_aws(target)
    else:
        target = replace(target, region=target.region or _configured_region())
        if not target.endpoint_url and zone is not None:
            check_zone(target.bucket, target.region)
            target = replace(target, endpoint_url=zonal_endpoint(zone, target.region))
    with open_bucket(target) as bucket:
        bucket.ask()
    return target


def _found_on_aws(target: Target) -> Target:
    from serverless_bench.driver import boto  # noqa: PLC0415 - 0.2 s of a processor

    with boto.explained(target):
        client = boto.open_s3(target)
    if not is_aws(client.meta.endpoint_url):
        # The environment names another store: nobody bounds what botocore reads of it.
        client.close()
        here = replace(
            target, endpoint_url=client.meta.endpoint_url, region=client.meta.region_name
        )
        with open_bucket(here) as bucket:
            return with_encryption(replace(here, region=bucket.region() or here.region))
    with boto.explained(target), closing(client):
        head = client.head_bucket(Bucket=target.bucket)
    found = head["ResponseMetadata"]["HTTPHeaders"].get("x-amz-bucket-region")
    asked = client.meta.region_name
    if found and found != asked:
        client = boto.open_s3(replace(target, region=found))
    there = replace(target, endpoint_url=client.meta.endpoint_url, region=found or asked)
    return with_encryption(there)


def with_encryption(target: Target) -> Target:
    """Return a target on S3 that says whether its requests ask KMS; no, if that is unknown.

    With a bucket key S3 asks once for many objects.
    """
    with suppress(SbenchError), open_bucket(target) as bucket:
        how = bucket.read_setting(ENCRYPTION)
        by_kms = not {"aws:kms", "aws:kms:dsse"}.isdisjoint(texts(how, "SSEAlgorithm"))
        return replace(target, asks_kms=by_kms and "true" not in texts(how, "BucketKeyEnabled"))
    return target


def _configured_region() -> str:
    """Return the region of the AWS configuration; botocore is asked only if there is one."""
    files = (Path(os.environ.get(name, usual)).expanduser() for name, usual in _FILES.items())
    if any(map(os.environ.get, _PROFILES)) or any(path.is_file() for path in files):
        from serverless_bench.driver.boto import configured_region  # noqa: PLC0415

        return configured_region()
    return os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"


def configured_endpoints(protocol: StoreProtocol) -> frozenset[str]:
    """Return the endpoints that the environment and the AWS configuration name; none means AWS.

    Of another protocol the environment always names one, if it names an account.
    """
    found = os.environ.get("SBENCH_ENDPOINT_URL", "").split(",")
    if protocol in CLOUDS:
        with suppress(UsageError):
            found.append(CLOUDS[protocol].endpoint())
    else:
        from serverless_bench.driver.boto import configured_endpoint  # noqa: PLC0415

        found.append(configured_endpoint() or "")
    return frozenset(url.strip().rstrip("/") for url in found) - {""}


def ensure(target: Target) -> None:
    """Make the bucket unless it is there.

    Raises
    ------
    StoreError
        If the store does not answer or refuses.
    """
    with open_bucket(target) as bucket:
        bucket.ensure()


@contextmanager
def embedded_target(*, client: str = "", prefix: str = "sbench/") -> Iterator[Target]:
    """Run the embedded store for the length of a block, and yield a bucket in it.

    Parameters
    ----------
    client
        As in ``Target``.
    prefix
        Goes before every new key.

    Raises
    ------
    PluginError
        If the store's program is not installed.
    StoreError
        If it does not start.

    Examples
    --------
    >>> with sbench.embedded_target() as target:
    ...     print(target.store)
    seaweedfs
    """
    from serverless_bench.stores.embedded import embedded_store  # noqa: PLC0415

    with embedded_store() as lease:
        target = Target(
            client=client,
            bucket=lease.address.bucket,
            prefix=prefix,
            endpoint_url=lease.address.endpoint_url,
            store=EMBEDDED,
        )
        ensure(target)
        yield target


@contextmanager
def located(job: JobSpec) -> Iterator[JobSpec]:
    """Yield a job with the address that its store has now.

    An embedded store lives as long as the block; of others nobody asks.

    Raises
    ------
    PluginError, StoreError
        As ``embedded_target``.
    """
    if job.target.store is None:
        yield job
        return
    with embedded_target() as here:
        there: dict[str, Any] = {"endpoint_url": here.endpoint_url, "region": here.region}
        control = job.control
        if control is not None and control.endpoint_url == job.target.endpoint_url:
            control = replace(control, **there)
        target = replace(job.target, bucket=here.bucket, **there)
        yield replace(job, target=target, control=control)


def loading(target: Target, notes: dict[str, Any] | None = None) -> AbstractContextManager[object]:
    """Count among the commands that load the embedded store while the block runs.

    Parameters
    ----------
    target
        Of the run; of stores that sbench does not start, nobody counts.
    notes
        As in ``stores.embedded.loading``.
    """
    if target.store is None:
        return nullcontext()
    from serverless_bench.stores import embedded  # noqa: PLC0415

    return embedded.loading(notes)


@contextmanager
def store_kept_up(*, needed: bool) -> Iterator[None]:
    """Keep the embedded store up from run to run if one of them uses it.

    Only a lease: its credentials are in the environment during the runs that need them,
    because another task may go to a store with credentials of its own.
    """
    from serverless_bench.stores.embedded import Lease, default_directory  # noqa: PLC0415

    lease = Lease.take(default_directory()) if needed else None
    try:
        yield
    finally:
        if lease is not None:
            lease.release()
