"""Valid values of a specification, from any source."""

import pytest

from serverless_bench.base.errors import UsageError
from serverless_bench.driver.checked_job import check_job
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from serverless_bench.job.types import check_text
from tests.house.members import uses
from tests.tables import each_row


@each_row("text", ["a\nb", "\x1b[2J", "\r", "\x00", "\x85", "\u202e", "\u2028"])
def test_names_have_no_unprintable_characters(text: str) -> None:
    with pytest.raises(UsageError, match="`name` has characters that cannot be printed"):
        check_text("name", text)
    with pytest.raises(UsageError, match="`prefix` has characters"):
        Target(bucket="b", prefix=f"{text}/")
    with pytest.raises(UsageError, match="`client_option` has characters"):
        Target(bucket="b", client_option=(("name", text),))
    with pytest.raises(UsageError, match="`endpoints` has characters"):
        JobSpec(workload="write", target=Target(bucket="b"), number=1, endpoints=(text,))


def test_messages_are_printable() -> None:
    with pytest.raises(UsageError) as caught:
        check_text("name", "\x1b]0;owned\x07")
    assert str(caught.value).isprintable()


def test_words_of_any_language_are_names() -> None:
    check_text("name", "größe-測試")


def test_a_text_has_an_end() -> None:
    check_text("name", "12345", most=5)
    with pytest.raises(UsageError, match="`name` has 6 characters, at most 5 allowed"):
        check_text("name", "123456", most=5)


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**400])
def test_a_number_fits_into_64_bits(number: int) -> None:
    with pytest.raises(UsageError, match="`number` must be a number that fits into 64 bits"):
        JobSpec(workload="write", target=Target(bucket="b"), number=number)


@pytest.mark.parametrize("number", [float("inf"), float("nan"), 1e308])
def test_a_time_is_a_number(number: float) -> None:
    with pytest.raises(UsageError, match="`duration` must be a number that fits into 64 bits"):
        JobSpec(workload="write", target=Target(bucket="b"), number=1, duration=number)


@pytest.mark.parametrize("duration", [10.0, 15.0])
@pytest.mark.parametrize(
    "workload", ["write", "mixed", pytest.param("conditional", marks=uses("workload conditional"))]
)
def test_a_duration_fits_below_the_deadline(workload: str, duration: float) -> None:
    size = {} if workload == "conditional" else {"size": "1KiB"}
    job = {"workload": workload, "deadline": 10.0, "bucket": "any", **size}
    with pytest.raises(UsageError, match="functions stop after 10 s") as refused:
        check_job({**job, "endpoint_url": "http://127.0.0.1:9", "duration": duration})
    assert refused.value.field == "duration"
    check_job({**job, "endpoint_url": "http://127.0.0.1:9", "duration": 9.0})
