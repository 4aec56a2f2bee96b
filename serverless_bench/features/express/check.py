"""Checks of jobs with a directory bucket, before they start."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from serverless_bench.base.errors import PluginError, UsageError
from serverless_bench.clients import CLIENTS
from serverless_bench.job.endpoint import zone_of
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Addressing
from serverless_bench.job.types import wrong

_SHORT_NAMES: Final = {
    "central": "c",
    "east": "e",
    "gov": "g",
    "north": "n",
    "northeast": "ne",
    "northwest": "nw",
    "south": "s",
    "southeast": "se",
    "southwest": "sw",
    "west": "w",
}
"""Abbreviations of words of region names in zone names."""


def check_job(job: JobSpec) -> None:
    """Raise an error for settings that do not fit the directory bucket of a job.

    Raises
    ------
    UsageError
        For the first setting that does not fit.
    """
    target = job.target
    if not CLIENTS.load(target.client).info.express:
        # The hint takes the import of all clients.
        raise wrong(
            "client",
            f"{target.client} cannot create the sessions that a directory bucket requires in a"
            " directory bucket",
            hint=f"`client` {', '.join(_clients_with_sessions())}",
        )
    for is_wrong, field, problem, hint in (
        (
            job.load.library is not None,
            "library",
            "array libraries make no sessions",
            "`workload` write and read",
        ),
        (
            target.prefix and not target.prefix.endswith("/"),
            "prefix",
            f"{target.prefix!r} cannot be listed: a prefix ends in a slash",
            f"`prefix` {target.prefix}/",
        ),
        (
            target.addressing is Addressing.PATH and not target.endpoint_url,
            "addressing",
            "the zone's endpoint takes no path style",
            "`addressing` auto",
        ),
        (
            job.endpoints,
            "endpoint_url",
            "there is one endpoint for each zone",
            "one `endpoint_url`, or none",
        ),
    ):
        if is_wrong:
            raise wrong(field, f"{problem} in a directory bucket", hint=hint)


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
    if zone is not None and not _is_zone_in(zone, region):
        raise UsageError(
            f"bucket {bucket!r} is in zone {zone}, which is not in region {region}",
            hint="`region` R, where the bucket was made",
        )


def _is_zone_in(zone: str, region: str) -> bool:
    """Return whether a zone can belong to a region, judging by the names."""
    first, *middle, number = region.split("-")
    short = first + "".join(_SHORT_NAMES.get(word, word) for word in middle) + number
    return zone.startswith(f"{short}-")
