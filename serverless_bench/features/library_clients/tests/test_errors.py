"""Errors that the library only reports as text; all of these texts were observed."""

from serverless_bench.features.library_clients.errors import crt_error
from tests.tables import each_row


@each_row(
    ("name", "code"),
    [
        ("AWS_ERROR_S3_SLOW_DOWN", "throttled"),
        ("AWS_ERROR_S3_INTERNAL_ERROR", "server_error"),
        ("AWS_ERROR_S3_RESPONSE_CHECKSUM_MISMATCH", "corrupt"),
        ("AWS_ERROR_S3_REQUEST_TIMEOUT", "timeout"),
        ("AWS_ERROR_HTTP_CHANNEL_THROUGHPUT_FAILURE", "timeout"),
        ("AWS_IO_SOCKET_TIMEOUT", "timeout"),
        ("AWS_AUTH_SIGNING_NO_CREDENTIALS", "access_denied"),
        ("AWS_ERROR_S3_MISSING_UPLOAD_ID", "bad_response"),
        ("AWS_ERROR_HTTP_PROTOCOL_ERROR", "bad_response"),
        ("AWS_IO_SOCKET_CONNECTION_REFUSED", "connection_error"),
        ("AWS_IO_SOCKET_CLOSED", "connection_error"),
        ("AWS_IO_DNS_INVALID_NAME", "connection_error"),
        ("AWS_IO_TLS_ERROR_NEGOTIATION_FAILURE", "connection_error"),
        ("AWS_ERROR_HTTP_CONNECTION_CLOSED", "connection_error"),
        ("AWS_ERROR_OOM", "error"),
    ],
)
def test_errors_of_the_aws_runtime(name: str, code: str) -> None:
    assert crt_error(name, "words").code == code
