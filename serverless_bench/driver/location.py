"""Find the location of a job's objects and functions, and check it before the start.

It is checked against environment and disk.
"""

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Final

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import format_size
from serverless_bench.executors import executors_where, info_of
from serverless_bench.job.endpoint import (
    is_billed_by_aws,
    parse_endpoint,
    refuse_password,
)
from serverless_bench.job.meaning import declared_options
from serverless_bench.job.settings import JobSettings, values_of
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import (
    EMBEDDED,
    EMBEDDED_BUCKET,
    StoreProtocol,
    Target,
    parse_bucket,
)
from serverless_bench.job.types import wrong

ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
"""Variables with a store's endpoint for botocore, which locates buckets (AWS SDKs reference guide,
"Service-specific endpoints"), and the variable that makes botocore ignore them.
"""
IGNORED: Final = "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Location of a job's functions, and of their records if the driver has to find these.

    This class is for functions that return their records to the driver.
    """

    region: str | None = None
    """Region of the functions; None for the region of the target's bucket."""
    far: bool = False
    """Whether the user has confirmed that functions and bucket are in different regions."""

    @property
    def options(self) -> dict[str, Any]:
        """The options of a job that follow from it."""
        return {}

    def check(self, job: JobSpec) -> None:
        """Raise an error if functions of the job cannot leave their records."""

    def check_region(self, target: Target) -> None:
        """Raise an error for a bucket in another region, unless the user has confirmed it."""

    def control(self, target: Target) -> Target | None:
        """Return the location of the records; None if there are none to find."""
        return None


def locate(settings: JobSettings) -> tuple[Target, Place]:
    """Return the locations of a job's objects, as far as they are known, and of its functions.

    The address and the region of the target may be empty. The executor declares where functions
    may be elsewhere than here.

    Raises
    ------
    UsageError
        If a setting does not fit the executor, or is missing.
    ExecutorError
        If the stack cannot be used.
    """
    executor = info_of(settings.executor)
    _refuse_idle(settings, executor.settings)
    target = _target(settings)
    located: tuple[Target, Place] = target, Place()
    if executor.locate:
        located = resolve_name(executor.locate)(settings, target)
    if not located[0].bucket:
        raise UsageError(
            f"`endpoint_url` {target.endpoint_url} needs a `bucket`", hint="name a bucket there"
        )
    return located


def endpoints_of(settings: JobSettings) -> tuple[str, ...]:
    """Return the endpoints in the settings, in the same order.

    Raises
    ------
    UsageError
        If a URL is invalid.
    """
    urls = () if settings.endpoint_url is None else settings.endpoint_url.split(",")
    return tuple(map(parse_endpoint, urls))


def _target(settings: JobSettings) -> Target:
    protocol, bucket, rest = parse_bucket(settings.bucket or "")
    if rest:
        raise wrong(
            "bucket",
            f"{settings.bucket!r} goes on behind the bucket",
            hint=f"`bucket` {protocol}://{bucket}, and `prefix` for the start of keys",
        )
    if protocol is not StoreProtocol.S3 and settings.region is not None:
        raise wrong("region", f"does not apply to {protocol}://", hint="leave it out")
    url = next(iter(endpoints_of(settings)), "")
    sse = settings.own.get("sse") or ""
    embedded = settings.bucket is None and not url
    values = values_of(Target, settings) | {
        "client": settings.client or "",
        "bucket": EMBEDDED_BUCKET if embedded else bucket,
        "protocol": protocol,
        "endpoint_url": url,
        "region": settings.region or "",
        "sse": sse,
        "uses_kms": sse.startswith("aws:kms") and (not url or is_billed_by_aws(url)),
        "store": EMBEDDED if embedded else None,
    }
    return Target(**values)


def _refuse_idle(settings: JobSettings, meant: Collection[str]) -> None:
    """Raise an error for a setting that the executor does not use."""
    usual = {
        name: declared.default
        for name, declared in declared_options().items()
        if declared.meaning.by_executor and name not in meant
    }
    idle = next((name for name in usual if settings.value(name) != usual[name]), None)
    if idle is not None:
        others = executors_where(lambda info: idle in info.settings)
        raise wrong(
            idle,
            f"does not apply to `executor` {settings.executor}",
            hint=f"`executor` {others[0]}" if others else "leave it out",
        )


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
