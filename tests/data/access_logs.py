"""Requests that a request log saw, as the lines of an S3 server access log or of a table."""

from base64 import b64encode
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING
from urllib.parse import quote
from zlib import compress

import numpy as np

if TYPE_CHECKING:
    from serverless_bench.features.loopback.request_log import StoreRequest

OPERATIONS = {
    "put": "REST.PUT.OBJECT",
    "get": "REST.GET.OBJECT",
    "head": "REST.HEAD.OBJECT",
    "delete": "REST.DELETE.OBJECT",
    "list_objects": "REST.GET.BUCKET",
}
PARTIAL = 206
NO_REQUEST = b64encode(compress(b"[[],[0,0],0,[],[],[],[[],[],[],[],[]]]")).decode()
"""The schedule of a replay without requests."""
WORDS = {"list_objects": "list"}
OWNER = "79a59df900b949e55d96a1e698fbacedfd6e09d98eacf8f8d5218e7cd47ef2be"


def line(
    at: str,
    operation: str,
    key: str,
    *,
    status: int = 200,
    sent: int | str = "-",
    size: int | str = "-",
    query: str = "",
) -> str:
    """Return a line as S3 writes it; the key is escaped there."""
    uri = f'"{operation.split(".")[1]} /bucket/{key}{query} HTTP/1.1"'
    return (
        f"{OWNER} bucket [{at}] 192.0.2.3 arn:aws:iam::111122223333:user/alice 3E57427F33A59F07"
        f' {operation} {key} {uri} {status} - {sent} {size} 17 16 "-" "agent/1.0 x" - hostid'
        " SigV4 ECDHE-RSA-AES128-GCM-SHA256 AuthHeader bucket.s3.amazonaws.com TLSv1.2 - -"
    )


def stamp(ns: int) -> str:
    """Return an instant as access logs have it."""
    seconds = np.datetime64(ns // 10**9, "s").astype(object)
    return f"{seconds:%d/%b/%Y:%H:%M:%S} +0000"


def access_log(requests: "Iterable[StoreRequest]") -> Iterator[str]:
    """Yield the lines of an access log; S3 logs no offset of a range."""
    for request in requests:
        assert request.operation in OPERATIONS, request
        status = request.status or 0
        sent = request.out_bytes if request.operation == "get" else "-"
        size = "-" if request.size is None else request.size
        if request.operation == "put":
            size = request.in_bytes
        key = "-" if request.operation == "list_objects" else quote(request.key)
        operation = OPERATIONS[request.operation]
        yield line(stamp(request.head_ns), operation, key, status=status, sent=sent, size=size)


def table(requests: "Iterable[StoreRequest]") -> Iterator[str]:
    """Yield the lines of a table with everything that a replay repeats."""
    yield "time,op,key,size,offset,length,status"
    for request in requests:
        word, offset, length = WORDS.get(request.operation or "", request.operation), "", ""
        if request.status == PARTIAL:
            word, offset, length = "get_range", str(request.offset), str(request.out_bytes)
        size = request.in_bytes if request.operation == "put" else request.size
        shown = "" if size is None else size
        at = np.datetime64(request.head_ns, "ns")
        yield f"{at}Z,{word},{request.key},{shown},{offset},{length},{request.status}"
