"""Shared parts of the clients that build S3 requests and parse responses themselves.

XML input is untrusted. S3 sends no document type, no NUL and no more than some ten thousand tags in
one document; a document that exceeds this is rejected before parsing. Expat limits the rest: it
opens no other file and stops entity expansion
(``XML_SetBillionLaughsAttackProtectionMaximumAmplification``).
"""

import hashlib
import xml.etree.ElementTree as ET
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple
from urllib.parse import SplitResult, quote, unquote_plus, urlencode, urlsplit

from serverless_bench.base.errors import BadRequest, BadResponse, OperationError
from serverless_bench.base.units import whole_number
from serverless_bench.clients.base import Exchange, Source
from serverless_bench.clients.library import K, LibraryClient, check_page
from serverless_bench.clients.s3_errors import s3_error
from serverless_bench.job.endpoint import is_directory_bucket
from serverless_bench.job.target import Target, Transfer

METHODS: Final = {
    "AbortMultipartUpload": "DELETE",
    "CompleteMultipartUpload": "POST",
    "CopyObject": "PUT",
    "CreateBucket": "PUT",
    "CreateMultipartUpload": "POST",
    "CreateSession": "GET",
    "DeleteObject": "DELETE",
    "DeleteObjects": "POST",
    "GetBucketEncryption": "GET",
    "GetBucketLifecycleConfiguration": "GET",
    "GetBucketReplication": "GET",
    "GetBucketVersioning": "GET",
    "GetObjectLockConfiguration": "GET",
    "GetObject": "GET",
    "GetPublicAccessBlock": "GET",
    "HeadBucket": "HEAD",
    "HeadObject": "HEAD",
    "ListMultipartUploads": "GET",
    "ListObjectVersions": "GET",
    "ListObjectsV2": "GET",
    "PutObject": "PUT",
    "UploadPart": "PUT",
}
"""HTTP method by operation of the S3 API."""
NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
_SSE: Final = ("x-amz-server-side-encryption", "x-amz-server-side-encryption-aws-kms-key-id")
_MOST_TAGS: Final = 100_000
"""A page of 1,000 keys has 26,000 tags if it contains every element that S3 defines for a key."""
_REFUSED: Final = (b"<!DOCTYPE", b"<!ENTITY", b"\0")
"""A NUL byte indicates UTF-16, which would hide the other two."""
_NO_ANSWERS: Final = frozenset({"html", "HTML"})
"""Root elements of documents from proxies and other servers that respond instead of the store."""


class S3Response(NamedTuple):
    """A successful response."""

    status: int
    headers: Mapping[str, str]
    """Header names are lower case."""
    text: bytes
    """The body, unless a sink consumed it."""


class S3HttpClient(LibraryClient[K]):
    """A client that builds S3 requests itself; subclasses implement the transport."""

    def __init__(self, target: Target, transfer: Transfer, *, called: str = "") -> None:
        self._next_pages: dict[tuple[str, str], str] = {}
        """Tokens of the following pages of directory buckets, by prefix and last key."""
        self._encryption = encryption(target.sse)
        super().__init__(target, transfer, called=called)

    def _send(
        self,
        operation: str,
        key: str,
        exchange: Exchange,
        *,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: Source | bytes = b"",
    ) -> S3Response:
        """Send a request, an operation of ``METHODS``, and return the response.

        Raises
        ------
        OperationError
            If the request fails, or the response is an error.
        """
        raise NotImplementedError

    def _path(self, key: str, query: str = "") -> str:
        path = quote("/" + key, safe="/~")
        if not self._virtual:
            path = f"/{self._bucket}{path}"
        path = self._endpoint.path + path
        return f"{path}?{query}" if query else path

    def create_multipart(self, key: str, exchange: Exchange) -> str:
        response = self._send(
            "CreateMultipartUpload", key, exchange, query="uploads=", headers=self._encryption
        )
        if upload_id := element(response.text, "UploadId"):
            return upload_id
        raise BadResponse("the store sent no UploadId")

    def upload_part(
        self, key: str, upload_id: str, number: int, source: Source, exchange: Exchange
    ) -> str:
        query = f"partNumber={number}&{_upload(upload_id)}"
        response = self._send("UploadPart", key, exchange, query=query, body=source)
        return response.headers.get("etag", "")

    def complete_multipart(
        self, key: str, upload_id: str, etags: Sequence[str], exchange: Exchange
    ) -> None:
        query, body = _upload(upload_id), completion(enumerate(etags, start=1))
        response = self._send("CompleteMultipartUpload", key, exchange, query=query, body=body)
        document(response.text, "CompleteMultipartUploadResult", "the confirmation of the upload")

    def abort_multipart(self, key: str, upload_id: str, exchange: Exchange) -> None:
        self._send("AbortMultipartUpload", key, exchange, query=_upload(upload_id))

    def head(self, key: str, exchange: Exchange) -> int:
        response = self._send("HeadObject", key, exchange)
        if (number := whole_number(response.headers.get("content-length", ""))) is None:
            raise BadResponse("the store sent no Content-Length", status=response.status)
        return number

    def list_keys(self, prefix: str, after: str, exchange: Exchange) -> tuple[list[str], bool]:
        """Return up to 1,000 keys after ``after``, and whether the listing continues."""
        return self._list(prefix, after, exchange)[1:]

    def _list(
        self, prefix: str, after: str, exchange: Exchange
    ) -> tuple[ET.Element, list[str], bool]:
        """Return a page of a listing, the keys, and whether the listing continues."""
        wanted = {"list-type": "2", "encoding-type": "url", "prefix": prefix}
        if not is_directory_bucket(self._bucket):
            wanted["start-after"] = after
        elif after:
            # Such a bucket lists in no order: a page can only continue the preceding one.
            wanted["continuation-token"] = self._next_pages.get((prefix, after), "")
            if not wanted["continuation-token"]:
                raise BadRequest(
                    "a directory bucket lists in no order: a listing cannot start after a key"
                )
        query = urlencode(wanted, safe="", quote_via=quote)
        response = self._send("ListObjectsV2", "", exchange, query=query)
        self._next_pages.pop((prefix, after), None)
        listed = document(response.text, "ListBucketResult", "the list of keys")
        keys = texts(listed, "Key")
        if "url" in texts(listed, "EncodingType"):
            # A store can omit the element to signal that it ignored the requested encoding.
            keys = [unquote_plus(key) for key in keys]
        is_truncated = "true" in texts(listed, "IsTruncated")
        check_page(keys, prefix, more=is_truncated)
        if is_truncated:
            self._next_pages[prefix, keys[-1]] = first_text(listed, "NextContinuationToken")
        return listed, keys, is_truncated

    def delete(self, key: str, exchange: Exchange) -> object:
        return self._send("DeleteObject", key, exchange)

    def delete_many(self, keys: Sequence[str], exchange: Exchange) -> None:
        root = ET.Element("Delete")
        ET.SubElement(root, "Quiet").text = "true"
        for key in keys:
            ET.SubElement(ET.SubElement(root, "Object"), "Key").text = key
        body = ET.tostring(root)
        # S3 requires a checksum here only (Amazon S3 API reference, "DeleteObjects").
        digest = b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
        response = self._send(
            "DeleteObjects",
            "",
            exchange,
            query="delete=",
            headers={"content-md5": digest},
            body=body,
        )
        check_success(response.text)

    def copy(self, source: str, key: str, exchange: Exchange) -> None:
        headers = {
            "x-amz-copy-source": quote(f"{self._bucket}/{source}", safe="/"),
            **self._encryption,
        }
        response = self._send("CopyObject", key, exchange, headers=headers)
        document(response.text, "CopyObjectResult", "the confirmation of the copy")


def encryption(sse: str, names: tuple[str, str] = _SSE) -> Mapping[str, str]:
    """Return what a request for a new object needs, empty without an encryption.

    Parameters
    ----------
    sse
        Same as in ``Target``.
    names
        How a library calls the algorithm and the key; by default the headers of S3.
    """
    other, kms, key = sse.partition("aws:kms")
    return {
        name: value for name, value in zip(names, (other or kms, key[1:]), strict=True) if value
    }


def byte_range(offset: int, length: int | None) -> Mapping[str, str]:
    """Return the header that requests a range of an object; empty for the full object."""
    return NO_HEADERS if length is None else {"range": f"bytes={offset}-{offset + length - 1}"}


def _host_of(url: str) -> str:
    try:
        return urlsplit(url).netloc
    except ValueError:
        return ""


def _upload(upload_id: str) -> str:
    return f"uploadId={quote(upload_id, safe='')}"


def response_error(
    status: int, text: bytes, headers: Mapping[str, str], endpoint: SplitResult, bucket: str
) -> OperationError:
    """Return the error for an S3 response.

    Parameters
    ----------
    status, text, headers
        The response; header names are lower case.
    endpoint, bucket
        Destination of the request.
    """
    # `job.endpoint.redirected` decides whether to follow the redirect.
    hosts = (element(text, "Endpoint"), _host_of(headers.get("location", "")))
    host = next(filter(None, hosts), "").removeprefix(bucket + ".")
    return s3_error(
        status,
        element(text, "Code"),
        element(text, "Message"),
        headers,
        region=element(text, "Region") or None,
        endpoint=f"{endpoint.scheme}://{host}" if host else None,
    )


def completion(parts: Iterable[tuple[int, str]]) -> bytes:
    """Return the body of the request that completes an upload of parts: numbers and ETags."""
    root = ET.Element("CompleteMultipartUpload")
    for number, etag in parts:
        part = ET.SubElement(root, "Part")
        ET.SubElement(part, "PartNumber").text = str(number)
        ET.SubElement(part, "ETag").text = etag
    return ET.tostring(root)


def parse_xml(text: bytes) -> ET.Element | None:
    """Return the document in a body; None if it is not XML that S3 would send."""
    start = text.lstrip()
    is_plain = start.startswith(b"<") and not any(refused in start for refused in _REFUSED)
    if not is_plain or start.count(b"<") > _MOST_TAGS:
        return None
    try:
        return ET.fromstring(start)  # noqa: S314 - see above
    except (ET.ParseError, LookupError, ValueError):
        # The latter two are raised for invalid encodings.
        return None


def element(text: bytes, name: str) -> str:
    """Return the text of the first element called ``name`` in any namespace, or ''."""
    root = parse_xml(text)
    return "" if root is None else first_text(root, name)


def first_text(root: ET.Element, name: str) -> str:
    """Return the first of ``texts``, or ''."""
    return next(iter(texts(root, name)), "")


def texts(root: ET.Element, name: str) -> list[str]:
    """Return the texts of all elements called ``name`` in any namespace of a document."""
    return [child.text or "" for child in root.iter() if local_name(child) == name]


def document(text: bytes, name: str, what: str) -> ET.Element:
    """Return the document of a successful response.

    Parameters
    ----------
    text
        Body of the response.
    name
        Name of the root element.
    what
        Information that the document should contain, for the message.

    Raises
    ------
    OperationError
        If the body is another document, an error, or empty.
    """
    root = parse_xml(text)
    if root is None or local_name(root) != name:
        check_success(text)
        raise BadResponse(f"the store's response lacks {what}", status=200)
    return root


def check_success(text: bytes) -> None:
    """Check a successful response for an error.

    S3 answers 200 before it has combined parts or copied an object, and also when it deleted only
    some of many objects.

    Raises
    ------
    OperationError
        If the body contains an error, or the document is incomplete.
    """
    if not text.lstrip().startswith(b"<"):
        return
    root = parse_xml(text)
    if root is None or local_name(root) in _NO_ANSWERS:
        raise BadResponse("the store's response is not the XML of S3", status=200)
    codes = texts(root, "Code")
    if codes or local_name(root) == "Error":
        raise s3_error(500, next(iter(codes), ""), first_text(root, "Message"), {})


def local_name(each: ET.Element) -> str:
    """Return an element's name without the namespace."""
    return each.tag.rpartition("}")[2]


@dataclass(frozen=True, slots=True)
class OpenUpload:
    """An upload in parts that is neither complete nor aborted."""

    key: str
    upload_id: str


def uploads_query(prefix: str, after: OpenUpload | None) -> str:
    """Return the query of a listing of the uploads below ``prefix`` and after ``after``."""
    marker = after and {"key-marker": after.key, "upload-id-marker": after.upload_id}
    return sorted_query({"uploads": "", "prefix": prefix, **(marker or {})})


def read_uploads(text: bytes, prefix: str) -> tuple[list[OpenUpload], OpenUpload | None]:
    """Return a page of open uploads, and the last upload before the next page.

    Raises
    ------
    BadResponse
        If the text is not such a page.
    """
    listed = document(text, "ListMultipartUploadsResult", "the list of open uploads")
    uploads = [
        OpenUpload(*(first_text(entry, name) for name in ("Key", "UploadId")))
        for entry in listed
        if local_name(entry) == "Upload"
    ]
    check_page([upload.key for upload in uploads], prefix, more=False)
    if "true" not in texts(listed, "IsTruncated"):
        return uploads, None
    names = ("NextKeyMarker", "NextUploadIdMarker")
    return uploads, OpenUpload(*(first_text(listed, name) for name in names))


def sorted_query(wanted: Mapping[str, str]) -> str:
    """Return parameters sorted by name, as required by a signature."""
    return urlencode(sorted(wanted.items()), safe="", quote_via=quote)
