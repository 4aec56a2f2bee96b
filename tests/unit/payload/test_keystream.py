import io
import random
import zlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.job.keys import hash_key
from serverless_bench.payload.keystream import Keystream, KeystreamFile, Origin, identify
from tests.tables import each_row

KEY = "sbench/00112233445566778899aabbccddeeff.5000000000000"
SIZE = 200_000


def read(key: str, offset: int, length: int, generation: int = 0) -> bytes:
    data = bytearray(length)
    Keystream(key, generation).readinto_at(offset, data)
    return bytes(data)


WHOLE = read(KEY, 0, SIZE)


# Frozen: objects written by any released version must stay readable. Made once with this
# code and checked with OpenSSL's command line:
#   head -c 32 /dev/zero | openssl enc -aes-128-ctr -K 7365727665726c6573732d62656e6368 \
#     -iv <hash of the key><generation, 4 digits><block number, 12 digits>
GOLDEN = [
    (0, 0, "e0df233e945057a62b99536c904d5b52dd900bcd67f6bb51"),
    (1, 0, "df233e945057a62b99536c904d5b52dd900bcd67f6bb5165"),
    (4095, 0, "4bf9d7f7bd88c5c2d5d86e2896cca596ecf5fe69580f451c"),
    (2**32, 0, "4f73bcddcad711d8d7f1032b5e50875c37c3508d0402bc09"),
    (2**40, 0, "507b965b37dc75fd819b48e6355ed0c3c0ff89eb5c3817bb"),
    (0, 1, "c974be5938471869ae2e597d59f6451160e33cb6001181af"),
    (0, 65535, "61c8e7a0f35c1053c1027756495d22eb17168cc2579817bc"),
]


@each_row(("offset", "generation", "expected"), GOLDEN)
def test_golden_vectors(offset: int, generation: int, expected: str) -> None:
    assert read(KEY, offset, 24, generation).hex() == expected


def test_the_hash_of_a_key_is_frozen() -> None:
    assert f"{hash_key(KEY):016x}" == "ad187cdeb14595c7"


@given(st.lists(st.integers(0, SIZE), max_size=8))
def test_any_split_gives_the_same_bytes(cuts: list[int]) -> None:
    edges = sorted({0, SIZE, *cuts})
    pieces = [read(KEY, a, b - a) for a, b in pairwise(edges)]
    assert b"".join(pieces) == WHOLE


@given(st.integers(0, 2**48 * 16 - 4096), st.integers(0, 300), st.integers(0, 300))
def test_any_range_is_a_slice_of_a_longer_one(offset: int, skip: int, length: int) -> None:
    assert read(KEY, offset + skip, length) == read(KEY, offset, 1024)[skip : skip + length]


def test_a_buffer_longer_than_the_generators_own_is_filled() -> None:
    assert read(KEY, 0, (1 << 20) + 17)[-1025:] == read(KEY, (1 << 20) + 17 - 1025, 1025)


def test_the_bytes_do_not_compress() -> None:
    assert len(zlib.compress(read(KEY, 0, 1 << 20), 9)) > (1 << 20) * 0.9995


def test_no_block_repeats_within_or_across_objects() -> None:
    blocks = [
        read(key, offset, 16, generation)
        for key in (KEY, KEY + "0")
        for generation in (0, 1)
        for offset in range(0, 65536, 16)
    ]
    assert len(set(blocks)) == len(blocks)


@given(st.integers(0, SIZE - 1), st.integers(1, 255))
def test_one_wrong_byte_is_found_where_it_is(at: int, flip: int) -> None:
    data = bytearray(WHOLE)
    data[at] ^= flip
    keystream = Keystream(KEY)
    assert not keystream.agrees(0, memoryview(data))
    (only,) = keystream.differences(0, memoryview(data))
    assert (only.offset, only.length, only.bad_bytes) == (at, 1, 1)


def test_right_bytes_have_no_difference() -> None:
    keystream, data = Keystream(KEY), memoryview(WHOLE)[100:]
    assert keystream.agrees(100, data)
    assert keystream.agrees(100, data, bytearray(len(data)))
    assert list(keystream.differences(100, data)) == []


@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 60)), max_size=6), st.randoms())
def test_differences_cover_every_wrong_byte_and_no_right_one_at_their_ends(
    places: list[tuple[int, int]], draw: random.Random
) -> None:
    data = bytearray(WHOLE[:6000])
    for offset, length in places:
        data[offset : offset + length] = draw.randbytes(length)
    wrong = {i for i in range(6000) if data[i] != WHOLE[i]}
    covered: set[int] = set()
    for difference in Keystream(KEY).differences(0, memoryview(data)):
        span = range(difference.offset, difference.offset + difference.length)
        assert {span[0], span[-1]} <= wrong
        assert difference.bad_bytes == len(wrong.intersection(span))
        assert covered.isdisjoint(span)
        covered.update(span)
    assert wrong <= covered


@given(
    st.lists(st.tuples(st.sampled_from([1, 15, 16, 17, 300]), st.integers(0, 40)), max_size=20),
    st.integers(0, 40),
    st.booleans(),
)
def test_sixteen_right_bytes_end_a_range_and_fewer_do_not(
    stretches: list[tuple[int, int]],
    lead: int,
    dense: bool,  # noqa: FBT001 - drawn
) -> None:
    """However much is wrong around them: ``dense`` has 4,000 wrong bytes at both ends."""
    data, at = bytearray(WHOLE[:20_000]), lead
    wrong = [*range(4000), *range(16_000, 20_000)] if dense else []
    at += 4000 * dense
    for length, right in stretches:
        wrong += range(at, at + length)
        at += length + right
    for place in wrong:
        data[place] ^= 0xFF
    # A naive implementation: from one wrong byte to the next.
    expected: list[list[int]] = []
    for place in sorted(set(wrong)):
        if expected and place - expected[-1][-1] <= 16:
            expected[-1].append(place)
        else:
            expected.append([place])
    found = [
        (difference.offset, difference.length, difference.bad_bytes)
        for difference in Keystream(KEY).differences(0, memoryview(data))
    ]
    assert found == [(run[0], run[-1] - run[0] + 1, len(run)) for run in expected]


def test_ten_thousand_right_bytes_between_wrong_ones_are_no_part_of_a_range() -> None:
    size = 1 << 20
    data = bytearray(byte ^ 0xFF for byte in read(KEY, 0, size))
    data[500_000:510_000] = read(KEY, 500_000, 10_000)
    found = list(Keystream(KEY).differences(0, memoryview(data)))
    assert [(one.offset, one.length) for one in found] == [
        (0, 500_000),
        (510_000, size - 510_000),
    ]


@given(st.integers(0, 2**50), st.integers(47, 200), st.integers(0, 65535))
def test_a_piece_of_keystream_is_identified(offset: int, length: int, generation: int) -> None:
    found = identify(memoryview(read(KEY, offset, length, generation)))
    assert found == Origin(hash_key(KEY), generation, offset)


def test_other_bytes_are_not_identified() -> None:
    assert identify(memoryview(random.Random(1).randbytes(4096))) is None
    assert identify(memoryview(bytes(4096))) is None
    assert identify(memoryview(WHOLE)[:20]) is None


actions = st.one_of(
    st.tuples(st.just("read"), st.integers(-1, 400), st.just(0)),
    st.tuples(st.just("seek"), st.integers(0, 400), st.sampled_from([0, 1])),
    st.tuples(st.just("seek"), st.integers(-300, 50), st.just(2)),
)


@given(st.lists(actions, max_size=12))
def test_the_file_is_like_any_other_file(script: list[tuple[str, int, int]]) -> None:
    ours, theirs = KeystreamFile(Keystream(KEY), 300), io.BytesIO(WHOLE[:300])
    for action, number, whence in script:
        if action == "read":
            assert ours.read(number) == theirs.read(number)
        else:
            assert ours.seek(number, whence) == theirs.seek(number, whence)
        assert ours.tell() == theirs.tell()
    assert len(ours) == 300


def test_a_file_refuses_a_negative_position() -> None:
    with pytest.raises(ValueError, match="seek"):
        KeystreamFile(Keystream(KEY), 10).seek(-1)
