import pytest
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import (
    bytes_per_second,
    format_rate,
    format_seconds,
    format_size,
    parse_duration,
    parse_rate,
    parse_size,
)
from tests.tables import each_row


@each_row(
    ("text", "size"),
    [
        ("1", 1),
        ("1000B", 1000),
        ("2GB", 2_000_000_000),
        ("2gb", 2_000_000_000),
        ("64MiB", 67_108_864),
        ("64 mib", 67_108_864),
        ("0.1GB", 100_000_000),
        ("1.5KiB", 1536),
        ("3T", 3_000_000_000_000),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@each_row("text", ["", "GB", "-1", "0", "1.5", "0.5B", "1iB", "12 parsecs", "1e6"])
def test_invalid_sizes_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_size(text)


@given(st.integers(1, 10**18))
def test_a_plain_number_is_bytes(size: int) -> None:
    assert parse_size(str(size)) == size


def test_words_for_people() -> None:
    assert format_rate(None) == "-"
    assert format_rate(1_234) == "1.2 kB/s"
    assert format_rate(12_345_678) == "12.3 MB/s"
    assert format_rate(7.28e9) == "7.28 GB/s"
    assert format_size(0) == "0 B"
    assert format_size(1536) == "1.5 KiB"
    assert format_size(64 << 20) == "64 MiB"
    assert format_size(3_774_873_600_000) == "3.43 TiB"
    assert format_seconds(None) == "-"
    assert format_seconds(0.0123) == "12.3 ms"
    assert format_seconds(7.4) == "7.4 s"
    assert format_seconds(4321.5) == "4,322 s"


def test_no_time_is_no_rate() -> None:
    assert bytes_per_second(5, 0) == 0.0
    assert bytes_per_second(5, 10**9) == 5.0


@pytest.mark.parametrize(
    ("text", "rate"), [("20Gbit", 2.5e9), ("2.5GB/s", 2.5e9), ("1MiB", 2**20), ("1.3kB/s", 1300)]
)
def test_a_link_is_bits_or_bytes_per_second(text: str, rate: float) -> None:
    assert parse_rate(text) == rate


@each_row("text", ["3apples", "0Gbit", "-1GB", "0.3", "20", ""])
def test_invalid_rates_of_a_link_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a rate") as refused:
        parse_rate(text)
    assert "20Gbit" in refused.value.hint


@pytest.mark.parametrize("text", ["9" * 5000, "0." + "0" * 5000 + "1GB"])
def test_a_size_has_few_digits(text: str) -> None:
    with pytest.raises(UsageError, match="is not a size"):
        parse_size(text)


@each_row(
    ("text", "seconds"),
    [
        ("5", 5),
        ("0", 0),
        ("300", 300),
        ("1.5 s", 1.5),
        ("50ms", 0.05),
        ("250us", 250e-6),
        ("90s", 90),
        ("1m30s", 90),
        ("1h 30m", 5400),
        ("1.5h", 5400),
        ("10min", 600),
        ("2 m", 120),
        (" 2d ", 172800),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@each_row(
    "text", ["", " ", "fast", "-1s", "m", "5 parsecs", "1e3", "nan", "inf", "1" * 13, "5s!", "٣s"]
)
def test_invalid_durations_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"^'.* is not a duration$") as caught:
        parse_duration(text)
    assert caught.value.hint == "write seconds, 500ms, 5s or 2m"
