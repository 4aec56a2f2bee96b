"""Columns that grow row by row: arrays for a small run, packed blocks for a large run.

A block holds tens of thousands of rows of a column as differences from its minimum, in as few
bytes as possible. The blocks of a run stay in memory up to ``IN_MEMORY_BYTES``. Larger data goes
to an unnamed temporary file, which other processes cannot open and which disappears when the
process exits.
"""

import os
import struct
import weakref
from abc import ABC, abstractmethod
from array import array
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from itertools import count
from typing import IO, Any, Final, get_args

import numpy as np
import orjson
from msgspec import Struct
from numpy.typing import NDArray

from serverless_bench.rundir.files import failing
from serverless_bench.rundir.tables import ABSENT, BlockTable, Ints, Table

BLOCK_ROWS: Final = 1 << 16
"""Minimum number of rows of a block; smaller tables are plain arrays."""
IN_MEMORY_BYTES: Final = 128 << 20
"""Size of the packed blocks of a run that stay in memory."""

_Kept = tuple[int, int]
"""Offset and length of a block."""


class BlockStore:
    """Stores the blocks of a run."""

    @cached_property
    def _file(self) -> IO[bytes]:
        # Imports compression and random numbers, which only large runs need.
        from tempfile import SpooledTemporaryFile

        # A maximum size of 0 means no limit.
        file = SpooledTemporaryFile(max(1, IN_MEMORY_BYTES))  # noqa: SIM115 - as long as its blocks
        weakref.finalize(self, file.close)
        return file

    def keep(self, block: bytes) -> _Kept:
        """Store a block, and return the handle with which ``get`` finds it.

        Raises
        ------
        ArchiveError
            If the disk is full or fails.
        """
        with failing(
            "no room for the columns of a large run among temporary files",
            hint="make room, or set TMPDIR to a directory that has some",
        ):
            offset = self._file.seek(0, os.SEEK_END)
            self._file.write(block)
            self._file.flush()
        return offset, len(block)

    def get(self, kept: _Kept) -> bytes:
        """Return a block."""
        offset, length = kept
        self._file.seek(offset)
        return self._file.read(length)


class _Column(ABC):
    """A column of values with types checked by ``reader``."""

    dtype = "i8"

    def __init__(self) -> None:
        self._rows: Any = bytearray()
        """Rows that are not in a block yet: the bytes of numbers, or a list."""
        self._blocks: list[Any] = []

    @abstractmethod
    def extend(self, values: Sequence[Any]) -> None:
        """Append values."""

    def flush(self, store: BlockStore) -> None:
        """Create a block of the rows added since the last block."""
        self._blocks.append(self.pack(store))
        # Arrays may still refer to the old buffer, so create a new buffer.
        self._rows = type(self._rows)()

    def pack(self, store: BlockStore) -> Any:
        """Return the pending rows as a block."""
        return store.keep(bytes(self._rows))

    def pending(self) -> NDArray[Any]:
        """Return the rows that are not in a block yet."""
        return np.frombuffer(self._rows, dtype=self.dtype)

    def block(self, number: int, store: BlockStore) -> NDArray[Any]:
        """Return the rows of a block."""
        return np.frombuffer(store.get(self._blocks[number]), dtype=self.dtype)


class _Packed(Struct, frozen=True):
    """Integers as differences from their minimum."""

    base: int
    type: str
    """NumPy's name for the type of the differences; empty if all of them are 0."""
    count: int
    kept: _Kept


class _IntColumn(_Column):
    """A column of integers; None is stored as ``ABSENT``."""

    def extend(self, values: Sequence[Any]) -> None:
        try:
            self._rows += struct.pack(f"{len(values)}q", *values)
        except struct.error:
            self.extend([ABSENT if value is None else value for value in values])

    def pack(self, store: BlockStore) -> _Packed:
        rows = np.frombuffer(self._rows, dtype=np.int64)
        base, most = int(rows.min()), int(rows.max())
        if base == most:
            return _Packed(base, "", len(rows), (0, 0))
        kind = np.min_scalar_type(most - base).str
        # The difference wraps modulo 2**64, and so does the sum that restores the values.
        kept = store.keep((rows - np.int64(base)).astype(kind).tobytes())
        return _Packed(base, kind, len(rows), kept)

    def block(self, number: int, store: BlockStore) -> NDArray[Any]:
        packed = self._blocks[number]
        if not packed.type:
            return np.full(packed.count, packed.base, dtype=np.int64)
        rows = np.frombuffer(store.get(packed.kept), dtype=packed.type).astype(np.int64)
        rows += np.int64(packed.base)
        return rows


class _FloatColumn(_Column):
    """Floating-point numbers."""

    dtype = "f8"

    def extend(self, values: Sequence[Any]) -> None:
        self._rows += array("d", values).tobytes()


class _NameColumn(_IntColumn):
    """A column of text with few distinct values; rows with equal text share an object."""

    def __init__(self) -> None:
        super().__init__()
        self._codes = defaultdict[str | None, int](count().__next__)
        self._texts = np.empty(0, dtype=object)

    def extend(self, values: Sequence[Any]) -> None:
        super().extend([self._codes[text] for text in values])

    def pending(self) -> NDArray[Any]:
        return self._named(super().pending())

    def block(self, number: int, store: BlockStore) -> NDArray[Any]:
        return self._named(super().block(number, store))

    def _named(self, codes: Ints) -> NDArray[Any]:
        if len(self._texts) < len(self._codes):
            self._texts = np.fromiter(self._codes, dtype=object, count=len(self._codes))
        return np.asarray(self._texts[codes], dtype=object)


class _TextColumn(_Column):
    """A column of text with mostly distinct values, for which an index would waste memory."""

    def __init__(self) -> None:
        super().__init__()
        self._rows = []

    def extend(self, values: Sequence[Any]) -> None:
        self._rows += values

    def pack(self, store: BlockStore) -> _Kept:
        return store.keep(orjson.dumps(self._rows))

    def pending(self) -> NDArray[Any]:
        return np.fromiter(self._rows, dtype=object, count=len(self._rows))

    def block(self, number: int, store: BlockStore) -> NDArray[Any]:
        rows = orjson.loads(store.get(self._blocks[number]))
        return np.fromiter(rows, dtype=object, count=len(rows))


def _column(kind: Any, *, distinct: bool) -> _Column:
    """Return a column for values of a type, or of an optional type."""
    kinds = {kind, *get_args(kind)}
    if not kinds.isdisjoint({bool, int}):
        return _IntColumn()
    if float in kinds:
        return _FloatColumn()
    return _TextColumn() if distinct else _NameColumn()


class TableBuilder:
    """A table that grows by a record at a time.

    Parameters
    ----------
    types
        Type of each column, from the fields of a record type.
    skip
        Columns of text to leave out.
    store
        Store for full blocks.
    """

    def __init__(
        self, types: Mapping[str, object], skip: frozenset[str], store: BlockStore
    ) -> None:
        self._columns = {
            column: _column(kind, distinct=column in {"delivery", "host_id", "key", "request_id"})
            for column, kind in types.items()
            if column not in skip
        }
        self._store = store
        self._pending = 0
        self._counts: list[int] = []
        self._first: list[int] = []

    def extend(self, columns: Mapping[str, Sequence[Any]], count: int) -> None:
        """Append the ``count`` rows of a record."""
        for name, column in self._columns.items():
            column.extend(columns[name])
        self._pending += count
        if self._pending >= BLOCK_ROWS and "function" in self._columns:
            self._flush()

    def finish(self) -> Table:
        """Return the table; no rows can be appended afterwards."""
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
