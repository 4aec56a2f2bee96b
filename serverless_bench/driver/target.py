"""The driver's own view of a bucket: is it there, and may we use it.

Control requests go through botocore with its usual retries; nothing here is measured.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from botocore import exceptions as boto

from serverless_bench.aws.client import CREDENTIALS, credentials_error
from serverless_bench.errors import StoreError, UsageError
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from serverless_bench.rundir.run import Run
from serverless_bench.stores.embedded import EMBEDDED, embedded_store

if TYPE_CHECKING:
    from botocore.loaders import Loader
    from mypy_boto3_s3 import S3Client

_NOT_OFFERED: Final = frozenset({"MethodNotAllowed", "NoSuchUpload", "NotImplemented"})
"""What stores answer that have no list of open uploads; the second is rclone's."""
_NOT_OFFERED_STATUS: Final = frozenset({405, 501})


@cache
def _loader(path: str | None) -> "Loader":
    """Return what reads the descriptions of services, which is most of making a client."""
    from botocore.loaders import create_loader  # noqa: PLC0415 - see open_s3

    return create_loader(path)


def open_s3(target: Target) -> "S3Client":
    """Return a botocore client for control requests."""
    # What does not ask a store, as a report and a run into files, need not wait for these.
    from botocore.config import Config  # noqa: PLC0415
    from botocore.session import Session  # noqa: PLC0415

    session = Session()
    session.register_component("data_loader", _loader(session.get_config_variable("data_path")))
    try:
        client: S3Client = session.create_client(  # type: ignore[assignment]
            "s3",
            region_name=target.region or session.get_config_variable("region") or "us-east-1",
            endpoint_url=target.endpoint_url or None,
            config=Config(
                connect_timeout=5,
                read_timeout=30,
                retries={"mode": "standard", "total_max_attempts": 3},
                # Without the latter us-east-1 is measured through a host of all regions.
                s3={
                    "addressing_style": target.addressing.value,
                    "us_east_1_regional_endpoint": "regional",
                },
                # Many S3-compatible stores do not take the newer checksums.
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
            ),
        )
    except ValueError as exc:
        raise UsageError(str(exc), hint="an endpoint is http(s)://host[:port]") from exc
    return client


def resolve(target: Target, *, region: str | None) -> Target:
    """Return ``target`` with the address and region that its bucket really has.

    Parameters
    ----------
    target
        ``endpoint_url`` may be empty: the bucket is on AWS then.
    region
        Where to look first; None takes the AWS configuration's region.

    Raises
    ------
    StoreError
        If the endpoint does not answer, or the bucket is missing or not ours to use.
    UsageError
        If the endpoint is no URL.
    """
    with explained(target):
        client = open_s3(replace(target, region=region or ""))
    with explained(target), closing(client):
        head = client.head_bucket(Bucket=target.bucket)
    found = head["ResponseMetadata"]["HTTPHeaders"].get("x-amz-bucket-region")
    asked = client.meta.region_name
    if not target.endpoint_url and found and found != asked:
        client = open_s3(replace(target, region=found))
    return replace(
        target,
        endpoint_url=target.endpoint_url or client.meta.endpoint_url,
        region=(found if not target.endpoint_url else None) or asked,
    )


def relocated(job: JobSpec, target: Target) -> JobSpec:
    """Return a saved job with the address that its store has now."""
    there: dict[str, Any] = {"endpoint_url": target.endpoint_url, "region": target.region}
    control = job.control
    if control is not None and control.endpoint_url == job.target.endpoint_url:
        control = replace(control, **there)
    return replace(job, target=replace(job.target, **there), control=control)


def ensure(target: Target) -> None:
    """Make the bucket unless it is there.

    Raises
    ------
    StoreError
        If the store does not answer or refuses.
    """
    client = open_s3(target)
    there = (client.exceptions.BucketAlreadyOwnedByYou, client.exceptions.BucketAlreadyExists)
    with explained(target), closing(client), suppress(*there):
        client.create_bucket(Bucket=target.bucket)


@dataclass(frozen=True, slots=True)
class OpenUpload:
    """An upload in parts that is neither complete nor given up."""

    key: str
    upload_id: str


def open_uploads(target: Target) -> list[OpenUpload] | None:
    """Return the open uploads below the target's prefix; None if the store lists none.

    Raises
    ------
    StoreError
        If the store does not answer, or the bucket is missing or not ours to use.
    """
    client = open_s3(target)
    found = []
    with explained(target), closing(client):
        pages = client.get_paginator("list_multipart_uploads")
        try:
            for page in pages.paginate(Bucket=target.bucket, Prefix=target.prefix):
                uploads = page.get("Uploads", ())
                found += [OpenUpload(upload["Key"], upload["UploadId"]) for upload in uploads]
        except boto.ClientError as exc:
            status = exc.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
            code = exc.response.get("Error", {}).get("Code", "")
            if code not in _NOT_OFFERED and status not in _NOT_OFFERED_STATUS:
                raise
            client.head_bucket(Bucket=target.bucket)
            return None
    return found


@contextmanager
def embedded_target(*, client: str = "wire", prefix: str = "sbench/") -> Iterator[Target]:
    """Run the embedded store for the length of a block, and yield a bucket in it.

    Parameters
    ----------
    client
        Name in ``clients.CLIENTS``.
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
def target_of(run: Run) -> Iterator[Target]:
    """Yield the target that a saved run wrote to, at the address that it has now.

    Raises
    ------
    PluginError, StoreError
        As ``embedded_target``, if the run was on the embedded store.
    """
    if run.job.target.store is None:
        yield run.job.target
        return
    with embedded_target() as here:
        yield replace(here, prefix=run.job.target.prefix)


@contextmanager
def explained(target: Target) -> Iterator[None]:
    """Turn what botocore raises into one line for the user."""
    where = f"bucket {target.bucket!r}"
    try:
        yield
    except boto.ClientError as exc:
        status = exc.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        code = exc.response.get("Error", {}).get("Code", "")
        if status == 404:
            hint = "create it, or name another `bucket`"
            raise StoreError(f"{where} does not exist", hint=hint) from exc
        if status in {401, 403}:
            raise StoreError(
                f"{where} refuses these credentials ({code})",
                hint="check AWS_ACCESS_KEY_ID or AWS_PROFILE, and what they may do",
            ) from exc
        raise StoreError(f"{where}: the store answered {status} {code}") from exc
    except CREDENTIALS as exc:
        found = credentials_error(exc)
        raise StoreError(str(found), hint=found.hint) from exc
    except boto.ParamValidationError as exc:
        raise UsageError(f"{target.bucket!r} is not a bucket name") from exc
    except boto.BotoCoreError as exc:
        raise _unreachable(target, exc) from exc


def _unreachable(target: Target, exc: boto.BotoCoreError) -> StoreError:
    """Return why nobody answers, as far as the error shows it."""
    host = urlsplit(target.endpoint_url).netloc or "AWS"
    if not isinstance(exc, boto.SSLError):
        hint = "check `endpoint_url`, and that the store runs"
        return StoreError(f"{host} does not answer: {type(exc).__name__}", hint=hint)
    if "certificate" in str(exc).lower():
        hint = "AWS_CA_BUNDLE=FILE names the authority that signed it"
        return StoreError(f"the certificate of {host} is not trusted", hint=hint)
    hint = f"`endpoint_url` http://{host} if it speaks http"
    return StoreError(f"{host} does not speak https", hint=hint)
