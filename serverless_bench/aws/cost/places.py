"""Places of functions and objects, as far as they decide what AWS bills.

The functions are taken to be on AWS. What they send to a store outside leaves AWS; what moves
between two regions, either way, leaves one of them. What comes from outside is free.
"""

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

from serverless_bench.job.endpoint import is_billed_by_aws, is_directory_bucket
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import StoreProtocol, Target

_PRIVATE: Final = (".internal", ".local", ".localhost")
"""Endings of names without an address on the internet (RFC 6761, RFC 6762, ICANN 2024)."""
_OTHER_CURRENCIES: Final = {"cn": "CNY", "eusc": "EUR"}
"""Currencies of partitions that AWS does not bill in dollars, by how their regions begin."""


def placed(job: JobSpec, *, sent: float = 0, received: float = 0) -> Mapping[str, Any]:
    """Return the fields of ``BilledUsage`` that say where requests go, and which bytes leave.

    Parameters
    ----------
    job
        Where functions and objects are.
    sent, received
        Bytes that the functions sent to the objects and received, retries included.
    """
    between = _is_on_aws(job.target) and job.function_region not in {None, job.target.region}
    return {
        "asks_kms": job.target.asks_kms,
        "express": is_directory_bucket(job.target.bucket),
        "foreign": is_foreign(job),
        "foreign_control": job.control is not None and _is_outside(job.control),
        "cross_region_bytes": round(sent + received) if between else 0,
        "internet_bytes": round(sent) if is_foreign(job) else 0,
    }


def is_foreign(job: JobSpec) -> bool:
    """Tell whether the objects are in a store on the internet that AWS does not bill."""
    return _is_outside(job.target) or any(map(_is_on_internet, job.endpoints))


def regions(job: JobSpec) -> tuple[str, ...]:
    """Return the regions of AWS that bill a job, as far as they are known."""
    region = job.target.region if _is_on_aws(job.target) else ""
    return tuple(dict.fromkeys(filter(None, (job.function_region, region))))


def other_currency(job: JobSpec) -> str | None:
    """Return the currency in which AWS bills a job; None for dollars."""
    return next(filter(None, map(currency_of, regions(job))), None)


def currency_of(region: str) -> str | None:
    """Return the currency in which AWS bills a region; None for dollars."""
    return _OTHER_CURRENCIES.get(region.partition("-")[0])


def _is_on_aws(target: Target) -> bool:
    """Tell whether objects are on S3; without an address they are, if that is their protocol."""
    if target.endpoint_url:
        return is_billed_by_aws(target.endpoint_url)
    return target.protocol is StoreProtocol.S3


def _is_outside(target: Target) -> bool:
    if target.endpoint_url:
        return _is_on_internet(target.endpoint_url)
    return target.protocol is not StoreProtocol.S3


def _is_on_internet(url: str) -> bool:
    """Tell whether a store is neither AWS's, nor of this machine or of a private network."""
    host = urlsplit(url).hostname or ""
    if not host or is_billed_by_aws(url):
        return False
    try:
        return ip_address(host).is_global
    except ValueError:
        return "." in host and not host.endswith(_PRIVATE)
