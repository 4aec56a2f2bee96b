"""Values in Thrift's compact protocol, as far as the footer of a Parquet file needs them."""

from typing import Any, Final


def number(value: int) -> bytes:
    """Return an integer, which must not be negative."""
    return length(value << 1)


def length(value: int) -> bytes:
    """Return a length, or the bits of an integer."""
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    return bytes([*encoded, value])


def wide(value: int) -> bytes:
    """Return a length below 2**35 in five bytes, so that it can be changed in place."""
    return bytes([*(value >> shift & 127 | 128 for shift in (0, 7, 14, 21)), value >> 28])


def many(kind: int, items: list[bytes]) -> bytes:
    """Return a list of encoded values of the same kind."""
    return bytes([0xF0 | kind]) + length(len(items)) + b"".join(items)


MOST_ITEMS: Final = 3_200_000
"""Most items of all lists in a footer: each of 200,000 column chunks has a few lists."""


class Reader:
    """Reads values one after the other.

    All methods raise ``IndexError`` at the end of the data, and ``ValueError`` for data that is
    not of this protocol.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = self._items = 0

    def struct(self) -> dict[int, Any]:
        """Return the fields of a struct by number; of doubles, only that they are there."""
        fields: dict[int, Any] = {}
        field = 0
        while header := self._byte():
            field = field + (header >> 4) if header >> 4 else self._number()
            fields[field] = self._value(header & 15)
        return fields

    def _value(self, kind: int) -> Any:
        match kind:
            case 1 | 2:
                return kind == 1
            case 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._number()
            case 7 | 8:
                return self._take(8 if kind == 7 else self._length())
            case 9 | 10:
                return self._list()
            case 12:
                return self.struct()
            case _:
                raise ValueError(f"the footer has a value of an unknown kind {kind}")

    def _list(self) -> list[Any]:
        header = self._byte()
        count = header >> 4 if header >> 4 < 15 else self._length()
        # Each item has a byte or more.
        if count > len(self._data) - self._at:
            raise ValueError(f"the footer has a list of {count} items, which it is too short for")
        self._items += count
        if self._items > MOST_ITEMS:
            raise ValueError(f"the footer has lists of more than {MOST_ITEMS:,} items")
        kind = header & 15
        # In a list, a boolean is a byte.
        return [self._value(3 if kind <= 2 else kind) for _ in range(count)]

    def _number(self) -> int:
        bits = self._length()
        return bits >> 1 ^ -(bits & 1)

    def _length(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("the footer has an integer of more than ten bytes")

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _take(self, count: int) -> bytes:
        self._at += count
        return self._data[self._at - count : self._at]
