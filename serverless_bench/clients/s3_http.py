"""What clients share that see S3's answers as they are: its XML, and where it sends them."""

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit

from serverless_bench.clients.base import AWS_HOST
from serverless_bench.clients.s3_errors import s3_error
from serverless_bench.errors import OperationError


def element(text: bytes, name: str) -> str:
    """Return the text of the first element called ``name`` in any namespace, or ''."""
    return next(iter(elements(text, name)), "")


def elements(text: bytes, name: str) -> list[str]:
    """Return the texts of all elements called ``name`` in any namespace."""
    if not text.lstrip().startswith(b"<"):
        return []
    try:
        # A store may lie in a benchmark's answer, but Expat bounds what it can cost.
        root = ET.fromstring(text)  # noqa: S314
    except ET.ParseError:
        return []
    return [e.text or "" for e in root.iter() if e.tag.rpartition("}")[2] == name]


def answer_error(
    status: int, text: bytes, headers: Mapping[str, str], endpoint: SplitResult, bucket: str
) -> OperationError:
    """Return the error that an answer of S3 stands for.

    Parameters
    ----------
    status, text, headers
        The answer; header names are lower case.
    endpoint, bucket
        What was asked.
    """
    hosts = (element(text, "Endpoint"), urlsplit(headers.get("location", "")).netloc)
    host = next(filter(None, hosts), "").removeprefix(bucket + ".")
    return s3_error(
        status,
        element(text, "Code"),
        element(text, "Message"),
        headers,
        region=element(text, "Region") or None,
        endpoint=f"{endpoint.scheme}://{host}" if host else None,
    )


def moved_endpoint(url: str, old_region: str, region: str | None, told_url: str | None) -> str:
    """Return where to go on when the store named another region, another endpoint or both.

    On AWS the region alone says where: its name is part of the host's.
    """
    if told_url:
        return told_url
    if region and AWS_HOST in url:
        return url.replace(f".{old_region}.", f".{region}.")
    return url
