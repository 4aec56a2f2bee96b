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
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import count
from typing import IO, Any, Final, get_args

import numpy as np
import orjson
from numpy.typing import NDArray

from serverless_bench.errors import ArchiveError
from serverless_bench.rundir.tables import ABSENT, BlockTable, Ints, Table

BLOCK_ROWS: Final = 1 << 16
"""Rows, or a few more, that make a block; tables of fewer are plain arrays."""
IN_MEMORY_BYTES: Final = 128 << 20
"""Packed blocks of one run that stay in memory."""

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
    """One column, whose values are of its type: ``reader`` has checked them."""

    dtype = "i8"

    def __init__(self) -> None:
        self._rows: Any = bytearray()
        """Those in no block: the bytes of numbers, or a list."""
        self._blocks: list[Any] = []

    @abstractmethod
    def extend(self, values: Sequence[Any]) -> None:
        """Append values."""

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
        # Modulo 2**64, and so is the sum that gives the values back.
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
    """Text of which there are few: one object for each, however many rows have it."""

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
    """Text that every row has another of: an index of it would only cost memory."""

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


_DISTINCT: Final = frozenset({"delivery", "host_id", "key", "request_id"})


def _column(kind: Any, *, distinct: bool) -> _Column:  # noqa: ANN401 - a type, or a union of some
    """Return a column for values of a type, or of that type and None."""
    kinds = {kind, *get_args(kind)}
    if not kinds.isdisjoint({bool, int}):
        return _IntColumn()
    if float in kinds:
        return _FloatColumn()
    return _TextColumn() if distinct else _NameColumn()


class TableBuilder:
    """A table that grows, a record at a time.

    Parameters
    ----------
    types
        The type of each column, from the fields of a record type.
    skip
        Columns of text to leave out.
    store
        Where full blocks go.
    """

    def __init__(
        self, types: Mapping[str, object], skip: frozenset[str], store: BlockStore
    ) -> None:
        self._columns = {
            column: _column(kind, distinct=column in _DISTINCT)
            for column, kind in types.items()
            if column not in skip
        }
        self._store = store
        self._pending = 0
        self._counts: list[int] = []
        self._first: list[int] = []

    def extend(self, columns: Mapping[str, Sequence[Any]], count: int) -> None:
        """Append ``count`` rows, those of one record."""
        for name, column in self._columns.items():
            column.extend(columns[name])
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
