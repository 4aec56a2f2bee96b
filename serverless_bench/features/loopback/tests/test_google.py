"""Requests that the loopback store treats as Google's, and its answers."""

import pytest

from serverless_bench.features.loopback.s3 import S3Error, S3Request, parse_request

TOKEN = {"authorization": "Bearer any"}


def request(method: str, target: str, **headers: str) -> S3Request:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return parse_request(method, target, TOKEN | named)


@pytest.mark.parametrize(
    ("headers", "is_google"),
    [
        ({}, False),
        ({"authorization": "AWS4-HMAC-SHA256 Credential=bearer /x"}, False),
        ({"authorization": "bearer any"}, True),
        ({"authorization": "Bearer "}, True),
        ({"x-goog-if-generation-match": "0"}, True),
        ({"x-amz-content-sha256": "x"}, False),
    ],
)
def test_a_token_or_a_header_selects_googles_protocol(
    headers: dict[str, str], *, is_google: bool
) -> None:
    assert parse_request("GET", "/bucket/key", headers).google == is_google


@pytest.mark.parametrize(
    ("method", "target", "name"),
    [
        ("PUT", "/my%2Dbucket/a%2Fb", "put"),
        ("GET", "/b/k", "get"),
        ("HEAD", "/b/k", "head"),
        ("DELETE", "/b/k", "delete"),
        ("GET", "/b?list-type=2&prefix=a&start-after=b", "list_objects"),
        ("POST", "/b/k?uploads=", "create_multipart"),
        ("PUT", "/b/k?partNumber=1&uploadId=u", "upload_part"),
        ("POST", "/b/k?uploadId=u", "complete_multipart"),
        ("DELETE", "/b/k?uploadId=u", "abort_multipart"),
    ],
)
def test_requests_have_the_names_of_s3s(method: str, target: str, name: str) -> None:
    assert request(method, target).operation() == name


def test_a_copy_names_its_source_in_a_header() -> None:
    asked = request("PUT", "/b/k", x_goog_copy_source="my%2Dbucket/a%2Fb%20c")
    assert asked.operation() == "copy"
    assert asked.copy_source() == ("my-bucket", "a/b c")


@pytest.mark.parametrize(
    ("method", "target", "header"),
    [
        ("PUT", "/b/k", "if-none-match"),
        ("GET", "/b/k", "if-match"),
        ("PUT", "/b/k", "x-goog-if-metageneration-match"),
        ("PUT", "/b/k", "x-goog-copy-source-if-match"),
        ("POST", "/b/k?uploadId=u", "x-goog-if-generation-match"),
        ("POST", "/b/k?uploads", "x-goog-copy-source"),
        ("GET", "/b/k?generation=1", "x-goog-api-client"),
    ],
)
def test_a_condition_that_would_not_be_checked_is_refused(
    method: str, target: str, header: str
) -> None:
    with pytest.raises(S3Error) as caught:
        parse_request(method, target, TOKEN | {header: "1"}).operation()
    assert caught.value.status == 501


def test_a_generation_is_a_number() -> None:
    assert request("PUT", "/b/k").required_version() is None
    asked = request("PUT", "/b/k", x_goog_if_generation_match="17")
    assert asked.required_version() == 17
    for text in ("", "-1", "x", "\u0663"):
        with pytest.raises(S3Error, match="not a number"):
            request("PUT", "/b/k", x_goog_if_generation_match=text).required_version()
