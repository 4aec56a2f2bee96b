"""Numbers of a job as compressed text, from files of other people, too."""

import json
import re
import zlib
from base64 import b64decode, b64encode
from typing import Any, Final, NoReturn

_MOST_TIMES: Final = 40
"""Most bytes of JSON for each character of the text; what sbench packs has fewer."""
_LEAST: Final = 4 << 20
"""Bytes of JSON that any text may have."""
_LARGE: Final = re.compile(rb"[\[,:\s]-?[0-9]{19}")
"""A number of more than 62 bits; the names of objects are texts."""


def pack(values: object) -> str:
    """Return values as compressed text."""
    data = json.dumps(values, separators=(",", ":")).encode()
    return b64encode(zlib.compress(data, 9)).decode()


def unpack(text: str, *, most_lists: int) -> Any:
    """Return the values in a text; time and memory are proportional to its length.

    Raises
    ------
    ValueError
        If it is no such text, if it would become much longer than the text, or has more than
        ``most_lists`` lists, or numbers that are not whole or do not fit into 62 bits.
    """
    most, stream = _LEAST + _MOST_TIMES * len(text), zlib.decompressobj()
    try:
        data = stream.decompress(b64decode(text, validate=True), most)
    except zlib.error as exc:
        raise ValueError(str(exc)) from exc
    if not stream.eof:
        raise ValueError("it is incomplete, or has far more numbers than its length allows")
    return numbers_in(data, most_lists=most_lists)


def numbers_in(data: bytes, *, most_lists: int) -> Any:
    """Return JSON in which all numbers are whole and fit into 62 bits.

    Raises
    ------
    ValueError
        If it is anything else, or has more than ``most_lists`` lists.
    """
    if data.count(b"[") > most_lists or data.count(b"{") > 1 or _LARGE.search(data):
        raise ValueError("it has too many lists, or numbers that are too large")
    return json.loads(data, parse_float=_refuse, parse_constant=_refuse)


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a whole number")
