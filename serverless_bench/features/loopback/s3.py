"""Requests, XML documents and errors of S3 and of Google Cloud Storage.

Google's XML API has S3's requests, listings and multipart uploads, and headers in addition. Each
write gives an object a new generation, which conditions refer to. Here this is
``StoredObject.version``, because the generation of a keystream is something different (Google
Cloud Storage documentation, "XML API overview", "HTTP headers and query string parameters for
XML API" and "Request preconditions").
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from typing import Final
from urllib.parse import parse_qsl, quote, unquote

NAMESPACE: Final = "http://s3.amazonaws.com/doc/2006-03-01/"
_DECLARATION: Final = b'<?xml version="1.0" encoding="UTF-8"?>\n'

Element = tuple[str, "str | Sequence[Element]"]
"""A name with a text, or with child elements."""


@dataclass(eq=False)
class S3Error(Exception):
    """An error response, as in the Amazon S3 API reference, "Error responses"."""

    status: int
    code: str
    message: str


def xml(name: str, children: Sequence[Element], *, namespace: str = NAMESPACE) -> bytes:
    """Return an XML document."""
    root = ET.Element(name, {"xmlns": namespace} if namespace else {})
    _fill(root, children)
    return _DECLARATION + ET.tostring(root)


def _fill(parent: ET.Element, children: Sequence[Element]) -> None:
    for name, inside in children:
        child = ET.SubElement(parent, name)
        if isinstance(inside, str):
            child.text = inside
        else:
            _fill(child, inside)


def error_xml(error: S3Error, resource: str, request_id: str) -> bytes:
    """Return the body of an error response."""
    return xml(
        "Error",
        [
            ("Code", error.code),
            ("Message", error.message),
            ("Resource", resource),
            ("RequestId", request_id),
        ],
        namespace="",
    )


def parse_xml(body: bytes) -> ET.Element:
    """Return the root element of a request's document.

    Raises
    ------
    S3Error
        If the body is not XML.
    """
    try:
        # Expat bounds the cost of a document, and the length of the body is bounded, too.
        return ET.fromstring(body)  # noqa: S314
    except ET.ParseError as exc:
        raise S3Error(400, "MalformedXML", f"the body is not XML: {exc}") from None


def texts(root: ET.Element, item: str, *names: str) -> Iterable[tuple[str, ...]]:
    """Yield the texts of the elements ``names`` in each element ``item``, in any namespace."""
    for element in root.iter():
        if _plain(element) == item:
            text_by_name = {_plain(child): child.text or "" for child in element}
            yield tuple(text_by_name.get(name, "") for name in names)


def _plain(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]


def spelled(key: str, encoding: str) -> str:
    """Return a key in the encoding of a listing: XML cannot hold all characters."""
    return quote(key, safe="/") if encoding == "url" else key


STATISTICS: Final = "/-/statistics"
"""Path of the statistics: the name of a bucket has at least three characters."""

_SUPPORTED: Final = frozenset(
    {"continuation-token", "delete", "encoding-type", "fetch-owner", "key-marker", "list-type"}
    | {"location", "marker", "max-keys", "max-uploads", "partNumber", "prefix", "session"}
    | {"start-after", "upload-id-marker", "uploadId", "uploads", "version-id-marker"}
    | {"versions", "x-id"}
)
"""Supported query parameters; those that begin with X-Amz- are part of a signature."""

_ON_KEY: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "DELETE": (("uploadId", "abort_multipart"), ("", "delete")),
    "GET": (("uploadId", ""), ("partNumber", ""), ("", "get")),
    "HEAD": (("partNumber", ""), ("", "head")),
    "POST": (("uploads", "create_multipart"), ("uploadId", "complete_multipart")),
    "PUT": (("uploadId", "upload_part"), ("", "put")),
}
_ON_BUCKET: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "DELETE": (("", "delete_bucket"),),
    "GET": (
        ("session", "create_session"),
        ("location", "get_location"),
        ("uploads", "list_uploads"),
        ("versions", "list_versions"),
        ("", "list_objects"),
    ),
    "HEAD": (("", "head_bucket"),),
    "POST": (("delete", "delete_objects"),),
    "PUT": (("", "create_bucket"),),
}
"""Operations by method; the first parameter that is present selects the operation."""

_RANGE: Final = re.compile(r"bytes=(\d*)-(\d*)")

_IF_GENERATION: Final = "x-goog-if-generation-match"
_COPY_SOURCE: Final = "x-goog-copy-source"
_S3_COPY_SOURCE: Final = "x-amz-copy-source"
_CONDITIONAL: Final = frozenset({"copy", "delete", "get", "head", "put"})
"""Requests with this condition in Google's documentation; multipart uploads do not have it."""
IF_SOURCE: Final = "x-amz-copy-source-if-match"
"""Condition on the entity tag of the source of a copy."""
_S3_COPY: Final = re.compile("x-amz-copy-source-.*")
_CONDITION: Final = re.compile(r"(x-goog-(copy-source-)?)?if-.*")


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Request:
    """A parsed request."""

    method: str
    path: str
    bucket: str
    key: str
    """'' for a request to a bucket."""
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """Headers by name in lower case."""
    google: bool
    """Whether the request is for Google Cloud Storage."""

    @property
    def part(self) -> int | None:
        """Number of the part, from 1; None for other requests."""
        text = self.query.get("partNumber", "")
        return int(text) if text.isdecimal() else None

    @property
    def writes(self) -> bool:
        """Whether the request counts towards S3's 3,500 writes per second."""
        return self.method not in {"GET", "HEAD"}

    @property
    def function(self) -> str | None:
        """Name of the requesting function, if the client sends it."""
        match = re.search(r"\bsbench-worker/(\S+)", self.headers.get("user-agent", ""))
        return match[1] if match else None

    def operation(self) -> str:
        """Return the operation, named like ``record.Attempt.request`` if there is such a name.

        Raises
        ------
        S3Error
            If this server does not support the operation, or does not check one of Google's
            conditions.
        """
        unknown = [name for name in self.query if name not in _SUPPORTED and name[:6] != "X-Amz-"]
        if not self.query.get("delimiter"):
            # minio-py sends the parameter in all listings, even with no value.
            unknown = [name for name in unknown if name != "delimiter"]
        table = _ON_KEY if self.key else _ON_BUCKET
        if not self.bucket:
            table = {"GET": (("session", "create_session"), ("", "list_buckets"))}
        choices = table.get(self.method, ())
        operation = next((name for flag, name in choices if not flag or flag in self.query), "")
        if self.google:
            if _COPY_SOURCE in self.headers:
                operation = "copy" if operation == "put" else ""
            supported = {_IF_GENERATION} if operation in _CONDITIONAL else set()
            unknown += set(filter(_CONDITION.fullmatch, self.headers)) - supported
        elif _S3_COPY_SOURCE in self.headers:
            operation = "copy" if operation == "put" else ""
            unknown += set(filter(_S3_COPY.fullmatch, self.headers)) - {IF_SOURCE}
        if unknown or not operation:
            raise S3Error(501, "NotImplemented", "the loopback store does not support this request")
        return operation

    def required_version(self) -> int | None:
        """Return the version that Google's condition requires of the object; None for any.

        Raises
        ------
        S3Error
            If the value is not a number.
        """
        text = self.headers.get(_IF_GENERATION)
        if text is None:
            return None
        if not (text.isascii() and text.isdecimal()):
            raise S3Error(400, "InvalidArgument", f"{_IF_GENERATION} is not a number")
        return int(text)

    def copy_source(self) -> tuple[str, str]:
        """Return the bucket and the key of the object to copy."""
        name = _COPY_SOURCE if self.google else _S3_COPY_SOURCE
        bucket, _, key = self.headers[name].removeprefix("/").partition("/")
        return unquote(bucket), unquote(key)

    def extent(self, size: int) -> tuple[int, int] | None:
        """Return the requested range ``[first, end)``; None for the whole object.

        Raises
        ------
        S3Error
            If the object has no byte in the range.
        """
        match = _RANGE.fullmatch(self.headers.get("range", "").replace(" ", ""))
        # Multiple ranges, or a malformed header: S3 and RFC 9110 then send the full object.
        if match is None or not (match[1] or match[2]):
            return None
        if match[1]:
            first, end = int(match[1]), int(match[2]) + 1 if match[2] else size
        else:
            first, end = max(0, size - int(match[2])), size
        if first >= size or end <= first:
            raise S3Error(416, "InvalidRange", "the requested range is not satisfiable")
        return first, min(end, size)


def parse_request(method: str, target: str, headers: Mapping[str, str]) -> S3Request:
    """Parse a request line and the headers; the bucket is the first part of the path."""
    path, _, query = target.partition("?")
    bucket, _, key = path.removeprefix("/").partition("/")
    # S3 has neither bearer tokens nor headers with this prefix.
    bearer = headers.get("authorization", "").partition(" ")[0].lower() == "bearer"
    return S3Request(
        method=method,
        path=path,
        bucket=unquote(bucket),
        key=unquote(key),
        query=dict(parse_qsl(query, keep_blank_values=True)),
        headers=headers,
        google=bearer or any(name.startswith("x-goog-") for name in headers),
    )


def http_date(seconds: float) -> str:
    """Return an instant in the format of HTTP."""
    return formatdate(seconds, usegmt=True)
