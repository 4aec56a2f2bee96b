"""Compressed numbers of other people that no reader should accept."""

import zlib
from base64 import b64encode
from typing import Final

WRONG: Final = [
    b"[1e999]",
    b"[Infinity]",
    b"[-Infinity]",
    b"[NaN]",
    b"[1.5]",
    b"[9999999999999999999]",
    b"[0,\n-10000000000000000000]",
    b"[" + b"[]," * 100 + b"0]",
    b'[{"a": {}}]',
    b"[" * 5,
    # 88 kB that would become 90 MB.
    b"[" + b"0," * 45_000_000 + b"0]",
]


def text_of(data: bytes) -> str:
    return b64encode(zlib.compress(data, 9)).decode()
