"""Google Cloud Storage's language, where it is not S3's.

Its XML API has S3's requests, listings and uploads in parts, and headers of its own. Each write
gives an object another generation, which conditions name: here ``StoredObject.version``, as the
generation of a keystream is something else.

Google Cloud Storage documentation, "XML API overview", "HTTP headers and query string parameters
for XML API" and "Request preconditions".
"""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote

from serverless_bench.lab.loopback.s3 import Element, S3Error, S3Request

_IF_GENERATION: Final = "x-goog-if-generation-match"
_COPY_SOURCE: Final = "x-goog-copy-source"
_CONDITIONAL: Final = frozenset({"copy", "delete", "get", "head", "put"})
"""Requests that Google documents this condition for; it has none for uploads in parts."""
_CONDITION: Final = re.compile(r"(x-goog-(copy-source-)?)?if-.*")


def operation(request: S3Request) -> str:
    """Return the operation, in the words of ``S3Request.operation``, or ``copy``.

    Raises
    ------
    S3Error
        If it is one that this server does not know, or has a condition that it would not check.
    """
    name = request.operation()
    if _COPY_SOURCE in request.headers:
        name = "copy" if name == "put" else ""
    conditions = {header for header in request.headers if _CONDITION.fullmatch(header)}
    known = {_IF_GENERATION} if name in _CONDITIONAL else set()
    if not name or conditions - known:
        raise S3Error(501, "NotImplemented", "the loopback store does not do this")
    return name


def required_version(request: S3Request) -> int | None:
    """Return the version that the object has to have; None for any.

    Raises
    ------
    S3Error
        If that is no number.
    """
    text = request.headers.get(_IF_GENERATION)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal()):
        raise S3Error(400, "InvalidArgument", f"{_IF_GENERATION} is no number")
    return int(text)


def copy_source(request: S3Request) -> tuple[str, str]:
    """Return the bucket and the key that are to be copied."""
    bucket, _, key = request.headers[_COPY_SOURCE].removeprefix("/").partition("/")
    return unquote(bucket), unquote(key)


def version_headers(version: int, size: int) -> Mapping[str, str]:
    """Return what Google says of an object in headers of its own."""
    return {
        "x-goog-generation": str(version),
        # Of the metadata, which nobody changes here.
        "x-goog-metageneration": "1",
        "x-goog-stored-content-length": str(size),
    }


def version_elements(version: int) -> list[Element]:
    """Return the same as a listing has it."""
    return [("Generation", str(version)), ("MetaGeneration", "1")]
