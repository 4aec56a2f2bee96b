"""Access to a bucket with botocore, for features that ``bucket`` does not have.

Control requests use botocore's default retries; none of them is measured.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from botocore import exceptions as boto
from botocore.config import Config
from botocore.session import Session

from serverless_bench.base.errors import StoreError, UsageError
from serverless_bench.clients.aws_credentials import CONFIG, UNREADABLE, open_session
from serverless_bench.clients.aws_errors import CREDENTIALS, network_problem
from serverless_bench.driver.store_errors import (
    credentials,
    hint_for,
    missing,
    refused,
    skew,
    unreachable,
)
from serverless_bench.job.endpoint import refuse_password
from serverless_bench.job.target import Target

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def configured() -> Session:
    """Return a session with a readable profile, if it has one."""
    session = open_session()
    try:
        session.get_scoped_config()
    except UNREADABLE as exc:
        raise credentials(exc) from exc
    return session


def open_s3(target: Target) -> "S3Client":
    """Return a botocore client for control requests."""
    session = configured()
    try:
        client: S3Client = session.create_client(  # type: ignore[assignment]
            "s3",
            region_name=target.region or configured_region(),
            endpoint_url=target.endpoint_url or None,
            config=Config(
                **CONFIG,
                # Without "regional" us-east-1 is accessed through a host for all regions.
                s3={
                    "addressing_style": target.addressing.value,
                    "us_east_1_regional_endpoint": "regional",
                },
            ),
        )
    except ValueError as exc:
        raise UsageError(str(exc), hint="an endpoint is http(s)://host[:port]") from exc
    # The endpoint may come from the environment or the AWS configuration.
    refuse_password(client.meta.endpoint_url)
    return client


def configured_region() -> str:
    """Return the region of the AWS configuration.

    Raises
    ------
    StoreError
        If the profile does not exist, or the file cannot be read.
    """
    region: str | None = configured().get_config_variable("region")
    return region or "us-east-1"


def head_bucket(client: "S3Client", bucket: str) -> Any:
    """Return the response to HeadBucket.

    Raises
    ------
    ClientError
        If it fails: that of a GET, whose body says why, if there is one.
    """
    try:
        return client.head_bucket(Bucket=bucket)
    except boto.ClientError:
        with suppress(boto.BotoCoreError):
            client.list_objects_v2(Bucket=bucket, MaxKeys=1)
        raise


@contextmanager
def explained(target: Target) -> Iterator[None]:
    """Turn errors of botocore into a line for the user."""
    where = f"bucket {target.bucket!r}"
    try:
        yield
    except boto.ClientError as exc:
        status = exc.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        error = exc.response.get("Error", {})
        words = ": ".join(filter(None, (error.get("Code", ""), error.get("Message", ""))))
        if status == 404:
            raise missing(where) from exc
        if status in {401, 403}:
            headers = exc.response["ResponseMetadata"].get("HTTPHeaders", {})
            raise refused(where, skew(headers.get("date")) or words) from exc
        raise StoreError(
            f"{where}: the store answered {status} {words}", hint=hint_for(words)
        ) from exc
    except (*CREDENTIALS, *UNREADABLE) as exc:
        raise credentials(exc) from exc
    except boto.ParamValidationError as exc:
        raise UsageError(f"{target.bucket!r} is not a bucket name") from exc
    except boto.BotoCoreError as exc:
        why, hint = network_problem(exc)
        raise unreachable(target, why, is_tls="[SSL" in why, hint=hint) from exc
