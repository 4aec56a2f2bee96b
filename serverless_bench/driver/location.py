"""From the settings that name a store to a bucket that is really there."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from serverless_bench.errors import UsageError
from serverless_bench.job.endpoint import parse_endpoint, refuse_password
from serverless_bench.job.target import Addressing, StoreProtocol, Target
from serverless_bench.units import format_size

ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
"""Where botocore, which looks for buckets, finds a store (AWS SDKs reference guide,
"Service-specific endpoints"); and what has it look elsewhere."""
IGNORED: Final = "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """Where objects are, as far as the user says; names as in the settings."""

    bucket: str | None
    protocol: StoreProtocol = StoreProtocol.S3
    endpoint_url: str | None
    """Of several, with commas between them."""
    region: str | None
    addressing: str
    client: str
    prefix: str

    def __post_init__(self) -> None:
        if self.endpoint_url is not None:
            urls = map(parse_endpoint, self.endpoint_url.split(","))
            object.__setattr__(self, "endpoint_url", ",".join(urls))

    @property
    def embedded(self) -> bool:
        """Whether the embedded store is meant."""
        return self.bucket is None and self.endpoint_url is None

    @property
    def endpoints(self) -> tuple[str, ...]:
        """The endpoints one by one; empty if none is named."""
        return tuple(self.endpoint_url.split(",")) if self.endpoint_url else ()


@contextmanager
def open_target(location: Location) -> Iterator[Target]:
    """Yield the target at a location; an embedded store lives as long as the block.

    Raises
    ------
    UsageError
        If an endpoint comes without a bucket, or is no URL.
    StoreError
        If the store does not answer or start, or the bucket is not ours to use.
    """
    # botocore takes a moment, which checking a job need not wait for.
    from serverless_bench.driver.target import embedded_target, resolve  # noqa: PLC0415

    if location.embedded:
        with embedded_target(client=location.client, prefix=location.prefix) as target:
            yield target
        return
    if location.bucket is None:
        raise UsageError(
            f"`endpoint_url` {location.endpoint_url} needs a `bucket`", hint="name a bucket there"
        )
    wanted = Target(
        client=location.client,
        bucket=location.bucket,
        protocol=location.protocol,
        prefix=location.prefix,
        endpoint_url=next(iter(location.endpoints), ""),
        addressing=Addressing(location.addressing),
    )
    yield resolve(wanted, region=location.region)


def check_meant(target: Target, *, by_service: bool = False) -> None:
    """Refuse to measure the embedded store where the environment names another one.

    Parameters
    ----------
    target
        Where the objects are.
    by_service
        Whether a service runs the functions: ``AWS_ENDPOINT_URL`` alone may be meant for that.

    Raises
    ------
    UsageError
        If so.
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


def check_room(planned_bytes: int, what: str) -> None:
    """Refuse a job that would fill the disk of the embedded store.

    Raises
    ------
    UsageError
        If ``planned_bytes`` are more than what is free.
    """
    _, free = room_of_store()
    if planned_bytes > free:
        raise UsageError(
            f"{what} are {format_size(planned_bytes)}; the embedded store has room for"
            f" {format_size(free)}",
            hint="write less (`number`, `mb`), or elsewhere: `endpoint_url` URL `bucket` B for a"
            " store of yours, `bucket` B for AWS, and `executor` lithops for functions there",
        )


def room_of_store() -> tuple[Path, int]:
    """Return the folder that the embedded store is in, or will be, and its free bytes."""
    from serverless_bench.stores.embedded import default_directory  # noqa: PLC0415

    directory = default_directory()
    folder = next(path for path in (directory, *directory.parents) if path.exists())
    return folder, shutil.disk_usage(folder).free
