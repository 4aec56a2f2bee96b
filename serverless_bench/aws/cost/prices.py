"""Dollars per unit, from a dated file that the user may replace."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from serverless_bench.aws.cost.places import other_currency, regions
from serverless_bench.errors import UsageError
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import StoreProtocol
from serverless_bench.user_files import parse_toml, read_text, reason

_BUILT_IN: Final = "aws-us-east-1.toml"
_TEXTS: Final = ("as_of", "region", "currency")
_MOST: Final = 64
"""Characters of such a text: a day, a region, three letters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What one of each costs; field ``SECTION_NAME`` is ``NAME`` of ``[SECTION]`` in the file."""

    as_of: str
    """When the figures were looked up, as in ``2026-10-02``."""
    region: str
    currency: str
    lambda_arm64_gb_s: float
    lambda_x86_64_gb_s: float
    """Per second of 1,024 MB of memory."""
    lambda_request: float
    s3_put: float
    """Per request of the PUT class: PUT, LIST, and every request of a multipart upload."""
    s3_get: float
    s3_storage_gb_month: float
    """Per month of 730 hours and 2**30 bytes."""
    express_put: float
    express_get: float
    express_storage_gb_month: float
    express_upload_gb: float
    """Per 2**30 bytes that are written to S3 Express One Zone."""
    express_retrieval_gb: float
    logs_ingest_gb: float
    network_nat_gb: float
    network_nat_hour: float
    network_endpoint_gb: float
    network_endpoint_hour: float
    network_cross_region_gb: float
    network_internet_gb: float
    given: bool = False
    """Whether the user named the file, whose prices then count for whatever store."""

    def gb_s(self, architecture: str) -> float:
        """Return what a GB-second costs on ``arm64`` or ``x86_64``."""
        return self.lambda_arm64_gb_s if architecture == "arm64" else self.lambda_x86_64_gb_s


def prices_for(job: JobSpec, given: Prices | None = None) -> Prices | None:
    """Return the prices given, or those that come with sbench, which are AWS's in dollars.

    None if nobody has given prices, and the job has objects or records on another cloud, or is
    billed in another currency.
    """
    if given is None and (not is_on_s3(job) or other_currency(job)):
        return None
    return given or load_prices()


def origin(as_of: str, region: str, run_regions: Sequence[str]) -> str:
    """Return day and region of prices, and the regions of a run if they are others."""
    return f"of {as_of}, {region}{_elsewhere(region, run_regions)}"


def price_note(prices: Prices, job: JobSpec) -> str:
    """Return a note for an amount whose prices are of another region than the job; else empty."""
    elsewhere = _elsewhere(prices.region, regions(job))
    return f" (prices of {prices.region}{elsewhere})" if elsewhere else ""


def _elsewhere(region: str, run_regions: Sequence[str]) -> str:
    return f"; this run: {', '.join(run_regions)}" if {*run_regions} - {region} else ""


def is_on_s3(job: JobSpec) -> bool:
    """Tell whether all that a job writes is in stores that speak S3's protocol."""
    targets = (job.target, job.control or job.target)
    return all(target.protocol is StoreProtocol.S3 for target in targets)


def needed_prices(job: JobSpec, given: Prices | str | Path | None) -> Prices:
    """Return the prices of a job whose cost is asked for, or those of a file.

    Raises
    ------
    UsageError
        If nobody has them, or the file is none.
    """
    if isinstance(given, str | Path):
        given = load_prices(Path(given))
    found = prices_for(job, given)
    if found is not None:
        return found
    currency = other_currency(job)
    why = f": AWS bills {', '.join(regions(job))} in {currency}" if currency else ""
    whose = f"its region, in {currency}" if currency else "its cloud"
    raise UsageError(
        f"there are no prices for {job.target.bucket_name}{why}",
        hint=f"`prices` FILE, with those of {whose}: sbench plan --show-prices writes one to begin"
        " with",
    )


def price_text(path: Path | None = None) -> str:
    """Return the text of a price file, or of the one that comes with sbench.

    Raises
    ------
    UsageError
        If the file cannot be read.
    """
    if path is None:
        return files("serverless_bench.aws.cost").joinpath(_BUILT_IN).read_text(encoding="utf-8")
    try:
        return read_text(path)
    except (OSError, ValueError) as exc:
        raise _bad(str(path), reason(exc)) from exc


def load_prices(path: Path | None = None) -> Prices:
    """Return the prices in a file, or those that come with sbench.

    Parameters
    ----------
    path
        A TOML file like ``aws-us-east-1.toml`` beside this module, with every figure.

    Raises
    ------
    UsageError
        If the file cannot be read, is no TOML, or lacks a figure.
    """
    name = _BUILT_IN if path is None else str(path)
    try:
        data = parse_toml(price_text(path))
    except ValueError as exc:
        raise _bad(name, f"is not TOML: {exc}") from exc
    values: dict[str, Any] = {key: _text(name, data, key) for key in _TEXTS}
    for field in fields(Prices):
        if field.name not in {*_TEXTS, "given"}:
            section, _, key = field.name.partition("_")
            values[field.name] = _figure(name, data, section, key)
    return Prices(**values, given=path is not None)


def _text(name: str, data: Mapping[str, Any], key: str) -> str:
    # TOML has dates of its own.
    value = data.get(key)
    if value is None or isinstance(value, Mapping):
        raise _bad(name, f"does not say {key}")
    text = str(value)
    if not text.isprintable() or len(text) > _MOST:
        raise _bad(name, f"says {key} in more than {_MOST} printable characters")
    return text


def _figure(name: str, data: Mapping[str, Any], section: str, key: str) -> float:
    table = data.get(section)
    value = table.get(key) if isinstance(table, Mapping) else None
    if isinstance(value, Mapping):
        value = value.get("price")
    if value is None:
        raise _bad(name, f"has no price {section}.{key}")
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _bad(name, f"has a price {section}.{key} that is no number")
    if not (math.isfinite(value) and value >= 0):
        raise _bad(name, f"has a price {section}.{key} of {value}")
    return float(value)


def _bad(name: str, why: str) -> UsageError:
    return UsageError(
        f"price file {name}: {why}", hint="sbench plan --show-prices writes one to begin with"
    )
