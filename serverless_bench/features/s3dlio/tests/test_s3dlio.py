"""Errors that the library only reports as text; all of these texts were observed."""

from serverless_bench.features.s3dlio import client as s3dlio
from tests.tables import each_row

REFUSED = "connection timeout: timeout: tcp connect error: Connection refused (os error 111)"


@each_row(
    ("text", "code", "status"),
    [
        ("S3 GET for s3://b/k failed: service error: NoSuchKey (gone)", "not_found", None),
        ("HEAD for s3://b/k failed: service error: NotFound (no message)", "not_found", None),
        ("S3 GET for s3://b/k failed: service error: NoSuchBucket (gone)", "not_found", None),
        ("S3 PUT for s3://b/k failed: service error: SlowDown (told so)", "throttled", None),
        ("S3 PUT for s3://b/k failed: service error: InternalError (x)", "server_error", None),
        ("x: service error: SignatureDoesNotMatch (no) — wrong key", "access_denied", None),
        ("x: service error: PermanentRedirect (told so)", "wrong_region", None),
        ("x: service error: InvalidRange (no)", "bad_request", None),
        ("x: service error: unhandled error (AccessDenied): Error {}", "access_denied", None),
        ("x: service error: unknown (no message) — HTTP 503 Service", "throttled", 503),
        ("x: service error: unknown (no message) — HTTP 403 Forbidden", "access_denied", 403),
        ("Missing AWS_ACCESS_KEY_ID or AWS_SECRET_ACCESS_KEY", "access_denied", None),
        ("S3 PUT for s3://b/k failed: request timed out after 3s", "timeout", None),
        ("x: streaming error: minimum throughput was specified at 1 B/s", "timeout", None),
        ("x: streaming error: end of file before message length reached", "connection_error", None),
        (f"x failed: dispatch failure ({REFUSED})", "connection_error", None),
    ],
)
def test_errors_of_s3dlio(text: str, code: str, status: int | None) -> None:
    error = s3dlio.error_of(text)
    assert (error.code, error.status) == (code, status)
