import hashlib
from itertools import pairwise

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.base.units import MIB
from serverless_bench.job.keys import hash_key, object_key
from serverless_bench.payload.keystream import Keystream, identify
from serverless_bench.payload.shaped import SHAPE_BLOCK, content_of
from tests.tables import each_row

DIGITS = "00112233445566778899aabbccddeeff"
SIZE = 50_000


def read(key: str, offset: int, length: int, generation: int = 0) -> bytes:
    data = bytearray(length)
    content_of(key, generation).readinto_at(offset, data)
    return bytes(data)


def key_of(size: int, compressibility: float, duplication: float) -> str:
    return object_key(
        prefix="sbench/",
        run_id="run",
        index=0,
        launch=0,
        number=0,
        size=size,
        compressibility=compressibility,
        duplication=duplication,
    )


# Frozen: objects written by any released version must stay readable. Range of a shaped
# object, its BLAKE2b-64.
GOLDEN = [
    ("z200", 0, 0, "01bbcc002a78e43f"),
    ("z200", 0, 3, "9fab8f6b2cac0197"),
    ("z150", 1000, 0, "154f8856c4edc3a3"),
    ("z1000", 0, 0, "1da058b85d095362"),
    ("d400", 0, 0, "ae5cdf4c00c4f097"),
    ("d250", 4095, 0, "dfe2ae6124ebc8c0"),
    ("z800d1000", 0, 0, "0cab8528b6378e80"),
]


@each_row(("suffix", "offset", "generation", "expected"), GOLDEN)
def test_golden_vectors(suffix: str, offset: int, generation: int, expected: str) -> None:
    data = read(f"sbench/{DIGITS}.{SIZE}.{suffix}", offset, SIZE - offset, generation)
    assert hashlib.blake2b(data, digest_size=8).hexdigest() == expected


@pytest.mark.parametrize(
    ("suffix", "head", "blocks"),
    [("z200", 2036, 13), ("d400", 4096, 3), ("d250", 4096, 5), ("z800d1000", 500, 1)],
)
def test_the_layout_is_blocks_of_keystream_and_zeros(suffix: str, head: int, blocks: int) -> None:
    key = f"sbench/{DIGITS}.{SIZE}.{suffix}"
    plain = bytearray(SIZE)
    Keystream(key).readinto_at(0, plain)
    starts = [at % (blocks * 4096) for at in range(0, SIZE, 4096)]
    naive = b"".join(plain[at : at + head].ljust(4096, b"\0") for at in starts)
    assert read(key, 0, SIZE) == naive[:SIZE]


@pytest.mark.parametrize("key", [f"{DIGITS}.500", "report.pdf", f"{DIGITS}.500.z1", DIGITS])
def test_a_key_without_a_shape_has_the_plain_keystream(key: str) -> None:
    content = content_of(key, 3)
    assert type(content) is Keystream
    assert (content.key_hash, content.generation) == (hash_key(key), 3)


keys = st.builds(
    key_of,
    st.integers(1, 3 * MIB // 2),
    st.sampled_from([1.0, 1.01, 1.5, 2, 7.77, 50]),
    st.sampled_from([1.0, 1.01, 1.5, 2, 3.3, 100]),
)


@given(keys, st.data())
def test_any_range_is_a_slice_of_the_whole(key: str, data: st.DataObject) -> None:
    size = int(key.split(".")[1])
    whole = read(key, 0, size)
    cuts = data.draw(st.lists(st.integers(0, size), max_size=6))
    edges = sorted({0, size, *cuts})
    content = content_of(key)
    for start, stop in pairwise(edges):
        assert read(key, start, stop - start) == whole[start:stop]
        assert content.agrees(start, memoryview(whole)[start:stop])


@given(keys, st.data(), st.integers(1, 255))
def test_one_wrong_byte_is_found_where_it_is(key: str, data: st.DataObject, flip: int) -> None:
    size = int(key.split(".")[1])
    start = data.draw(st.integers(0, size - 1))
    at = data.draw(st.integers(start, size - 1))
    part = bytearray(read(key, start, size - start))
    part[at - start] ^= flip
    content = content_of(key)
    assert not content.agrees(start, memoryview(part))
    (only,) = content.differences(start, memoryview(part))
    assert (only.offset, only.length, only.bad_bytes) == (at, 1, 1)


def test_wrong_zeros_are_found() -> None:
    key = f"{DIGITS}.{MIB}.z400"
    data = bytearray(read(key, 0, MIB))
    last = MIB - 1
    assert data[last] == 0
    data[last] = 1
    assert not content_of(key).agrees(0, memoryview(data))
    assert next(content_of(key).differences(0, memoryview(data))).offset == last
    data[last] = 0
    data[2000:4000] = b"\1" * 2000
    assert [d.length for d in content_of(key).differences(0, memoryview(data))] == [2000]


def test_a_scratch_buffer_has_no_effect() -> None:
    key, scratch = f"{DIGITS}.{3 * MIB}.z300d700", bytearray(1 << 18)
    data = memoryview(read(key, 12_345, 2 * MIB))
    content = content_of(key)
    assert content.agrees(12_345, data, scratch)
    assert not content.agrees(12_346, data, scratch)
    assert len(scratch) == 1 << 18


def test_the_first_bytes_identify_the_object() -> None:
    key = f"{DIGITS}.{MIB}.z200d400"
    origin = identify(memoryview(read(key, 3 * SHAPE_BLOCK, 64, 5)))
    assert origin is not None
    assert (origin.key_hash, origin.generation) == (hash_key(key), 5)
    assert origin.offset == 3 * SHAPE_BLOCK


def blocks_of(data: bytes) -> list[bytes]:
    return [data[at : at + SHAPE_BLOCK] for at in range(0, len(data), SHAPE_BLOCK)]


SIZES = [MIB, MIB + 1, 2 * MIB - 1, 5_000_000]


@each_row("size", SIZES)
@each_row("duplication", [1, 1.07, 1.5, 2, 2.5, 3.33, 4, 7.3, 10])
@each_row("compressibility", [1, 1.25, 2, 3.3, 8])
def test_ratios_follow_the_key(size: int, duplication: float, compressibility: float) -> None:
    data = read(key_of(size, compressibility, duplication), 0, size)
    distinct = {hashlib.blake2b(block).digest(): block for block in blocks_of(data)}
    left = sum(map(len, distinct.values()))
    assert size / left == pytest.approx(duplication, rel=0.02)
    packer = zstandard.ZstdCompressor(level=3)
    # An incomplete block at the end is distinct, but zstd knows its bytes already.
    whole = [block for block in distinct.values() if len(block) == SHAPE_BLOCK]
    packed = len(packer.compress(b"".join(whole)))
    assert len(whole) * SHAPE_BLOCK / packed == pytest.approx(compressibility, rel=0.02)
    packed = sum(len(packer.compress(block)) for block in whole[:20])
    assert 20 * SHAPE_BLOCK / packed == pytest.approx(compressibility, rel=0.02)


@pytest.mark.parametrize("compressibility", [8.01, 10, 20, 50])
def test_high_ratios_hold_for_the_object_as_one_stream(compressibility: float) -> None:
    data = read(key_of(4 * MIB, compressibility, 1), 0, 4 * MIB)
    packed = zstandard.ZstdCompressor(level=3).compress(data)
    assert len(data) / len(packed) == pytest.approx(compressibility, rel=0.02)


@pytest.mark.parametrize("duplication", [20, 50, 100])
def test_large_objects_reach_high_duplication(duplication: float) -> None:
    size = 25 * SHAPE_BLOCK * int(duplication)
    data = read(key_of(size, 1, duplication), 0, size)
    distinct = {hashlib.blake2b(block).digest() for block in blocks_of(data)}
    assert size / (len(distinct) * SHAPE_BLOCK) == pytest.approx(duplication, rel=0.02)


def test_objects_and_generations_share_no_block() -> None:
    key = f"{DIGITS}.{MIB}.z200"
    other = f"{DIGITS}.{MIB}.z200d200"
    parts = [read(key, 0, MIB), read(key, 0, MIB, 1), read(other, 0, MIB // 2)]
    blocks = [block for part in parts for block in blocks_of(part)]
    assert len(set(blocks)) == len(blocks)
