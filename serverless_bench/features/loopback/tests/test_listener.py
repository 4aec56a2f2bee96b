"""Requests that a page in a browser sends to a server of the lab."""

import pytest

from serverless_bench.features.loopback.listener import from_a_page


@pytest.mark.parametrize(
    "host",
    [
        *("", "127.0.0.1", "127.1.2.3:80", "[::1]:80", "localhost", "LOCALHOST:1", "a.localhost"),
        "lambda.us-east-1.amazonaws.com",
    ],
)
def test_requests_to_this_machine_by_its_names_are_no_pages(host: str) -> None:
    assert not from_a_page(host, None)
    assert from_a_page(host, "http://example.com")


@pytest.mark.parametrize(
    "host",
    [
        "example.com",
        "example.com:80",
        "127.0.0.1.example.com",
        "localhost.example",
        "a:b:c",
        "amazonaws.com",
    ],
)
def test_a_name_that_was_led_here_is_a_pages(host: str) -> None:
    assert from_a_page(host, None)
