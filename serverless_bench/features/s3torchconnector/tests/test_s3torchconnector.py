"""Errors that the library only reports as text; all of these texts were observed."""

import pytest

from serverless_bench.base.errors import WrongRegion
from serverless_bench.features.s3torchconnector import client as s3torchconnector
from tests.tables import each_row

RANGE = (
    "Client error: Unknown response error: MetaRequestResult { response_status: 416, crt_error: "
    'Error(14343, "aws-c-s3: AWS_ERROR_S3_INVALID_RESPONSE_STATUS, Invalid response status from '
    'request"), error_response_body: Some("<Error><Code>InvalidRange</Code><Message>no</Message>'
    '</Error>") }'
)
CRT = "Client error: Unknown CRT error: CRT error"
ENDED = "aws-c-s3: AWS_ERROR_S3_REQUEST_HAS_COMPLETED, Request has already completed."


@each_row(
    ("text", "code", "status"),
    [
        ("Service error: The key does not exist", "not_found", None),
        ("Service error: The bucket does not exist", "not_found", None),
        ("Service error: The object was not found", "not_found", None),
        ("Client error: Forbidden: The signature does not match", "access_denied", None),
        ("Client error: No signing credentials available, see logs", "access_denied", None),
        ("Client error: Request throttled", "throttled", None),
        ("Client error: Wrong region (expecting eu-west-7)", "wrong_region", None),
        (f"{CRT} 14341: aws-c-s3: AWS_ERROR_S3_INTERNAL_ERROR, Response", "server_error", None),
        (f"{CRT} 1047: aws-c-io: AWS_IO_SOCKET_CONNECTION_REFUSED, no", "connection_error", None),
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


@pytest.mark.parametrize(("key", "code"), [("a", "server_error"), ("", "access_denied")])
def test_an_upload_that_ended_may_have_had_no_credentials(
    key: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", key)
    assert s3torchconnector.error_of(f"{CRT} 14366: {ENDED}").code == code
