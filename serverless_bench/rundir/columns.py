"""Columns that grow row by row: arrays of a small run, packed blocks of a large one.

A block holds some ten thousand rows of a column as differences from its least value, in as
few bytes as they need. The blocks of a run stay in memory up to ``IN_MEMORY_BYTES``; beyond that
they go to a temporary file without a name, which nobody else can open and which is gone with the
process.
"""

import os
import struct
import weakref
from abc import ABC, abstractmethod
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, partial
from types import NoneType
from typing import IO, Any, Final, get_args

import numpy as np
import orjson
from numpy.typing import NDArray

from serverless_bench.errors import ArchiveError
from serverless_bench.rundir.schema import LIMIT
from serverless_bench.rundir.tables import ABSENT, BlockTable, Ints, Table

BLOCK_ROWS: Final = 1 << 16
"""Rows, or a few more, that make a block; tables of fewer are plain arrays."""
IN_MEMORY_BYTES: Final = 128 << 20
"""Packed blocks of one run that stay in memory."""

_FEW: Final = 256
"""Rows of which Python finds the largest sooner than NumPy does."""
_ONE: Final = struct.Struct("q")
_MAX_SHOWN: Final = 40

_Kept = tuple[int, int]
"""Where a block is, and how long."""


class BlockStore:
    """Keeps the blocks of one run."""

    @cached_property
    def _file(self) -> IO[bytes]:
        # With compression and random numbers, for large runs.
        from tempfile import SpooledTemporaryFile  # noqa: PLC0415

        # 0 would be no limit.
        file = SpooledTemporaryFile(max(1, IN_MEMORY_BYTES))  # noqa: SIM115 - as long as its blocks
        weakref.finalize(self, file.close)
        return file

    def keep(self, block: bytes) -> _Kept:
        """Take a block, and return what ``get`` wants to return it again.

        Raises
        ------
        ArchiveError
            If the disk does not take it.
        """
        try:
            offset = self._file.seek(0, os.SEEK_END)
            self._file.write(block)
            self._file.flush()
        except OSError as exc:
            raise ArchiveError(
                f"no room for the columns of a large run among temporary files: {exc.strerror}",
                hint="make room, or set TMPDIR to a directory that has some",
            ) from exc
        return offset, len(block)

    def get(self, kept: _Kept) -> bytes:
        """Return a block."""
        offset, length = kept
        self._file.seek(offset)
        return self._file.read(length)


class _Column(ABC):
    """One column; rows come by ``convert``, which may refuse them, and ``extend``."""

    dtype = "i8"

    def __init__(self) -> None:
        self._rows: Any = bytearray()
        """Those in no block: the bytes of numbers, or a list."""
        self._blocks: list[Any] = []

    @abstractmethod
    def convert(self, values: Sequence[Any]) -> Any:  # noqa: ANN401 - what `extend` takes
        """Return ``values`` ready for ``extend``, or raise before anything has changed."""

    def extend(self, ready: Any) -> None:  # noqa: ANN401 - what `convert` returns
        """Append what ``convert`` has returned."""
        self._rows += ready

    def flush(self, store: BlockStore) -> None:
        """Make a block of the rows that came since the last one."""
        self._blocks.append(self.pack(store))
        # Arrays may still show the rows as they are.
        self._rows = type(self._rows)()

    def pack(self, store: BlockStore) -> Any:  # noqa: ANN401 - what `block` unpacks
        """Return the pending rows as a block."""
        return store.keep(bytes(self._rows))

    def pending(self) -> NDArray[Any]:
        """Return the rows that are in no block."""
        return np.frombuffer(self._rows, dtype=self.dtype)

    def block(self, number: int, store: BlockStore) -> NDArray[Any]:
        """Return the rows of a block."""
        return np.frombuffer(store.get(self._blocks[number]), dtype=self.dtype)


@dataclass(frozen=True, slots=True)
class _Packed:
    """Integers as their distance from the least of them."""

    base: int
    type: str
    """NumPy's name of the type of the distances; empty if there are none but 0."""
    count: int
    kept: _Kept


class _IntColumn(_Column):
    """Integers; None is ``ABSENT``."""

    def __init__(self, *, optional: bool = False, most: int = LIMIT - 1) -> None:
        super().__init__()
        self._optional = optional
        self._least, self._most = ABSENT if optional else 0, most

    def convert(self, values: Sequence[Any]) -> bytes:
        if not values:
            return b""
        # Half of all columns are the same from end to end, which is seen sooner than converted.
        first, count = values[0], len(values)
        if first == values[-1] and values.count(first) == count:
            least = most = ABSENT if first is None and self._optional else first
            ready = _ONE.pack(least) * count
        else:
            try:
                # In half the time that `array` takes, which says better what is wrong.
                ready, least = struct.pack(f"{count}Q", *values), 0
                many = count > _FEW
                most = int(np.frombuffer(ready, np.uint64).max()) if many else max(values)
            except struct.error:
                if not self._optional and None in values:
                    raise ValueError("has a null") from None
                known = [ABSENT if value is None else value for value in values]
                ready, least, most = array("q", known).tobytes(), min(known), max(known)
        if least < self._least or most > self._most:
            raise ValueError(f"has numbers that are not between 0 and {self._most}")
        return ready

    def pack(self, store: BlockStore) -> _Packed:
        rows = np.frombuffer(self._rows, dtype=np.int64)
        base, most = int(rows.min()), int(rows.max())
        kind = next(kind for kind, bits in _BITS.items() if most - base < 1 << bits)
        # Modulo 2**64, and so is the sum that gives the values back.
        kept = store.keep((rows - np.int64(base)).astype(kind).tobytes()) if kind else (0, 0)
        return _Packed(base, kind, len(rows), kept)

    def block(self, number: int, store: BlockStore) -> NDArray[Any]:
        packed = self._blocks[number]
        if not packed.type:
            return np.full(packed.count, packed.base, dtype=np.int64)
        rows = np.frombuffer(store.get(packed.kept), dtype=packed.type).astype(np.int64)
        rows += np.int64(packed.base)
        return rows


_BITS: Final = {"": 0, "u1": 8, "u2": 16, "u4": 32, "u8": 64}


class _FloatColumn(_Column):
    """Floating-point numbers."""

    dtype = "f8"

    def convert(self, values: Sequence[Any]) -> bytes:
        ready = array("d", values)
        # A number that is none is not in order, whichever it is compared with.
        if ready and not (0 <= min(ready) <= max(ready) < LIMIT and sum(ready) >= 0):
            raise ValueError(f"has numbers that are not between 0 and {LIMIT}")
        return ready.tobytes()


class _Codes(dict[Any, int]):
    """A number for each text, given when it is first asked for.

    Parameters
    ----------
    words
        What alone may be there; None for any text.
    optional
        Whether None may.
    """

    def __init__(self, words: frozenset[str] | None, *, optional: bool) -> None:
        super().__init__()
        self._words = words
        self._optional = optional

    def __missing__(self, text: object) -> int:
        if text is None:
            if not self._optional:
                raise ValueError("has a null")
        elif not isinstance(text, str):
            raise TypeError("has a value that is no text")
        elif self._words is not None and text not in self._words:
            raise ValueError(f"has an unknown word: {text[:_MAX_SHOWN]!r}")
        self[text] = len(self)
        return len(self) - 1


class _NameColumn(_IntColumn):
    """Text of which there are few: one object for each, however many rows have it."""

    def __init__(self, words: frozenset[str] | None = None, *, optional: bool) -> None:
        super().__init__()
        self._codes = _Codes(words, optional=optional)
        self._texts = np.empty(0, dtype=object)

    def convert(self, values: Sequence[Any]) -> bytes:
        if values and values.count(values[0]) == len(values):
            return struct.pack("q", self._codes[values[0]]) * len(values)
        return struct.pack(f"{len(values)}q", *map(self._codes.__getitem__, values))

    def pending(self) -> NDArray[Any]:
        return self._named(super().pending())

    def block(self, number: int, store: BlockStore) -> NDArray[Any]:
        return self._named(super().block(number, store))

    def _named(self, codes: Ints) -> NDArray[Any]:
        if len(self._texts) < len(self._codes):
            self._texts = np.fromiter(self._codes, dtype=object, count=len(self._codes))
        return np.asarray(self._texts[codes], dtype=object)


class _TextColumn(_Column):
    """Text that every row has another of: an index of it would only cost memory."""

    def __init__(self, *, optional: bool) -> None:
        super().__init__()
        self._types = {str, NoneType} if optional else {str}
        self._rows = []

    def convert(self, values: Sequence[Any]) -> Sequence[Any]:
        if not self._types.issuperset(map(type, values)):
            raise TypeError("has a value that is no text")
        return values

    def pack(self, store: BlockStore) -> _Kept:
        return store.keep(orjson.dumps(self._rows))

    def pending(self) -> NDArray[Any]:
        return np.fromiter(self._rows, dtype=object, count=len(self._rows))

    def block(self, number: int, store: BlockStore) -> NDArray[Any]:
        rows = orjson.loads(store.get(self._blocks[number]))
        return np.fromiter(rows, dtype=object, count=len(rows))


_DISTINCT: Final = frozenset({"delivery", "host_id", "key", "request_id"})


def _column(kind: Any, *, distinct: bool) -> _Column:  # noqa: ANN401 - a type, or a union of some
    """Return a column for values of a type, or of that type and None."""
    kinds = get_args(kind) or (kind,)
    optional = NoneType in kinds
    if bool in kinds:
        return _IntColumn(optional=optional, most=1)
    if int in kinds:
        return _IntColumn(optional=optional)
    if float in kinds:
        return _FloatColumn()
    if distinct:
        return _TextColumn(optional=optional)
    word = next((each for each in kinds if issubclass(each, StrEnum)), None)
    return _NameColumn(None if word is None else frozenset(word), optional=optional)


class TableBuilder:
    """A table that grows, a record at a time.

    Parameters
    ----------
    name
        How messages call it.
    types
        The type of each column, from the fields of a record type.
    skip
        Columns of text to leave out.
    store
        Where full blocks go.
    """

    def __init__(
        self, name: str, types: Mapping[str, object], skip: frozenset[str], store: BlockStore
    ) -> None:
        self._name = name
        self._columns = {
            column: _column(kind, distinct=column in _DISTINCT)
            for column, kind in types.items()
            if column not in skip
        }
        self._store = store
        self._pending = 0
        self._counts: list[int] = []
        self._first: list[int] = []

    def convert(self, columns: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
        """Return rows ready for ``extend``, or raise before anything has changed."""
        ready = {}
        for name, column in self._columns.items():
            values = columns[name]
            try:
                ready[name] = column.convert(values)
            except (TypeError, ValueError, OverflowError, struct.error) as exc:
                raise ValueError(f"`{self._name}.{name}` {exc}") from None
        return ready

    def extend(self, ready: Mapping[str, Any], count: int) -> None:
        """Append ``count`` rows, those of one record."""
        for name, column in self._columns.items():
            column.extend(ready[name])
        self._pending += count
        if self._pending >= BLOCK_ROWS and "function" in self._columns:
            self._flush()

    def finish(self) -> Table:
        """Return the table; nothing can be appended any more."""
        if not self._counts:
            return {name: column.pending() for name, column in self._columns.items()}
        if self._pending:
            self._flush()
        blocks = {
            name: partial(column.block, store=self._store) for name, column in self._columns.items()
        }
        return BlockTable(blocks, self._counts, self._first)

    def _flush(self) -> None:
        self._first.append(int(self._columns["function"].pending()[0]))
        for column in self._columns.values():
            column.flush(self._store)
        self._counts.append(self._pending)
        self._pending = 0
