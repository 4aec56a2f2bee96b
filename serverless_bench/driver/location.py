"""Checks of where a job has its objects, against the environment and the disk."""

import os
import shutil
from pathlib import Path
from typing import Final

from serverless_bench.errors import UsageError
from serverless_bench.job.endpoint import refuse_password
from serverless_bench.job.target import Target
from serverless_bench.units import format_size

ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
"""Where botocore, which looks for buckets, finds a store (AWS SDKs reference guide,
"Service-specific endpoints"); and what has it look elsewhere."""
IGNORED: Final = "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"


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
