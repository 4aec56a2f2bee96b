"""Prices per unit, from a dated file that the user may replace, and the cost of a usage."""

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import GIB, format_size
from serverless_bench.base.user_files import config_folder, parse_toml, read_text, reason
from serverless_bench.features.cost.places import currency_of, other_currency, regions
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import StoreProtocol

DEFAULT_REGION: Final = "us-east-1"
"""Region of the prices that come with sbench."""
_FILE: Final = "aws-{}.toml"
_MOST: Final = 64
"""Maximum number of characters of a text: a day, a region, a currency."""
HOURS_PER_MONTH: Final = 730.0
"""AWS bills S3 by byte-hours; its calculator assumes 730 hours per month."""
_FORMS: Final = ((100, ",.0f"), (1, ".2f"), (0.01, ".3f"), (5e-7, ".6f"))
"""Minimum amount and format of its number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Prices per unit; field ``SECTION_NAME`` is ``NAME`` of ``[SECTION]`` in the file."""

    as_of: str
    """Date of the prices, such as ``2026-10-02``."""
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
    """Per 2**30 bytes written to S3 Express One Zone."""
    express_retrieval_gb: float
    kms_request: float
    logs_ingest_gb: float
    network_nat_gb: float
    network_cross_region_gb: float
    network_internet_gb: float
    given: bool = False
    """Whether the user named the file; its prices then apply to any store."""

    def gb_s(self, architecture: str) -> float:
        """Return the price of a GB-second on ``arm64`` or ``x86_64``."""
        return self.lambda_arm64_gb_s if architecture == "arm64" else self.lambda_x86_64_gb_s

    def money(self, amount: float) -> str:
        """Format an amount in the currency of the prices."""
        return format_money(amount, self.currency)


def prices_for(job: JobSpec, given: Prices | None = None) -> Prices | None:
    """Return the given prices, or those of the job's region, or those that come with sbench.

    None if the user named no file and the job has objects or records on another cloud, or AWS
    bills the job in a currency other than dollars.
    """
    if not (given and given.given) and (not is_on_s3(job) or other_currency(job)):
        return None
    region = next(iter(regions(job)), DEFAULT_REGION)
    is_kept = os.path.isfile(price_file(region))  # noqa: PTH113
    return given or load_prices(Path(region) if is_kept else None)


def price_file(region: str) -> Path:
    """Return the path of the user's prices of a region, which ``sbench aws prices`` writes."""
    return config_folder() / _FILE.format(region)


def origin(as_of: str, region: str, run_regions: Sequence[str]) -> str:
    """Return day and region of prices, and the regions of a run if they are different."""
    return f"of {as_of}, {region}{_elsewhere(region, run_regions)}"


def price_note(prices: Prices, job: JobSpec) -> str:
    """Return a note if the prices are for a region other than the job's; else empty."""
    elsewhere = _elsewhere(prices.region, regions(job))
    return f" (prices of {prices.region}{elsewhere})" if elsewhere else ""


def _elsewhere(region: str, run_regions: Sequence[str]) -> str:
    return f"; this run: {', '.join(run_regions)}" if {*run_regions} - {region} else ""


def is_on_s3(job: JobSpec) -> bool:
    """Return whether all objects and records of a job are in stores with the S3 protocol."""
    targets = (job.target, job.control or job.target)
    return all(target.protocol is StoreProtocol.S3 for target in targets)


def needed_prices(job: JobSpec, given: Prices | str | Path | None) -> Prices:
    """Return the prices for the cost of a job: the given prices, a file, or the default.

    Raises
    ------
    UsageError
        If there are no prices for the job, or the file is invalid.
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
    """Return the text of a price file, named as for ``load_prices``.

    Raises
    ------
    UsageError
        If the file cannot be read.
    """
    path = _file_of(path)
    if path is None:
        folder = files("serverless_bench.features.cost")
        return folder.joinpath(_FILE.format(DEFAULT_REGION)).read_text(encoding="utf-8")
    try:
        return read_text(path)
    except (OSError, ValueError) as exc:
        raise _bad(str(path), reason(exc)) from exc


def load_prices(path: Path | None = None) -> Prices:
    """Load prices from a file, or those that come with sbench.

    Parameters
    ----------
    path
        A TOML file with all prices, like ``aws-us-east-1.toml`` in this directory; or a region,
        for the user's prices of that region.

    Raises
    ------
    UsageError
        If the file cannot be read, is not TOML, or lacks a price.
    """
    file = _file_of(path)
    name = _FILE.format(DEFAULT_REGION) if file is None else str(file)
    try:
        data = parse_toml(price_text(path))
    except ValueError as exc:
        raise _bad(name, f"is not TOML: {exc}") from exc
    values: dict[str, Any] = {
        field.name: (_text if field.type is str else _figure)(name, data, field.name)
        for field in fields(Prices)
        if field.name != "given"
    }
    return Prices(**values, given=path is not None and path == file)


def _file_of(path: Path | None) -> Path | None:
    """Return the file for a path or a region; None for the prices that come with sbench."""
    if path is None or not re.fullmatch(r"[a-z]{2,4}(-[a-z]+)+-[0-9]+", str(path)):
        return path
    region = str(path)
    own = price_file(region)
    if os.path.isfile(own) or region == DEFAULT_REGION:  # noqa: PTH113
        return own if os.path.isfile(own) else None  # noqa: PTH113
    check_currency(region, currency_of(region) or "USD")
    raise UsageError(
        f"there are no prices of {region}; they have not been fetched from AWS",
        hint=f"sbench aws prices --region {region}",
    )


def check_currency(region: str, currency: str) -> None:
    """Check that AWS bills a region in dollars.

    Raises
    ------
    UsageError
        If it does not.
    """
    if currency != "USD":
        raise UsageError(
            f"AWS bills {region} in {currency}, and sbench keeps prices in dollars only",
            hint="`prices` FILE takes a table of yours: sbench plan --show-prices writes one",
        )


def _text(name: str, data: Mapping[str, Any], key: str) -> str:
    # A date in TOML is not a string.
    value = data.get(key)
    if value is None or isinstance(value, Mapping):
        raise _bad(name, f"has no {key}")
    text = str(value)
    if not text.isprintable() or len(text) > _MOST:
        raise _bad(name, f"has a {key} that is not a text of at most {_MOST} printable characters")
    return text


def _figure(name: str, data: Mapping[str, Any], field: str) -> float:
    section, _, key = field.partition("_")
    table = data.get(section)
    value = table.get(key) if isinstance(table, Mapping) else None
    if isinstance(value, Mapping):
        value = value.get("price")
    if value is None:
        raise _bad(name, f"has no price {section}.{key}")
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _bad(name, f"has a price {section}.{key} that is not a number")
    if not (math.isfinite(value) and value >= 0):
        raise _bad(name, f"has a price {section}.{key} of {value}")
    return float(value)


def _bad(name: str, why: str) -> UsageError:
    return UsageError(
        f"price file {name}: {why}",
        hint="sbench aws prices makes one for a region, sbench plan --show-prices one to change",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledUsage:
    """Quantities that AWS bills."""

    architecture: str = "x86_64"
    express: bool = False
    """Whether the objects are in S3 Express One Zone; claims and records are always in S3."""
    foreign: bool = False
    """Whether the objects are in a store that AWS does not bill: its requests and its storage have
    a price only in a file that the user names."""
    foreign_control: bool = False
    """Whether claims and records are in such a store."""
    gb_s: float = 0.0
    """Billed seconds of functions times their memory in units of 1,024 MB."""
    invocations: int = 0
    puts: int = 0
    """Data requests of the PUT class."""
    gets: int = 0
    """Data requests of the GET class."""
    uses_kms: bool = False
    """Whether each of these needs a KMS request, as without a bucket key."""
    control_uses_kms: bool = False
    """The same for claims and records, which have S3's own encryption unless a job asks for KMS."""
    control_puts: int = 0
    control_gets: int = 0
    """Requests for claims and records, including those of the driver."""
    uploaded_bytes: int = 0
    retrieved_bytes: int = 0
    """Bytes of objects, which are free except in S3 Express One Zone."""
    storage_byte_h: float = 0.0
    """Bytes times hours of storage."""
    log_bytes: int = 0
    cross_region_bytes: int = 0
    """Bytes transferred between regions of AWS, in either direction."""
    internet_bytes: int = 0
    """Bytes that leave AWS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dollars:
    """Cost by component; the currency is that of the price file."""

    compute: float = 0.0
    """Lambda GB-seconds."""
    invocations: float = 0.0
    puts: float = 0.0
    gets: float = 0.0
    control: float = 0.0
    storage: float = 0.0
    logs: float = 0.0
    network: float = 0.0
    """Bytes that leave a region or AWS, and the prices per byte of S3 Express One Zone."""

    @property
    def total(self) -> float:
        """The sum of all components."""
        return math.fsum(getattr(self, field.name) for field in fields(self))


def price(usage: BilledUsage, prices: Prices) -> Dollars:
    """Return the cost of a usage."""
    per_put, per_get = prices.s3_put, prices.s3_get
    per_gb_month, transferred = prices.s3_storage_gb_month, 0.0
    if usage.express:
        per_put, per_get = prices.express_put, prices.express_get
        per_gb_month = prices.express_storage_gb_month
        transferred = usage.uploaded_bytes / GIB * prices.express_upload_gb
        transferred += usage.retrieved_bytes / GIB * prices.express_retrieval_gb
    if usage.foreign and not prices.given:
        per_put = per_get = per_gb_month = 0.0
    key = prices.kms_request
    counts = (usage.control_puts, prices.s3_put), (usage.control_gets, prices.s3_get)
    controlled = sum(n * (rate + key * usage.control_uses_kms) for n, rate in counts)
    if usage.foreign_control and not prices.given:
        controlled = 0.0
    return Dollars(
        compute=usage.gb_s * prices.gb_s(usage.architecture),
        invocations=usage.invocations * prices.lambda_request,
        puts=usage.puts * (per_put + key * usage.uses_kms),
        gets=usage.gets * (per_get + key * usage.uses_kms),
        control=controlled,
        storage=usage.storage_byte_h / GIB / HOURS_PER_MONTH * per_gb_month,
        logs=usage.log_bytes / GIB * prices.logs_ingest_gb,
        network=usage.cross_region_bytes / GIB * prices.network_cross_region_gb
        + usage.internet_bytes / GIB * prices.network_internet_gb
        + transferred,
    )


def transfer_text(cross_region_bytes: int, internet_bytes: int) -> str:
    """Return how much leaves a region or AWS; empty if nothing does."""
    if internet_bytes:
        return f"{format_size(internet_bytes)} out of AWS"
    return f"{format_size(cross_region_bytes)} to another region" if cross_region_bytes else ""


def format_money(amount: float, currency: str = "USD") -> str:
    """Return an amount with three digits or so: ``$316``, ``$2.04``, ``$0.0091``."""
    form = next((form for least, form in _FORMS if amount >= least or amount == 0), ".1e")
    text = f"{amount:{form}}"
    if form == ".6f":
        text = text.rstrip("0")
    return f"${text}" if currency == "USD" else f"{text} {currency}"
