"""What libraries say that have no other form for an error than text; all of it was seen."""

import pytest

from serverless_bench.clients import s3dlio, s3torchconnector
from serverless_bench.clients.crt_errors import crt_error
from serverless_bench.clients.library import moved_endpoint
from serverless_bench.clients.s3_xml import element, elements
from serverless_bench.errors import WrongRegion


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("AWS_ERROR_S3_SLOW_DOWN", "throttled"),
        ("AWS_ERROR_S3_INTERNAL_ERROR", "server_fault"),
        ("AWS_ERROR_S3_RESPONSE_CHECKSUM_MISMATCH", "corrupt"),
        ("AWS_ERROR_S3_REQUEST_TIMEOUT", "timed_out"),
        ("AWS_ERROR_HTTP_CHANNEL_THROUGHPUT_FAILURE", "timed_out"),
        ("AWS_IO_SOCKET_TIMEOUT", "timed_out"),
        ("AWS_AUTH_SIGNING_NO_CREDENTIALS", "access_denied"),
        ("AWS_ERROR_S3_MISSING_UPLOAD_ID", "bad_response"),
        ("AWS_ERROR_HTTP_PROTOCOL_ERROR", "bad_response"),
        ("AWS_IO_SOCKET_CONNECTION_REFUSED", "connection_lost"),
        ("AWS_IO_SOCKET_CLOSED", "connection_lost"),
        ("AWS_IO_DNS_INVALID_NAME", "connection_lost"),
        ("AWS_IO_TLS_ERROR_NEGOTIATION_FAILURE", "connection_lost"),
        ("AWS_ERROR_HTTP_CONNECTION_CLOSED", "connection_lost"),
        ("AWS_ERROR_OOM", "error"),
    ],
)
def test_errors_of_the_aws_runtime(name: str, code: str) -> None:
    assert crt_error(name, "words").code == code


RANGE = (
    "Client error: Unknown response error: MetaRequestResult { response_status: 416, crt_error: "
    'Error(14343, "aws-c-s3: AWS_ERROR_S3_INVALID_RESPONSE_STATUS, Invalid response status from '
    'request"), error_response_body: Some("<Error><Code>InvalidRange</Code><Message>no</Message>'
    '</Error>") }'
)
REFUSED = "connection timeout: timeout: tcp connect error: Connection refused (os error 111)"
CRT = "Client error: Unknown CRT error: CRT error"
ENDED = "aws-c-s3: AWS_ERROR_S3_REQUEST_HAS_COMPLETED, Request has already completed."


@pytest.mark.parametrize(
    ("text", "code", "status"),
    [
        ("Service error: The key does not exist", "not_found", None),
        ("Service error: The bucket does not exist", "not_found", None),
        ("Service error: The object was not found", "not_found", None),
        ("Client error: Forbidden: The signature does not match", "access_denied", None),
        ("Client error: No signing credentials available, see logs", "access_denied", None),
        ("Client error: Request throttled", "throttled", None),
        ("Client error: Wrong region (expecting eu-west-7)", "wrong_region", None),
        (f"{CRT} 14341: aws-c-s3: AWS_ERROR_S3_INTERNAL_ERROR, Response", "server_fault", None),
        (f"{CRT} 1047: aws-c-io: AWS_IO_SOCKET_CONNECTION_REFUSED, no", "connection_lost", None),
        (RANGE, "bad_request", 416),
        ("Client error: Internal S3 client error: XML parsing error: no", "bad_response", None),
        ("something that nobody has seen", "error", None),
    ],
)
def test_errors_of_the_connector(text: str, code: str, status: int | None) -> None:
    error = s3torchconnector.error_of(text)
    assert (error.code, error.status) == (code, status)


def test_the_connector_tells_the_region() -> None:
    error = s3torchconnector.error_of("Client error: Wrong region (expecting eu-west-7)")
    assert isinstance(error, WrongRegion)
    assert error.region == "eu-west-7"


@pytest.mark.parametrize(("key", "code"), [("a", "server_fault"), ("", "access_denied")])
def test_an_upload_that_ended_may_have_had_no_credentials(
    key: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", key)
    assert s3torchconnector.error_of(f"{CRT} 14366: {ENDED}").code == code


@pytest.mark.parametrize(
    ("text", "code", "status"),
    [
        ("S3 GET for s3://b/k failed: service error: NoSuchKey (gone)", "not_found", None),
        ("HEAD for s3://b/k failed: service error: NotFound (no message)", "not_found", None),
        ("S3 GET for s3://b/k failed: service error: NoSuchBucket (gone)", "not_found", None),
        ("S3 PUT for s3://b/k failed: service error: SlowDown (told so)", "throttled", None),
        ("S3 PUT for s3://b/k failed: service error: InternalError (x)", "server_fault", None),
        ("x: service error: SignatureDoesNotMatch (no) — wrong key", "access_denied", None),
        ("x: service error: PermanentRedirect (told so)", "wrong_region", None),
        ("x: service error: InvalidRange (no)", "bad_request", None),
        ("x: service error: unhandled error (AccessDenied): Error {}", "access_denied", None),
        ("x: service error: unknown (no message) — HTTP 503 Service", "throttled", 503),
        ("x: service error: unknown (no message) — HTTP 403 Forbidden", "access_denied", 403),
        ("Missing AWS_ACCESS_KEY_ID or AWS_SECRET_ACCESS_KEY", "access_denied", None),
        ("S3 PUT for s3://b/k failed: request timed out after 3s", "timed_out", None),
        ("x: streaming error: minimum throughput was specified at 1 B/s", "timed_out", None),
        ("x: streaming error: end of file before message length reached", "connection_lost", None),
        (f"x failed: dispatch failure ({REFUSED})", "connection_lost", None),
    ],
)
def test_errors_of_s3dlio(text: str, code: str, status: int | None) -> None:
    error = s3dlio.error_of(text)
    assert (error.code, error.status) == (code, status)


def test_elements_have_any_namespace() -> None:
    text = b'<a xmlns="urn:x"><Key>1</Key><b><Key>2</Key></b><Key/></a>'
    assert elements(text, "Key") == ["1", "2", ""]
    assert element(text, "None") == ""
    assert elements(b"no XML", "Key") == elements(b"<a", "Key") == []


@pytest.mark.parametrize(
    ("region", "told", "where"),
    [
        ("eu-1", None, "https://s3.eu-1.amazonaws.com"),
        ("eu-1", "https://s3-eu-1.amazonaws.com", "https://s3-eu-1.amazonaws.com"),
        (None, None, "https://s3.us-1.amazonaws.com"),
    ],
)
def test_on_aws_the_region_says_where(region: str | None, told: str | None, where: str) -> None:
    assert moved_endpoint("https://s3.us-1.amazonaws.com", "us-1", region, told) == where


def test_elsewhere_the_region_says_nothing() -> None:
    assert moved_endpoint("http://store", "us-1", "eu-1", None) == "http://store"
