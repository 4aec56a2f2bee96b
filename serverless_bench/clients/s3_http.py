"""What clients share that make S3's requests themselves and see its responses: XML, mostly."""

import hashlib
import xml.etree.ElementTree as ET
from base64 import b64encode
from collections.abc import Mapping, Sequence
from urllib.parse import SplitResult, quote, unquote_plus, urlencode, urlsplit

from serverless_bench.clients.base import AWS_HOST
from serverless_bench.clients.s3_errors import s3_error
from serverless_bench.errors import BadResponse, OperationError


def element(text: bytes, name: str) -> str:
    """Return the text of the first element called ``name`` in any namespace, or ''."""
    return next(iter(elements(text, name)), "")


def elements(text: bytes, name: str) -> list[str]:
    """Return the texts of all elements called ``name`` in any namespace."""
    if not text.lstrip().startswith(b"<"):
        return []
    try:
        # A store may lie in a response, but Expat bounds what it can cost.
        root = ET.fromstring(text)  # noqa: S314
    except ET.ParseError:
        return []
    return [e.text or "" for e in root.iter() if e.tag.rpartition("}")[2] == name]


def parts_body(etags: Sequence[str]) -> bytes:
    """Return the body that makes one object of parts; ``etags`` are in part order."""
    root = ET.Element("CompleteMultipartUpload")
    for number, etag in enumerate(etags, start=1):
        part = ET.SubElement(root, "Part")
        ET.SubElement(part, "PartNumber").text = str(number)
        ET.SubElement(part, "ETag").text = etag
    return ET.tostring(root)


def deletion(keys: Sequence[str]) -> tuple[bytes, dict[str, str]]:
    """Return the body that deletes several objects, and the headers that it needs."""
    root = ET.Element("Delete")
    ET.SubElement(root, "Quiet").text = "true"
    for key in keys:
        ET.SubElement(ET.SubElement(root, "Object"), "Key").text = key
    body = ET.tostring(root)
    # S3 asks for a checksum of this one request (Amazon S3 API reference, "DeleteObjects").
    digest = b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
    return body, {"content-md5": digest}


def listing_query(prefix: str, after: str) -> str:
    """Return the query that lists up to a thousand keys behind ``after``."""
    query = {"list-type": "2", "encoding-type": "url", "prefix": prefix, "start-after": after}
    return urlencode(query, safe="", quote_via=quote)


def listed(text: bytes, status: int) -> tuple[list[str], bool]:
    """Return the keys of a response to ``listing_query``, and whether there are more.

    Raises
    ------
    BadResponse
        If it is no XML.
    """
    if not text.lstrip().startswith(b"<"):
        raise BadResponse("the store lists nothing that is XML", status=status)
    keys = [unquote_plus(key) for key in elements(text, "Key")]
    return keys, "true" in elements(text, "IsTruncated")


def check_success(text: bytes) -> None:
    """Look for an error in a response of success.

    S3 answers 200 before it has put parts together or copied an object, and if it deleted
    only some of many.

    Raises
    ------
    OperationError
        If there is one.
    """
    if code := element(text, "Code"):
        raise s3_error(500, code, element(text, "Message"), {})


def response_error(
    status: int, text: bytes, headers: Mapping[str, str], endpoint: SplitResult, bucket: str
) -> OperationError:
    """Return the error that a response of S3 stands for.

    Parameters
    ----------
    status, text, headers
        The response; header names are lower case.
    endpoint, bucket
        Where the request went.
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


def moved_endpoint(url: str, old_region: str, region: str | None, new_url: str | None) -> str:
    """Return where to go on when the store named another region, another endpoint or both.

    On AWS the region alone says where: its name is part of the host's.
    """
    if new_url:
        return new_url
    if region and AWS_HOST in url:
        return url.replace(f".{old_region}.", f".{region}.")
    return url
