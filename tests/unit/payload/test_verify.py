import random
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from serverless_bench.base.units import MIB
from serverless_bench.job.keys import hash_key
from serverless_bench.job.target import Verify
from serverless_bench.payload.keystream import Keystream
from serverless_bench.payload.verify import MAX_BAD_RANGES, BadRanges, RangeSink, absent
from serverless_bench.rundir.record import FoundBytes
from tests.tables import each_row

KEY, OTHER = "mine", "yours"
BLOCK = 4096
SIZE = 20 * BLOCK + 100


def content(key: str = KEY, *, generation: int = 0, size: int = SIZE, offset: int = 0) -> bytes:
    data = bytearray(size)
    Keystream(key, generation).readinto_at(offset, data)
    return bytes(data)


WHOLE = content()


def read(data: bytes, *, verify: Verify = Verify.FULL, block: int = BLOCK) -> RangeSink:
    """Feed ``data`` to a sink as a client would."""
    sink = RangeSink(Keystream(KEY), size=SIZE, offset=0, length=SIZE, verify=verify)
    for offset in range(0, len(data), block):
        sink.write_at(offset, memoryview(data)[offset : offset + block])
    sink.finish()
    return sink


def spliced(at: int, piece: bytes) -> bytes:
    return WHOLE[:at] + piece + WHOLE[at + len(piece) :]


def test_right_bytes_are_verified() -> None:
    sink = read(WHOLE)
    assert (sink.verified_bytes, sink.bad.count, sink.missing) == (SIZE, 0, 0)


CASES = [
    pytest.param(
        spliced(5000, bytes(9000)), FoundBytes.ZEROS, 5000, 9000, None, id="a page of zeros"
    ),
    pytest.param(
        spliced(5000, content(offset=64, size=9000)),
        FoundBytes.OTHER_OFFSET,
        5000,
        9000,
        64,
        id="another place of the object",
    ),
    pytest.param(
        spliced(5000, content(OTHER, offset=5000, size=9000)),
        FoundBytes.OTHER_OBJECT,
        5000,
        9000,
        5000,
        id="another object",
    ),
    pytest.param(
        content(generation=3), FoundBytes.OTHER_GENERATION, 0, SIZE, 0, id="an older generation"
    ),
    pytest.param(
        content(OTHER), FoundBytes.OTHER_OBJECT, 0, SIZE, 0, id="another object throughout"
    ),
    pytest.param(
        spliced(5000, random.Random(1).randbytes(9000)),
        FoundBytes.UNKNOWN,
        5000,
        9000,
        None,
        id="bytes of nobody",
    ),
    pytest.param(WHOLE[:-1000], FoundBytes.MISSING, SIZE - 1000, 1000, None, id="truncated"),
    pytest.param(WHOLE + bytes(50), FoundBytes.EXTRA, SIZE, 50, None, id="grown"),
    pytest.param(b"", FoundBytes.MISSING, 0, SIZE, None, id="empty"),
]


@each_row(("data", "found", "offset", "length", "origin"), CASES)
def test_wrong_bytes_are_classified(
    data: bytes, found: FoundBytes, offset: int, length: int, origin: int | None
) -> None:
    sink = read(data)
    assert sink.bad.count == 1
    (bad,) = sink.bad.listed
    # Two unrelated bytes are equal once in 256 times, also at the edges of a range.
    assert bad.offset - offset in range(4)
    assert offset + length - (bad.offset + bad.length) in range(4)
    assert bad.found is found
    if origin is not None:
        assert bad.found_offset == origin + bad.offset - offset
        key = OTHER if found is FoundBytes.OTHER_OBJECT else KEY
        assert bad.found_key_hash == f"{hash_key(key):016x}"


def test_the_generation_that_was_found_is_named() -> None:
    assert read(content(generation=3)).bad.listed[0].found_generation == 3


def test_one_range_across_many_blocks_is_one_range() -> None:
    sink = read(content(OTHER), block=512)
    assert sink.bad.count == 1
    assert sink.bad.listed[0].bad_bytes == sink.bad.bytes
    assert sink.bad.bytes == sum(a != b for a, b in zip(content(OTHER), WHOLE, strict=True))


def test_neighbours_of_different_origin_are_two_ranges() -> None:
    wrong = content(offset=64, size=BLOCK) + content(offset=BLOCK + 192, size=BLOCK)
    bad = read(wrong + WHOLE[2 * BLOCK :]).bad
    shifts = [one.found_offset - one.offset for one in bad.listed if one.found_offset is not None]
    assert (bad.count, shifts) == (2, [64, 192])


# More ranges than are listed; the next range continues the last listed one, or does not.
@example([(20, 5)] * 20 + [(0, 5)] * 2 + [(20, 5)] * 18, [20, 30])
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), max_size=60),
    st.lists(st.integers(0, 60), max_size=3),
)
def test_stretches_put_together_are_the_whole(
    spans: list[tuple[int, int]], cuts: list[int]
) -> None:
    """The list of an object that is read in ranges equals that of an object read as a whole."""
    found, at = [], 0
    for gap, length in spans:
        found.append(absent(FoundBytes.MISSING, at + gap, length))
        at += gap + length
    whole, joined = BadRanges(), BadRanges()
    for one in found:
        whole.add(one)
    for begin, end in pairwise([0, *sorted(cuts), len(found)]):
        stretch = BadRanges()
        for one in found[begin:end]:
            stretch.add(one)
        joined.extend(stretch)
    assert joined.bytes == whole.bytes == sum(length for _, length in spans)
    assert (joined.count, joined.listed) == (whole.count, whole.listed)


def test_the_list_is_bounded_and_the_count_is_not() -> None:
    data = bytearray(WHOLE)
    for at in range(0, SIZE, 500):
        data[at] ^= 1
    sink = read(bytes(data))
    expected = len(range(0, SIZE, 500))
    assert (sink.bad.count, sink.bad.bytes) == (expected, expected)
    assert len(sink.bad.listed) == MAX_BAD_RANGES
    assert sink.verified_bytes == SIZE - expected


@given(st.sets(st.integers(0, SIZE - 1), max_size=40), st.sampled_from([100, 4096, SIZE]))
def test_every_flipped_byte_is_counted_once(places: set[int], block: int) -> None:
    data = bytearray(WHOLE)
    for at in places:
        data[at] ^= 0x55
    sink = read(bytes(data), block=block)
    assert sink.bad.bytes == len(places)
    assert sink.verified_bytes == SIZE - len(places)
    ordered = sorted(places)
    runs = sum(1 for i, at in enumerate(ordered) if i == 0 or at - ordered[i - 1] > 16)
    assert sink.bad.count == runs


def test_an_empty_object_matches_an_empty_body() -> None:
    sink = RangeSink(Keystream(KEY), size=0, offset=0, length=0, verify=Verify.FULL)
    sink.finish()
    assert (sink.bad.count, sink.missing) == (0, 0)


def test_without_verification_no_byte_is_compared() -> None:
    sink = read(content(OTHER), verify=Verify.NONE)
    assert (sink.verified_bytes, sink.bad.count, sink.missing) == (0, 0, 0)


def test_a_sample_sees_the_first_and_the_last_block() -> None:
    size = 40 << 20

    def sampled(data: bytearray) -> RangeSink:
        sink = RangeSink(Keystream(KEY), size=size, offset=0, length=size, verify=Verify.SAMPLE)
        for offset in range(0, size, 1 << 20):
            sink.write_at(offset, memoryview(data)[offset : offset + (1 << 20)])
        return sink

    good = bytearray(content(size=size))
    assert sampled(good).verified_bytes == 4 << 20
    for at in (0, 16 << 20, size - 1):
        bad = bytearray(good)
        bad[at] ^= 1
        assert sampled(bad).bad.count == 1


@each_row(
    ("size", "begin", "end", "due"),
    [
        (40, 15, 16, False),
        (40, 15, 16 + 1 / MIB, True),
        (40, 17 - 1 / MIB, 18, True),
        (40, 17, 18, False),
        (2 + 1 / MIB, 1, 2, False),
        (2 + 1 / MIB, 2, 2 + 1 / MIB, True),
        (2, 1, 2, True),
    ],
)
def test_a_sample_is_of_every_sixteenth_megabyte_and_the_last(
    size: float,
    begin: float,
    end: float,
    due: bool,  # noqa: FBT001
) -> None:
    offset, length = round(begin * MIB), round((end - begin) * MIB)
    sink = RangeSink(
        Keystream(KEY), size=round(size * MIB), offset=offset, length=length, verify=Verify.SAMPLE
    )
    sink.write_at(0, memoryview(content(offset=offset, size=length)))
    assert sink.verified_bytes == (length if due else 0)
