import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.payload import gcm_counter
from serverless_bench.payload import keystream as keystream_module
from serverless_bench.payload.keystream import Keystream

CIPHER_KEY = algorithms.AES(b"serverless-bench")
WRAP_BYTES = 2**32 * 16
"""After so many bytes GCM would count from the beginning again."""
LENGTH = 100_000
OFFSETS = st.one_of(
    st.integers(0, 2**48 * 16 - LENGTH),
    st.integers(-2 * LENGTH, 2 * LENGTH).map(lambda near: WRAP_BYTES + near),
)


@given(st.integers(0, 2**128 - 1).filter(lambda start: gcm_counter.reaches(start, 3)))
def test_a_nonce_makes_gcm_count_from_any_block(start: int) -> None:
    by_gcm = Cipher(CIPHER_KEY, modes.GCM(gcm_counter.nonce(start))).encryptor()
    counting = Cipher(CIPHER_KEY, modes.CTR(start.to_bytes(16))).encryptor()
    assert by_gcm.update(bytes(48)) == counting.update(bytes(48))


def test_unsupported_counters_of_gcm_are_detected() -> None:
    assert gcm_counter.reaches(2**64 + 2**32 - 10, 8)
    assert not gcm_counter.reaches(2**64 + 2**32 - 10, 9)


@pytest.mark.parametrize("is_faster", [True, False])
@given(offset=OFFSETS, generation=st.integers(0, 65535))
def test_the_bytes_are_the_same_either_way(
    *, is_faster: bool, offset: int, generation: int
) -> None:
    keystream, data = Keystream("a key", generation), bytearray(LENGTH)
    # Not a fixture: Hypothesis runs the body many times within one.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gcm_counter, "is_faster", lambda: is_faster)
        patch.setattr(keystream_module, "_GCM_FROM", LENGTH)
        keystream.readinto_at(offset, data)
        assert keystream.agrees(offset, memoryview(data))
    assert data == expected(keystream, offset, LENGTH)


@pytest.mark.parametrize("is_faster", [True, False])
@given(
    start=OFFSETS,
    ranges=st.lists(
        st.tuples(
            st.sampled_from(["a key", "another"]), st.integers(0, LENGTH // 2), st.booleans()
        ),
        max_size=8,
    ),
)
def test_a_cipher_that_goes_on_is_where_the_next_range_starts(
    *, is_faster: bool, start: int, ranges: list[tuple[str, int, bool]]
) -> None:
    ends = {"a key": start, "another": start}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gcm_counter, "is_faster", lambda: is_faster)
        patch.setattr(keystream_module, "_GCM_FROM", 1000)
        patch.setattr(keystream_module, "PIECE", 5000)
        for key, length, is_wrong in ranges:
            keystream, offset = Keystream(key), ends[key]
            right = expected(keystream, offset, length)
            if is_wrong and length:
                # A comparison that ends early leaves a cipher in the middle.
                wrong = bytes([right[0] ^ 1]) + right[1:]
                assert not keystream.agrees(offset, memoryview(wrong))
            assert keystream.read(offset, length) == right
            ends[key] += length


def expected(keystream: Keystream, offset: int, length: int) -> bytes:
    counter = (keystream.key_hash << 16 | keystream.generation) << 48 | offset // 16
    counting = Cipher(CIPHER_KEY, modes.CTR(counter.to_bytes(16))).encryptor()
    skip = offset % 16
    return counting.update(bytes(skip + length))[skip:]
