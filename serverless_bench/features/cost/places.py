"""Locations of functions and objects that affect the bill of AWS.

The functions are assumed to be on AWS. Bytes that they send to a store elsewhere leave AWS; bytes
between two regions, in either direction, leave one of them. Incoming bytes are free.
"""

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

from serverless_bench.features.aws.options import FunctionOptions
from serverless_bench.job.endpoint import is_billed_by_aws, is_directory_bucket
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import StoreProtocol, Target

_PRIVATE: Final = (".internal", ".local", ".localhost")
"""Suffixes of names without an address on the internet (RFC 6761, RFC 6762, ICANN 2024)."""
_OTHER_CURRENCIES: Final = {"cn": "CNY", "eusc": "EUR"}
"""Currencies of partitions that AWS does not bill in dollars, by the prefix of their regions."""


def placed(job: JobSpec, *, sent: float = 0, received: float = 0) -> Mapping[str, Any]:
    """Return the fields of ``BilledUsage`` for destinations of requests and outgoing bytes.

    Parameters
    ----------
    job
        Job with the locations of functions and objects.
    sent, received
        Bytes that the functions sent to the objects and received, including retries.
    """
    region = FunctionOptions.from_work(job).function_region
    control = job.control or job.target
    between = _is_on_aws(job.target) and region not in {None, job.target.region}
    return {
        "uses_kms": job.target.uses_kms,
        "control_uses_kms": bool(control.sse) and control.uses_kms,
        "express": is_directory_bucket(job.target.bucket),
        "foreign": is_foreign(job),
        "foreign_control": job.control is not None and _is_outside(job.control),
        "cross_region_bytes": round(sent + received) if between else 0,
        "internet_bytes": round(sent) if is_foreign(job) else 0,
    }


def is_foreign(job: JobSpec) -> bool:
    """Return whether the objects are in a store on the internet that AWS does not bill."""
    return _is_outside(job.target) or any(map(_is_on_internet, job.endpoints))


def regions(job: JobSpec) -> tuple[str, ...]:
    """Return the known regions of AWS that bill a job."""
    region = job.target.region if _is_on_aws(job.target) else ""
    return tuple(
        dict.fromkeys(filter(None, (FunctionOptions.from_work(job).function_region, region)))
    )


def other_currency(job: JobSpec) -> str | None:
    """Return the currency in which AWS bills a job; None for dollars."""
    return next(filter(None, map(currency_of, regions(job))), None)


def currency_of(region: str) -> str | None:
    """Return the currency in which AWS bills a region; None for dollars."""
    return _OTHER_CURRENCIES.get(region.partition("-")[0])


def _is_on_aws(target: Target) -> bool:
    """Return whether objects are on S3; this is assumed for its protocol without an endpoint."""
    if target.endpoint_url:
        return is_billed_by_aws(target.endpoint_url)
    return target.protocol is StoreProtocol.S3


def _is_outside(target: Target) -> bool:
    if target.endpoint_url:
        return _is_on_internet(target.endpoint_url)
    return target.protocol is not StoreProtocol.S3


def _is_on_internet(url: str) -> bool:
    """Return whether a store is outside of AWS, this machine and private networks."""
    host = urlsplit(url).hostname or ""
    if not host or is_billed_by_aws(url):
        return False
    try:
        return ip_address(host).is_global
    except ValueError:
        return "." in host and not host.endswith(_PRIVATE)
