"""Prices of a region, from AWS's price list: of the user's account, or of offer files.

Products are found by their usage types, which begin with a code of their region, as in
``EUC1-Requests-Tier1`` (Amazon S3 user guide, "Understanding your AWS billing and usage reports").
"""

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from statistics import multimode
from typing import Any, Final

from botocore.exceptions import UnknownRegionError

from serverless_bench.base.errors import UsageError
from serverless_bench.base.user_files import parse_toml, read_text, refusing
from serverless_bench.clients.aws_credentials import open_session
from serverless_bench.features.aws.client import explained, open_client
from serverless_bench.features.cost.places import currency_of
from serverless_bench.features.cost.prices import DEFAULT_REGION, check_currency, price_text

_USAGE: Final[Mapping[str, Mapping[str, str]]] = {
    "AWSLambda": {
        "lambda.arm64_gb_s": "Lambda-GB-Second-ARM",
        "lambda.x86_64_gb_s": "Lambda-GB-Second",
        "lambda.request": "Request",
    },
    "AmazonS3": {
        "s3.put": "Requests-Tier1",
        "s3.get": "Requests-Tier2",
        "s3.storage_gb_month": "TimedStorage-ByteHrs",
        "express.put": "Requests-XZ-Tier1",
        "express.get": "Requests-XZ-Tier2",
        "express.storage_gb_month": "TimedStorage-XZ-ByteHrs",
        "express.upload_gb": "Upload-XZ",
        "express.retrieval_gb": "Retrieval-XZ",
    },
    "awskms": {"kms.request": "KMS-Requests"},
    "AmazonCloudWatch": {"logs.ingest_gb": "DataProcessing-Bytes"},
    "AmazonEC2": {"network.nat_gb": "NatGateway-Bytes"},
    "AWSDataTransfer": {
        # There is a product for each destination; the most frequent price is used.
        "network.cross_region_gb": "[A-Z0-9]+-AWS-Out-Bytes",
        "network.internet_gb": "DataTransfer-Out-Bytes",
    },
}
"""Usage types by service and by figure of a price file, as regular expressions."""
_FILTERS: Final = {"AmazonEC2": {"productFamily": "NAT Gateway"}}
"""Filters for a service with about a hundred thousand products in each region."""
_PLACE: Final = {"AWSDataTransfer": "fromRegionCode"}
"""Attribute with the region of a product, if it is not ``regionCode``."""
_MOST_BYTES: Final = 64 << 20
"""Maximum size of an offer file; except for AmazonEC2, a region has a few megabytes."""

_Product = tuple[str, str, Mapping[str, Any], Mapping[str, Any]]
"""A product of a price list: its service, the day of the list, attributes, and terms on demand."""


def regional_prices(region: str, offers: Sequence[Path] = ()) -> tuple[str, list[str]]:
    """Return the prices of AWS in a region.

    Parameters
    ----------
    region
        Region of AWS.
    offers
        Offer files of services; if empty, the prices come from ``pricing:GetProducts``.

    Returns
    -------
    str, list of str
        The text of a price file, and the names of the prices that the price list lacks: they are
        those of us-east-1.

    Raises
    ------
    UsageError
        If there is no such region, AWS bills it in a currency other than dollars, a file is not an
        offer file, or prices of Lambda or S3 are missing.
    ExecutorError
        If AWS does not respond, or denies the request.
    """
    _check_region(region)
    check_currency(region, currency_of(region) or "USD")
    amounts: dict[str, list[float]] = defaultdict(list)
    sources: dict[str, str] = {}
    days = [""]
    try:
        for product in chain.from_iterable(map(_of_file, offers)) if offers else _ask(region):
            service, day, attributes, terms = product
            for name in _figures(region, service, attributes):
                amounts[name] += _first_tier(region, terms)
                sources[name] = f"AWS price list, {service} of {day}: {attributes['usagetype']}"
                days.append(day)
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as exc:
        raise UsageError(
            f"not a price list of AWS: {type(exc).__name__}: {exc}",
            hint="--file names offer files, index.json of a service and a region",
        ) from exc
    lines = [f"as_of = {json.dumps(max(days))}", f'region = "{region}"', 'currency = "USD"']
    missing = list[str]()
    for section, figures in parse_toml(price_text()).items():
        for key, figure in figures.items() if isinstance(figures, Mapping) else ():
            name, amount = f"{section}.{key}", figure["price"]
            source = f"of {DEFAULT_REGION}: {figure['source']}"
            if amounts[name]:
                amount, source = max(multimode(amounts[name])), sources[name]
            else:
                missing.append(name)
            lines.append(f"{name} = {{ price = {amount!r}, source = {json.dumps(source)} }}")
    if lacking := [name for name in missing if name.startswith(("lambda.", "s3."))]:
        raise UsageError(
            f"the price list has no {', '.join(lacking)} of {region}",
            hint="check `region`; --file once for each service, at least AWSLambda and AmazonS3",
        )
    return "\n".join([*lines, ""]), missing


def _check_region(region: str) -> None:
    """Raise an error for a name that no partition of AWS can have for a region."""
    try:
        open_session().get_partition_for_region(region)
    except UnknownRegionError as exc:
        hint = "name one as AWS does, as in eu-west-1"
        raise UsageError(f"AWS has no region {region!r}", hint=hint) from exc


def _figures(region: str, service: str, attributes: Mapping[str, Any]) -> list[str]:
    """Return the names of the prices that a product defines in the region."""
    prefix = f"([A-Z]+[0-9]*-|{re.escape(region)}-)?"
    return [
        name
        for name, usage in _USAGE.get(service, {}).items()
        if attributes.get(_PLACE.get(service, "regionCode")) == region
        and re.fullmatch(prefix + usage, attributes["usagetype"], re.ASCII)
    ]


def _first_tier(region: str, terms: Mapping[str, Any]) -> list[float]:
    """Return the price of the first tier that is not free; empty if there is none."""
    tiers = list[tuple[float, float]]()
    for term in terms.values():
        for tier in term["priceDimensions"].values():
            for currency, amount in tier["pricePerUnit"].items():
                check_currency(region, currency)
                tiers.append((float(tier["beginRange"]), float(amount)))
    return [amount for _, amount in sorted(tiers) if 0 < amount < math.inf][:1]


def _ask(region: str) -> Iterator[_Product]:
    # Few regions answer, but each of them for all.
    with (
        closing(open_client("pricing", region=DEFAULT_REGION)) as client,
        explained("pricing:GetProducts"),
    ):
        for service in _USAGE:
            wanted = {_PLACE.get(service, "regionCode"): region, **_FILTERS.get(service, {})}
            pages = client.get_paginator("get_products").paginate(
                ServiceCode=service,
                Filters=[{"Type": "TERM_MATCH", "Field": n, "Value": v} for n, v in wanted.items()],
                FormatVersion="aws_v1",
            )
            for offer in map(json.loads, pages.search("PriceList[]")):
                product, terms = offer["product"], offer["terms"].get("OnDemand", {})
                yield service, offer["publicationDate"][:10], product["attributes"], terms


def _of_file(path: Path) -> Iterator[_Product]:
    with refusing(path, "offer file"):
        offer = json.loads(read_text(path, most_bytes=_MOST_BYTES))
    day, terms = offer["publicationDate"][:10], offer["terms"]["OnDemand"]
    for sku, product in offer["products"].items():
        yield offer["offerCode"], day, product["attributes"], terms.get(sku, {})
