"""AWS's price list, as GetProducts and offer files have it: recorded examples of three regions.

The shape is that of the AWS Price List API's documentation and of public offer files of 2026; the
amounts are those that AWS published for these regions, and serve as examples only.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import botocore.session
from botocore.validate import ParamValidator

DAY: Final = "2026-08-31"
PAGE: Final = 3
"""Products on a page, so that each service has several."""
CODES: Final = {"us-east-1": "", "eu-central-1": "EUC1-", "ap-south-1": "APS3-", "cn-north-1": ""}
PRICES: Final = {
    "us-east-1": {
        "arm": "0.0000133334",
        "x86": "0.0000166667",
        "call": "0.0000002",
        "put": "0.000005",
        "get": "0.0000004",
        "month": "0.023",
        "logs": "0.50",
        "nat": "0.045",
        "region": "0.02",
        "internet": "0.09",
    },
    "eu-central-1": {
        "arm": "0.0000133334",
        "x86": "0.0000166667",
        "call": "0.0000002",
        "put": "0.0000054",
        "get": "0.00000043",
        "month": "0.0245",
        "logs": "0.63",
        "nat": "0.052",
        "region": "0.02",
        "internet": "0.09",
    },
    "ap-south-1": {
        "arm": "0.0000133334",
        "x86": "0.0000166667",
        "call": "0.0000002",
        "put": "0.000005",
        "get": "0.0000004",
        "month": "0.025",
        "logs": "0.67",
        "nat": "0.056",
        "region": "0.086",
        "internet": "0.1093",
    },
}


def products(region: str, currency: str = "USD") -> Iterator[dict[str, Any]]:
    """Yield products of a region, including some that must be ignored."""
    code, price = CODES[region], PRICES.get(region, PRICES["us-east-1"])
    for service, usage, *tiers in (
        ("AWSLambda", f"{code}Lambda-GB-Second", price["x86"], "0.0000150000"),
        ("AWSLambda", f"{code}Lambda-GB-Second-ARM", price["arm"], "0.0000120001"),
        ("AWSLambda", f"{code}Request", price["call"]),
        ("AWSLambda", f"{code}Lambda-Provisioned-GB-Second", "0.0000041667"),
        ("AmazonS3", f"{code}Requests-Tier1", price["put"]),
        ("AmazonS3", f"{code}Requests-Tier2", price["get"]),
        ("AmazonS3", f"{code}Requests-GLACIER-Tier1", "0.00003"),
        ("AmazonS3", f"{code}Tables-Requests-Tier1", "0.1"),
        ("AmazonS3", f"{code}TimedStorage-ByteHrs", price["month"], "0.022", "0.021"),
        ("awskms", f"{region}-KMS-Requests", "0.000003"),
        ("awskms", f"{region}-KMS-Requests-Asymmetric", "0.000015"),
        ("AmazonCloudWatch", f"{code or 'USE1-'}DataProcessing-Bytes", price["logs"]),
        ("AmazonEC2", f"{code}NatGateway-Bytes", price["nat"]),
        ("AWSDataTransfer", f"{code}DataTransfer-Out-Bytes", "0", price["internet"], "0.085"),
        ("AWSDataTransfer", f"{code or 'USE1-'}EUN1-AWS-Out-Bytes", price["region"]),
        ("AWSDataTransfer", f"{code or 'USE1-'}CPT-AWS-Out-Bytes", price["region"]),
        ("AWSDataTransfer", f"{code or 'USE1-'}CNN1-AWS-Out-Bytes", "0.147"),
    ):
        yield _product(service, region, usage, tiers, currency)
    # The free tier is of no region.
    yield _product("AWSLambda", "", "Global-Request", ["0.0000000001"], currency)


def _product(
    service: str, region: str, usage: str, tiers: list[str], currency: str
) -> dict[str, Any]:
    place = "fromRegionCode" if service == "AWSDataTransfer" else "regionCode"
    family = {"productFamily": "NAT Gateway"} if service == "AmazonEC2" else {}
    sku = usage.upper()
    dimensions = {
        f"{sku}.T.{number}": {
            "unit": "Requests",
            "beginRange": str(number * 100),
            "endRange": "Inf",
            "pricePerUnit": {currency: amount},
        }
        for number, amount in reversed([*enumerate(tiers)])
    }
    term = {"offerTermCode": "T", "sku": sku, "priceDimensions": dimensions, "termAttributes": {}}
    return {
        "product": {
            "sku": sku,
            **family,
            "attributes": {"servicecode": service, place: region, "usagetype": usage},
        },
        "serviceCode": service,
        "terms": {"OnDemand": {f"{sku}.T": term}},
        "version": "20260831092225",
        "publicationDate": f"{DAY}T09:22:25Z",
    }


def offers(*documents: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the offer file of each service that has some of the products."""
    for service in dict.fromkeys(one["serviceCode"] for one in documents):
        own = [one for one in documents if one["serviceCode"] == service]
        skus = {one["product"]["sku"]: one for one in own}
        yield {
            "formatVersion": "v1.0",
            "offerCode": service,
            "publicationDate": own[0]["publicationDate"],
            "products": {sku: one["product"] for sku, one in skus.items()},
            "terms": {"OnDemand": {sku: one["terms"]["OnDemand"] for sku, one in skus.items()}},
        }


def _answer(asked: dict[str, Any], documents: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return a page of products; None for a request that botocore's model does not have."""
    model = botocore.session.Session().get_service_model("pricing")
    operation = model.operation_model("GetProducts")
    assert operation.input_shape is not None
    if ParamValidator().validate(asked, operation.input_shape).has_errors():
        return None
    wanted = {one["Field"]: one["Value"] for one in asked["Filters"]}
    wanted["servicecode"] = asked["ServiceCode"]
    fitting = []
    for one in documents:
        values = {**one["product"], **one["product"]["attributes"]}
        if all(values.get(field) == value for field, value in wanted.items()):
            fitting.append(json.dumps(one))
    first = int(asked.get("NextToken", 0))
    page = {"FormatVersion": "aws_v1", "PriceList": fitting[first : first + PAGE]}
    return page | ({"NextToken": str(first + PAGE)} if first + PAGE < len(fitting) else {})


@contextmanager
def price_service(*documents: dict[str, Any]) -> Iterator[str]:
    """Serve GetProducts for the length of a block, and yield its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            is_known = self.headers["X-Amz-Target"] == "AWSPriceListService.GetProducts"
            page = _answer(asked, [*documents]) if is_known else None
            body = json.dumps(page or {"__type": "ValidationException"}).encode()
            self.send_response(200 if page else 400)
            self.send_header("Content-Type", "application/x-amz-json-1.1")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
