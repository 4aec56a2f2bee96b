"""Mutated answers of S3, and mutated records of workers: refused with our own errors, or accepted.

The bytes go through the thin client's own parsers over a pair of real sockets in this process:
a fault in a head, a chunk or a document must give one of our errors.
"""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import orjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from serverless_bench.base.clock import http_date_s, iso_date_s
from serverless_bench.base.errors import OperationError, SbenchError
from serverless_bench.clients.s3_errors import s3_error
from serverless_bench.clients.s3_http import (
    S3Response,
    check_success,
    document,
    element,
    response_error,
)
from serverless_bench.clients.wire.response import Response
from serverless_bench.executors.base import read_record
from serverless_bench.features.express.session import _session
from serverless_bench.features.remote.claims import _is_claim, parse_claim, parse_record
from serverless_bench.features.testing.client_parts import PatientMeter
from serverless_bench.rundir.received import readable_keys
from serverless_bench.rundir.record import Lost, Outcome
from tests.fuzz.mutations import CASES, mutated, mutated_bytes

RECORDED: Final = Path(__file__).parents[1] / "recorded"
few: Final = settings(
    max_examples=CASES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)

HEADS: Final = (
    (
        b'HTTP/1.1 200 OK\r\nContent-Length: 300\r\nETag: "0123"\r\nx-amz-request-id: 4442587F'
        b"\r\nDate: Wed, 12 Oct 2026 17:50:00 GMT"
        b"\r\nContent-Range: bytes 0-299/1000\r\nConnection: close"
    ),
    b"HTTP/1.1 503 Slow Down\r\nTransfer-Encoding: chunked\r\nRetry-After: 3\r\nServer: AmazonS3",
    (
        b"HTTP/1.0 307 Temporary Redirect\r\nLocation: https://b.s3.eu-west-1.amazonaws.com/key"
        b"\r\nx-amz-bucket-region: eu-west-1"
    ),
)
BODIES: Final = (
    (
        b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>PermanentRedirect</Code><Message>The'
        b" bucket is elsewhere</Message><Endpoint>b.s3.eu-west-1.amazonaws.com</Endpoint>"
        b"<Region>eu-west-1</Region></Error>"
    ),
    (
        b'<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name>'
        b"<IsTruncated>true</IsTruncated><Contents><Key>a%2Fb</Key><Size>434234</Size></Contents>"
        b"<NextContinuationToken>1ueGcxLPRx1Tr</NextContinuationToken></ListBucketResult>"
    ),
    (
        b"<ListMultipartUploadsResult><Upload><Key>a</Key><UploadId>X</UploadId></Upload>"
        b"<IsTruncated>true</IsTruncated><NextKeyMarker>a</NextKeyMarker></ListMultipartUploadsResult>"
    ),
    (
        b"<DeleteResult><Deleted><Key>a</Key></Deleted><Error><Key>b</Key><Code>AccessDenied</Code>"
        b"<Message>Access Denied</Message></Error></DeleteResult>"
    ),
    (
        b"<CreateSessionResult><Credentials><AccessKeyId>A</AccessKeyId><SecretAccessKey>S"
        b"</SecretAccessKey><SessionToken>T</SessionToken><Expiration>2026-10-12T17:55:00Z"
        b"</Expiration></Credentials></CreateSessionResult>"
    ),
    b"<CompleteMultipartUploadResult><ETag>&quot;e&quot;</ETag></CompleteMultipartUploadResult>",
)
"""Answers as Amazon's S3 API reference shows them."""


def raises_only_ours(do: Callable[[], object]) -> None:
    try:
        do()
    except SbenchError as exc:
        reported = exc
    else:
        return
    assert str(reported).isprintable() or not isinstance(reported, OperationError)


@few
@given(st.sampled_from(HEADS).flatmap(mutated_bytes), st.sampled_from(["GET", "HEAD", "PUT"]))
def test_heads(data: bytes, method: str) -> None:
    def read() -> None:
        head = Response(data, method)
        assert 100 <= head.status < 600
        assert head.length is None or head.length >= 0
        meter = PatientMeter()
        meter.answered(head.status, head.headers)
        http_date_s(meter.date)
        raise response_error(head.status, b"", head.headers, urlsplit("http://h:1"), "b")

    raises_only_ours(read)


@few
@given(st.sampled_from(BODIES).flatmap(mutated_bytes), st.integers(200, 599))
def test_documents(data: bytes, status: int) -> None:
    for name in ("ListBucketResult", "ListMultipartUploadsResult", "CompleteMultipartUploadResult"):
        raises_only_ours(partial(document, data, name, "what was asked"))
    raises_only_ours(partial(check_success, data))
    raises_only_ours(partial(_session, S3Response(200, {}, data), 0))
    error = response_error(status, data, {}, urlsplit("http://h:1"), "b")
    assert str(error).isprintable()
    assert len(str(error)) <= 500
    iso_date_s(element(data, "Expiration"))


@few
@given(
    st.text(max_size=40),
    st.text(max_size=40),
    st.dictionaries(
        st.sampled_from(["retry-after", "x-amz-bucket-region", "location"]), st.text(max_size=30)
    ),
)
def test_errors(code: str, message: str, headers: dict[str, str]) -> None:
    for status in (200, 301, 400, 503):
        error = s3_error(status, code, message, headers, endpoint=headers.get("location"))
        assert str(error).isprintable()


def _records() -> list[Any]:
    lines = (path.read_bytes().splitlines() for path in sorted(RECORDED.glob("*/records.jsonl")))
    found = (orjson.loads(line) for some in lines for line in some[:2])
    return [line["record"] for line in found if "record" in line]


RECORDS: Final = _records()


@few
@given(st.sampled_from(RECORDS).flatmap(mutated))
def test_records_of_workers(record: Any) -> None:
    index = record.get("index") if isinstance(record, dict) else 0
    result = read_record(json.dumps(record).encode(), index if type(index) is int else 0, 0)
    if isinstance(result, Lost):
        assert result.cause.startswith("unreadable record: ")
        return
    # The driver's next step.
    line = Outcome(submitted_ns=0, collected_ns=0, result=result).to_json()
    orjson.dumps(line)
    readable_keys(line["record"]["operations"])


@few
@given(st.one_of(st.text(max_size=60), st.from_regex(r"\A[0-9]{8,}/[0-9]+/[0-9a-f]{32}\Z")))
def test_names_in_listings(name: str) -> None:
    parse_record(name)
    parse_claim(name)


CLAIM: Final = {"run_id": "r", "delivery": "0" * 32, "held_s": 5.0, "until_ns": 1 << 60}


@few
@given(mutated(CLAIM))
def test_claims(data: Any) -> None:
    if isinstance(data, dict) and _is_claim(data) and data.get("delivery") is not None:
        assert round(float(data.get("held_s") or 0) * 1e9) >= 0
        assert int(data.get("until_ns") or 0) >= 0
