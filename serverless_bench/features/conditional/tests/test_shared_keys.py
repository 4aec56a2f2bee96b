"""The content of a shared key names its owner, and other content is not accepted."""

from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.features.conditional.shared_keys import (
    MAX_BYTES,
    Pattern,
    Version,
    decode,
    encode,
    is_of_key,
    is_shared_key,
    launch_of,
    manifest_key,
    shared_key,
)
from tests.tables import each_row

RUN = "20261122T220000Z-0123456789ab"
VERSION = Version("499999.12.123456789012", "0.0.7", 1 << 40)
KEY = shared_key("sbench/", RUN, Pattern.INCREMENT, 3)


def test_a_version_is_read_as_it_was_written() -> None:
    data = encode(RUN, VERSION)
    assert decode(RUN, data) == VERSION
    assert len(data) <= MAX_BYTES
    assert decode("another run", data) is None


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_no_changed_byte_is_taken_for_a_version(at: int, flip: int) -> None:
    data = bytearray(encode(RUN, VERSION))
    data[at % len(data)] ^= flip
    assert decode(RUN, bytes(data)) is None


@given(st.binary(max_size=300))
def test_anything_else_is_no_version(data: bytes) -> None:
    assert decode(RUN, data) is None
    assert not is_of_key(KEY, data)


@each_row(
    "version",
    [
        Version("not a token", None, 1),
        Version("0.0.1", "\x1b[2J", 1),
        Version("0.0.1", "", 1),
        Version("0.0.1", None, 0),
        Version("0.0.1", None, 1 << 62),
        Version(token="0.0.1", base=None, value=True),
        Version("0.0.1", None, "1"),  # type: ignore[arg-type]
        Version("0.0.1", 5, 1),  # type: ignore[arg-type]
    ],
)
def test_invented_versions_are_refused(version: Version) -> None:
    assert decode(RUN, encode(RUN, version)) is None


def test_a_shortened_version_is_invalid_but_ours() -> None:
    data = encode(RUN, VERSION)
    assert decode(RUN, data[:-1]) is None
    assert is_of_key(KEY, data[:256])


@each_row("prefix", ["", "sbench/", "bench-", "a/barrier/", "mäß/日本-"])
@each_row("pattern", Pattern)
def test_a_shared_key_is_known_by_its_end(prefix: str, pattern: Pattern) -> None:
    key = shared_key(prefix, RUN, pattern, 7)
    data = encode(RUN, VERSION)
    for each in (key, manifest_key(key, 12)):
        assert is_shared_key(each)
        assert is_of_key(each, data)
        assert not is_of_key(each, encode(RUN.replace("2026", "2025"), VERSION))
    assert not is_shared_key(f"{key}x")


def test_a_token_names_its_function() -> None:
    assert launch_of("3.1.17") == (3, 1)
    assert launch_of("?00ff") is None
    assert launch_of("3.1") is None
