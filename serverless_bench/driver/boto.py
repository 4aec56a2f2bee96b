"""Access to a bucket with botocore, for features that ``bucket`` does not have.

Control requests use botocore's default retries; none of them is measured.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from botocore import exceptions as boto
from botocore.config import Config
from botocore.configprovider import ConfiguredEndpointProvider
from botocore.session import Session

from serverless_bench.aws.client import (
    CONFIG,
    CREDENTIALS,
    UNREADABLE,
    network_problem,
    open_session,
)
from serverless_bench.clock import http_date_s, wall_ns
from serverless_bench.driver.bucket import credentials, missing, refused, unreachable
from serverless_bench.errors import StoreError, UsageError
from serverless_bench.job.endpoint import refuse_password
from serverless_bench.job.target import Target
from serverless_bench.units import NS_PER_S

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_MOST_SKEW_S: Final = 900.0
"""S3 rejects signatures with a larger clock skew (Amazon S3 API reference, "Error responses")."""


def _configured() -> Session:
    """Return a session with a readable profile, if it has one."""
    session = open_session()
    try:
        session.get_scoped_config()
    except UNREADABLE as exc:
        raise credentials(exc) from exc
    return session


def open_s3(target: Target) -> "S3Client":
    """Return a botocore client for control requests."""
    session = _configured()
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
    region: str | None = _configured().get_config_variable("region")
    return region or "us-east-1"


def configured_endpoint() -> str | None:
    """Return the S3 endpoint in the AWS configuration or the environment.

    Raises
    ------
    StoreError
        Same as in ``configured_region``.
    """
    session = _configured()
    if str(session.get_config_variable("ignore_configured_endpoint_urls")).lower() == "true":
        return None
    provider = ConfiguredEndpointProvider(session.full_config, session.get_scoped_config(), "s3")
    url: str | None = provider.provide()
    return url


@contextmanager
def explained(target: Target) -> Iterator[None]:
    """Turn errors of botocore into a line for the user."""
    where = f"bucket {target.bucket!r}"
    try:
        yield
    except boto.ClientError as exc:
        status = exc.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        code = exc.response.get("Error", {}).get("Code", "")
        if status == 404:
            raise missing(where) from exc
        if status in {401, 403}:
            headers = exc.response["ResponseMetadata"].get("HTTPHeaders", {})
            date_s = http_date_s(headers.get("date"))
            # A response to HEAD has no body, but a Date header.
            is_off = date_s is not None and abs(date_s - wall_ns() / NS_PER_S) > _MOST_SKEW_S
            raise refused(where, "RequestTimeTooSkewed" if is_off else code) from exc
        raise StoreError(f"{where}: the store answered {status} {code}") from exc
    except CREDENTIALS as exc:
        raise credentials(exc) from exc
    except boto.ParamValidationError as exc:
        raise UsageError(f"{target.bucket!r} is not a bucket name") from exc
    except boto.BotoCoreError as exc:
        why, hint = network_problem(exc)
        raise unreachable(target, why, is_tls="[SSL" in why, hint=hint) from exc
