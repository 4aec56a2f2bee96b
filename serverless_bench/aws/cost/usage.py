"""What is paid for, and what it comes to."""

import math
from dataclasses import dataclass, fields
from typing import Final

from serverless_bench.aws.cost.prices import Prices
from serverless_bench.units import GIB, format_size

HOURS_PER_MONTH: Final = 730.0
"""AWS bills S3 by byte-hours; its calculator takes 730 hours for a month."""

_FORMS: Final = ((100, ",.0f"), (1, ".2f"), (0.01, ".3f"), (5e-7, ".6f"))
"""How an amount of at least so much is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledUsage:
    """Quantities that AWS bills."""

    architecture: str = "x86_64"
    express: bool = False
    """Whether the objects are in S3 Express One Zone; claims and records never are."""
    foreign: bool = False
    """Whether the objects are in a store that AWS does not bill: its requests and its room have
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
    control_puts: int = 0
    control_gets: int = 0
    """Claims, records and what the driver lists and fetches."""
    uploaded_bytes: int = 0
    retrieved_bytes: int = 0
    """Of objects; they cost nothing unless these are in S3 Express One Zone."""
    storage_byte_h: float = 0.0
    """Bytes times the hours for which they are kept."""
    log_bytes: int = 0
    nat_bytes: int = 0
    endpoint_bytes: int = 0
    route_h: float = 0.0
    """Hours for which a NAT gateway or an interface endpoint stands, if there are such bytes."""
    cross_region_bytes: int = 0
    """That move from one region of AWS to another, either way."""
    internet_bytes: int = 0
    """That leave AWS."""


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
    """NAT, interface endpoint, what leaves a region or AWS, and what S3 Express One Zone takes for
    each byte; nothing without those."""

    @property
    def total(self) -> float:
        """The sum of all components."""
        return math.fsum(getattr(self, field.name) for field in fields(self))


def price(usage: BilledUsage, prices: Prices) -> Dollars:
    """Return what a usage costs."""
    per_put, per_get = prices.s3_put, prices.s3_get
    per_gb_month, transferred = prices.s3_storage_gb_month, 0.0
    if usage.express:
        per_put, per_get = prices.express_put, prices.express_get
        per_gb_month = prices.express_storage_gb_month
        transferred = usage.uploaded_bytes / GIB * prices.express_upload_gb
        transferred += usage.retrieved_bytes / GIB * prices.express_retrieval_gb
    if usage.foreign and not prices.given:
        per_put = per_get = per_gb_month = 0.0
    controlled = usage.control_puts * prices.s3_put + usage.control_gets * prices.s3_get
    if usage.foreign_control and not prices.given:
        controlled = 0.0
    return Dollars(
        compute=usage.gb_s * prices.gb_s(usage.architecture),
        invocations=usage.invocations * prices.lambda_request,
        puts=usage.puts * per_put,
        gets=usage.gets * per_get,
        control=controlled,
        storage=usage.storage_byte_h / GIB / HOURS_PER_MONTH * per_gb_month,
        logs=usage.log_bytes / GIB * prices.logs_ingest_gb,
        network=_network(usage, prices) + transferred,
    )


def _network(usage: BilledUsage, prices: Prices) -> float:
    cost = usage.cross_region_bytes / GIB * prices.network_cross_region_gb
    cost += usage.internet_bytes / GIB * prices.network_internet_gb
    for moved, per_gb, per_hour in (
        (usage.nat_bytes, prices.network_nat_gb, prices.network_nat_hour),
        (usage.endpoint_bytes, prices.network_endpoint_gb, prices.network_endpoint_hour),
    ):
        if moved:
            cost += moved / GIB * per_gb + usage.route_h * per_hour
    return cost


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
