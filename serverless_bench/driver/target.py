"""Requests of the driver that find a bucket and check access to it.

None of them is measured.
"""

import os
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from serverless_bench.base.errors import SbenchError
from serverless_bench.base.plugins import TOOLS
from serverless_bench.clients.clouds import CLOUDS
from serverless_bench.clients.environment import FILES, PROFILES, REGIONS, first_set
from serverless_bench.clients.s3_http import texts
from serverless_bench.driver.bucket import ENCRYPTION, open_bucket
from serverless_bench.job.endpoint import (
    is_aws,
    parse_endpoint,
    zonal_endpoint,
    zone_of,
)
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import EMBEDDED, StoreProtocol, Target


def resolve(target: Target) -> Target:
    """Return ``target`` with the actual address and region of the bucket.

    Parameters
    ----------
    target
        Location of the bucket; an empty ``endpoint_url`` stands for AWS.

    Raises
    ------
    StoreError
        If the endpoint does not respond, or the bucket is missing or access to it is denied.
    UsageError
        If the endpoint or the bucket's name is invalid, or no account is given.
    """
    zone = zone_of(target.bucket)
    if target.protocol is not StoreProtocol.S3:
        url = target.endpoint_url or CLOUDS.load(target.protocol).endpoint()
        target = replace(target, endpoint_url=url)
    elif not target.endpoint_url and zone is None:
        return _found_on_aws(target)
    else:
        target = replace(target, region=target.region or _configured_region())
        if not target.endpoint_url and zone is not None:
            TOOLS.load("zone")(target.bucket, target.region)
            target = replace(target, endpoint_url=zonal_endpoint(zone, target.region))
    with open_bucket(target) as bucket:
        bucket.ask()
    return target


def _found_on_aws(target: Target) -> Target:
    from serverless_bench.driver import boto

    with boto.explained(target):
        client = boto.open_s3(target)
    if not is_aws(client.meta.endpoint_url):
        # The environment names another store, and botocore limits no response of such a store.
        client.close()
        url = parse_endpoint(client.meta.endpoint_url)
        here = replace(target, endpoint_url=url, region=client.meta.region_name)
        with open_bucket(here) as bucket:
            return with_encryption(replace(here, region=bucket.region() or here.region))
    with boto.explained(target), closing(client):
        head = boto.head_bucket(client, target.bucket)
    bucket_region = head["ResponseMetadata"]["HTTPHeaders"].get("x-amz-bucket-region")
    client_region = client.meta.region_name
    if bucket_region and bucket_region != client_region:
        client = boto.open_s3(replace(target, region=bucket_region))
    return with_encryption(
        replace(
            target, endpoint_url=client.meta.endpoint_url, region=bucket_region or client_region
        )
    )


def with_encryption(target: Target) -> Target:
    """Return the target with the KMS setting of its bucket; False if that cannot be read.

    With a bucket key S3 asks once for many objects.
    """
    with suppress(SbenchError), open_bucket(target) as bucket:
        return replace(target, uses_kms=uses_kms(bucket.read_setting(ENCRYPTION), target.sse))
    return target


def uses_kms(encryption: ET.Element, sse: str = "") -> bool:
    """Return whether S3 asks KMS at each request of an object, by the setting of its bucket.

    An encryption of the objects, as in ``Target``, counts in place of that of the bucket, whose
    bucket key it uses.
    """
    by_kms = not {"aws:kms", "aws:kms:dsse"}.isdisjoint(
        [sse[:7]] if sse else texts(encryption, "SSEAlgorithm")
    )
    return by_kms and "true" not in texts(encryption, "BucketKeyEnabled")


def _configured_region() -> str:
    """Return the region of the AWS configuration; botocore is imported only if there is one."""
    files = (Path(os.environ.get(name, usual)).expanduser() for name, usual in FILES.items())
    if any(map(os.environ.get, PROFILES)) or any(path.is_file() for path in files):
        from serverless_bench.driver.boto import configured_region

        return configured_region()
    return first_set(REGIONS) or "us-east-1"


def ensure(target: Target) -> None:
    """Create the bucket, in the target's region or that of the AWS configuration, if it is missing.

    Raises
    ------
    StoreError
        If the store does not respond or denies access.
    """
    with open_bucket(replace(target, region=target.region or _configured_region())) as bucket:
        bucket.ensure()


@contextmanager
def embedded_target(*, client: str = "", prefix: str = "sbench/") -> Iterator[Target]:
    """Run the embedded store for the length of a block, and yield a bucket in it.

    Parameters
    ----------
    client
        Same as in ``Target``.
    prefix
        Prefix of all new keys.

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
    from serverless_bench.stores.embedded import embedded_store

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
    """Yield a job with the current address of the store.

    An embedded store runs as long as the block; other stores are not contacted.

    Raises
    ------
    PluginError, StoreError
        Same as in ``embedded_target``.
    """
    if job.target.store is None:
        yield job
        return
    with embedded_target() as here:
        address: dict[str, Any] = {"endpoint_url": here.endpoint_url, "region": here.region}
        control = job.control
        if control is not None and control.endpoint_url == job.target.endpoint_url:
            control = replace(control, **address)
        target = replace(job.target, bucket=here.bucket, **address)
        yield replace(job, target=target, control=control)


def loading(target: Target, notes: dict[str, Any] | None = None) -> AbstractContextManager[object]:
    """Register this process as a user of the embedded store while the block runs.

    Parameters
    ----------
    target
        Target of the run; users of other stores are not counted.
    notes
        Same as in ``stores.embedded.loading``.
    """
    if target.store is None:
        return nullcontext()
    from serverless_bench.stores import embedded

    return embedded.loading(notes)
