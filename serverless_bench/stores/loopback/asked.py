"""One request, taken apart: which bucket, which key, which of S3's operations."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, unquote

from serverless_bench.stores.loopback.answers import S3Error

STATISTICS: Final = "/-/statistics"
"""A bucket's name has three characters at least, so this is none."""

_KNOWN: Final = frozenset(
    {"continuation-token", "delete", "encoding-type", "fetch-owner", "key-marker", "list-type"}
    | {"location", "marker", "max-keys", "max-uploads", "partNumber", "prefix", "start-after"}
    | {"upload-id-marker", "uploadId", "uploads", "x-id"}
)
"""Query parameters that are understood; those that begin with X-Amz- sign a request."""

_ON_KEY: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "DELETE": (("uploadId", "abort_multipart"), ("", "delete")),
    "GET": (("uploadId", ""), ("partNumber", ""), ("", "get")),
    "HEAD": (("partNumber", ""), ("", "head")),
    "POST": (("uploads", "create_multipart"), ("uploadId", "complete_multipart")),
    "PUT": (("uploadId", "upload_part"), ("", "put")),
}
_ON_BUCKET: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "DELETE": (("", "delete_bucket"),),
    "GET": (("location", "get_location"), ("uploads", "list_uploads"), ("", "list_objects")),
    "HEAD": (("", "head_bucket"),),
    "POST": (("delete", "delete_objects"),),
    "PUT": (("", "create_bucket"),),
}
"""By method, what the first parameter that is there asks for."""

_RANGE: Final = re.compile(r"bytes=(\d*)-(\d*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What one request asks for."""

    method: str
    path: str
    bucket: str
    key: str
    """'' for a request about a bucket."""
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """Names in lower case."""

    @property
    def part(self) -> int | None:
        """Number of the part, from 1; None if there is none."""
        text = self.query.get("partNumber", "")
        return int(text) if text.isdecimal() else None

    @property
    def writes(self) -> bool:
        """Whether the request counts as one of S3's 3,500 writes per second."""
        return self.method not in {"GET", "HEAD"}

    @property
    def function(self) -> str | None:
        """Name of the function that asks, if its client says it."""
        found = re.search(r"\bsbench-worker/(\S+)", self.headers.get("user-agent", ""))
        return found[1] if found else None

    def operation(self) -> str:
        """Return the operation, in the words of ``record.Attempt.request`` where it has one.

        Raises
        ------
        S3Error
            If it is one that this server does not know.
        """
        unknown = [name for name in self.query if name not in _KNOWN and name[:6] != "X-Amz-"]
        if not self.query.get("delimiter"):
            # minio-py names it in every listing, also when there is none.
            unknown = [name for name in unknown if name != "delimiter"]
        table = _ON_KEY if self.key else _ON_BUCKET
        if not self.bucket:
            table = {"GET": (("", "list_buckets"),)}
        choices = table.get(self.method, ())
        found = next((name for flag, name in choices if not flag or flag in self.query), "")
        if unknown or not found or "x-amz-copy-source" in self.headers:
            raise S3Error(501, "NotImplemented", "the loopback store does not do this")
        return found

    def extent(self, size: int) -> tuple[int, int] | None:
        """Return the range ``[first, end)`` that is asked for; None for the whole object.

        Raises
        ------
        S3Error
            If the object has no byte in it.
        """
        match = _RANGE.fullmatch(self.headers.get("range", "").replace(" ", ""))
        # Several ranges, or something else: S3 and RFC 9110 then send the whole object.
        if match is None or not (match[1] or match[2]):
            return None
        if match[1]:
            first, end = int(match[1]), int(match[2]) + 1 if match[2] else size
        else:
            first, end = max(0, size - int(match[2])), size
        if first >= size or end <= first:
            raise S3Error(416, "InvalidRange", "the requested range is not satisfiable")
        return first, min(end, size)


def take_apart(method: str, target: str, headers: Mapping[str, str]) -> Asked:
    """Return what a request line and its headers ask for; the bucket stands in the path."""
    path, _, query = target.partition("?")
    bucket, _, key = path.removeprefix("/").partition("/")
    return Asked(
        method=method,
        path=path,
        bucket=unquote(bucket),
        key=unquote(key),
        query=dict(parse_qsl(query, keep_blank_values=True)),
        headers=headers,
    )
