"""Common parts of clients: redirects, ranges and XML."""

import pytest

from serverless_bench.base.errors import BadResponse
from serverless_bench.clients.library import check_range, moved_endpoint
from serverless_bench.clients.s3_http import element, parse_xml, texts


def test_elements_have_any_namespace() -> None:
    text = b'<a xmlns="urn:x"><Key>1</Key><b><Key>2</Key></b><Key/></a>'
    root = parse_xml(text)
    assert root is not None
    assert texts(root, "Key") == ["1", "2", ""]
    assert element(text, "None") == element(b"no XML", "Key") == element(b"<a", "Key") == ""
    assert parse_xml(b"no XML") is parse_xml(b"<a") is None


@pytest.mark.parametrize(
    ("region", "output", "where"),
    [
        ("eu-1", None, "https://s3.eu-1.amazonaws.com"),
        ("eu-1", "https://s3-eu-1.amazonaws.com", "https://s3-eu-1.amazonaws.com"),
        (None, None, "https://s3.us-1.amazonaws.com"),
    ],
)
def test_on_aws_the_region_says_where(region: str | None, output: str | None, where: str) -> None:
    assert moved_endpoint("https://s3.us-1.amazonaws.com", "us-1", region, output) == where


def test_elsewhere_the_region_says_nothing() -> None:
    assert moved_endpoint("http://store", "us-1", "eu-1", None) == "http://store"


@pytest.mark.parametrize(
    ("wanted", "headers", "is_right"),
    [
        ("bytes=0-99", {"content-range": "bytes 0-99/100"}, True),
        ("bytes=0-99", {"content-length": "100"}, True),
        ("bytes=0-99", {"content-length": "50"}, True),
        ("bytes=0-99", {"content-length": "101"}, False),
        ("bytes=0-99", {}, False),
        ("bytes=50-99", {"content-length": "50"}, False),
        ("", {"content-length": "101"}, True),
    ],
)
def test_a_whole_object_answers_a_range_that_covers_it(
    wanted: str,
    headers: dict[str, str],
    is_right: bool,  # noqa: FBT001 - of a table
) -> None:
    if is_right:
        check_range(wanted, 200, headers)
    else:
        with pytest.raises(BadResponse):
            check_range(wanted, 200, headers)
