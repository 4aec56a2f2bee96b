"""Errors of responses: statuses of no store's manual, waits that a store asks for, its region."""

from email.utils import formatdate

import pytest

from serverless_bench.base.clock import wall_ns
from serverless_bench.base.errors import ServerFault, Throttled, WrongRegion
from serverless_bench.base.units import NS_PER_S
from serverless_bench.clients.s3_errors import s3_error

NOW_S = 1_700_000_000


@pytest.mark.parametrize("status", [500, 502, 504, 507, 509, 520, 522, 524, 530, 599])
def test_an_unknown_5xx_is_the_servers_and_retried(status: int) -> None:
    error = s3_error(status, "", "", {})
    assert isinstance(error, ServerFault)
    assert error.retryable


@pytest.mark.parametrize("status", [501, 505])
def test_what_a_server_does_not_offer_is_not_retried(status: int) -> None:
    assert s3_error(status, "", "", {}).code == "bad_request"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("3", 3.0),
        (" 3 ", 3.0),
        ("1.5", 1.5),
        (formatdate(NOW_S + 4, usegmt=True), 4.0),
        (formatdate(NOW_S - 9, usegmt=True), 0.0),
        ("soon", None),
        ("-3", None),
        ("", None),
    ],
)
def test_every_form_of_retry_after(text: str, seconds: float | None) -> None:
    headers = {"retry-after": text, "date": formatdate(NOW_S, usegmt=True)}
    error = s3_error(503, "SlowDown", "", headers)
    assert isinstance(error, Throttled)
    assert error.retry_after_s == seconds


def test_without_a_date_of_the_store_this_machines_clock_counts() -> None:
    later = formatdate(wall_ns() // NS_PER_S + 1000, usegmt=True)
    error = s3_error(429, "", "", {"retry-after": later})
    assert isinstance(error, Throttled)
    assert error.retry_after_s is not None
    assert 900 < error.retry_after_s <= 1000


@pytest.mark.parametrize(
    "message",
    [
        "unexpected scope: 20261129/us-east-1/s3 (expected: 20261129/garage/s3/aws4_request)",
        "the region 'us-east-1' is wrong; expecting 'garage'",
    ],
)
def test_a_region_may_stand_in_the_message_only(message: str) -> None:
    error = s3_error(400, "AuthorizationHeaderMalformed", message, {})
    assert isinstance(error, WrongRegion)
    assert error.region == "garage"
