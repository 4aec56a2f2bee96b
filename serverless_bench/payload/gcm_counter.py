"""AES in counter mode by way of Galois/counter mode, on CPUs where this is twice as fast.

GCM encrypts as counter mode does, and also hashes the result. OpenSSL uses the vector AES
instructions of newer CPUs for GCM but not for plain counter mode, and they save more time
than the hash takes (docs/decisions/0001). The hash is never read.

GCM counts from a block ``J`` derived from the nonce. For a nonce ``N`` of 16 bytes (NIST SP
800-38D, section 7.1), with ``H`` the encrypted zero block and ``L`` the block that holds the
nonce's length in bits::

    J = (N * H + L) * H      in GF(2^128)

so the nonce for a given counter block is ``J / H^2 + L / H``. Division by a constant is linear:
sixteen look-ups.
"""

from functools import cache
from pathlib import Path
from typing import Final

_SQUARE_INVERTED: Final = 0xA9EADD22E3F94C33D58D3C037CAB242F
"""1 / H^2 of the keystream's cipher key; the first bit is the coefficient of x^0, as in the
standard."""
_LENGTH_DIVIDED: Final = 0xAF1133F7E2CF10B697E8211E2AF4AD49
"""L / H."""
_REDUCTION: Final = 0xE1 << 120
"""The field's polynomial without x^128."""
_WRAP: Final = 1 << 32
"""GCM increments only the last four bytes of the block."""
_INSTRUCTIONS: Final = {b"vaes", b"vpclmulqdq", b"avx512f", b"avx512dq", b"avx512bw", b"avx512vl"}
"""CPU flags that OpenSSL's faster code needs, as named by Linux."""


@cache
def is_faster() -> bool:
    """Return whether OpenSSL has the faster code on this CPU."""
    try:
        with Path("/proc/cpuinfo").open("rb") as file:
            # All CPUs are alike, so the first entry is enough.
            flags = next((line for line in file if line.startswith(b"flags")), b"")
    except OSError:
        return False
    return set(flags.split()) >= _INSTRUCTIONS


def reaches(counter: int, blocks: int) -> bool:
    """Return whether GCM and counter mode use the same counters for these blocks.

    Parameters
    ----------
    counter
        The first counter block, as a number.
    blocks
        Number of blocks. The last four bytes must not wrap around, and GCM reserves two of
        their values.
    """
    return counter % _WRAP + blocks <= _WRAP - 2


def nonce(counter: int) -> bytes:
    """Return the nonce with which the keystream's cipher starts at ``counter``."""
    # Start one block earlier, with the last four bytes wrapping: GCM uses J for the hash.
    start = counter - 1 if counter % _WRAP else counter + _WRAP - 1
    result = _LENGTH_DIVIDED
    for products, byte in zip(_products(), start.to_bytes(16), strict=True):
        result ^= products[byte]
    return result.to_bytes(16)


@cache
def _products() -> list[list[int]]:
    """Return 1 / H^2 times each byte value, for each of the sixteen positions."""
    powers, power = [], _SQUARE_INVERTED
    for _ in range(128):
        powers.append(power)
        power = power >> 1 ^ (_REDUCTION if power & 1 else 0)
    tables = []
    for first in range(0, 128, 8):
        table = [0]
        for power in reversed(powers[first : first + 8]):
            table += [product ^ power for product in table]
        tables.append(table)
    return tables
