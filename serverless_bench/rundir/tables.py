"""Tables of a loaded run as columns."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import ceil
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from serverless_bench.base.errors import Hedged

Table = Mapping[str, NDArray[Any]]
"""Columns of equal length by name. Integers are int64, text is stored as objects. The columns of a
large run are read or computed on each access (``BlockTable``, ``DerivedTable``)."""
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Percentiles = Mapping[str, float]
"""Percentiles of raw values by name, such as ``p50``."""

ABSENT: Final = -1
"""Represents None in integer columns; times, sizes and counts are non-negative."""
EARLIEST, LATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
"""Sentinels before and after all times."""
READS: Final = ("get", "get_range")
"""Operation kinds that read an object or a part of it."""

_PART_ROWS: Final = 1 << 20
"""Number of rows that are processed at a time; limits the memory of a large reduction."""
RATE_PERCENTILES: Final = (1, 5, 50, 95, 99)


class _ReadTable(Table):
    """A table that computes its columns on access.

    Parameters
    ----------
    columns
        Sources of the columns, by name.
    """

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = columns

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the columns."""
        return iter(self._columns)

    def __len__(self) -> int:
        """Return the number of columns."""
        return len(self._columns)


class ChangedTable(_ReadTable):
    """A table with some columns of another table changed on access.

    Parameters
    ----------
    table
        The other table.
    change
        Function that returns a column by name, given the table or a part of it.
    """

    def __init__(self, table: Table, change: Callable[[str, Table], NDArray[Any]]) -> None:
        super().__init__(table)
        self._change = change

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return the full column."""
        return self._change(name, self._columns)

    def parts(self) -> Iterator[Table]:
        """Yield parts that contain all rows of their functions."""
        return (ChangedTable(part, self._change) for part in parts(self._columns))

    def part_of(self, function: int) -> Table:
        """Return a part that contains all rows of a function."""
        return ChangedTable(part_of(self._columns, function), self._change)


class BlockTable(_ReadTable):
    """A table in blocks; all rows of a function are in the same block.

    A column is in memory only while a caller holds a reference to it.

    Parameters
    ----------
    columns
        Functions that return the rows of a block, by column name.
    counts
        Number of rows of each block.
    first
        First function of each block.
    """

    def __init__(
        self,
        columns: Mapping[str, Callable[[int], NDArray[Any]]],
        counts: Sequence[int],
        first: Sequence[int],
    ) -> None:
        super().__init__(columns)
        self._counts = counts
        self._first = first

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return the full column."""
        read, start = self._columns[name], 0
        values = np.empty(sum(self._counts), dtype=read(0).dtype)
        for number, count in enumerate(self._counts):
            values[start : start + count] = read(number)
            start += count
        return values

    def parts(self) -> Iterator[Table]:
        """Yield the blocks."""
        return map(self._block, range(len(self._counts)))

    def part_of(self, function: int) -> Table:
        """Return the block that contains the rows of a function, if it has any."""
        return self._block(max(0, bisect_right(self._first, function) - 1))

    def _block(self, number: int) -> Table:
        return _RowBlock({name: partial(read, number) for name, read in self._columns.items()})


class _RowBlock(_ReadTable):
    """One block of a table."""

    def __getitem__(self, name: str) -> NDArray[Any]:
        read: Callable[[], NDArray[Any]] = self._columns[name]
        return read()


def parts(table: Table) -> Iterator[Table]:
    """Yield parts of about ``_PART_ROWS`` rows, each with all rows of its functions."""
    if isinstance(table, ChangedTable | BlockTable):
        yield from table.parts()
        return
    begin, function = 0, table["function"]
    while begin < len(function):
        last = min(begin + _PART_ROWS, len(function)) - 1
        end = int(np.searchsorted(function, function[last], side="right"))
        yield {name: table[name][begin:end] for name in table}
        begin = end


def part_of(table: Table, function: int) -> Table:
    """Return a part of a table that contains all rows of a function."""
    return table.part_of(function) if isinstance(table, ChangedTable | BlockTable) else table


def is_text(column: NDArray[Any], text: str | None) -> Mask:
    """Return a mask of the rows of a text column equal to ``text``; None selects empty rows."""
    return np.asarray(column == text, dtype=np.bool_)


def is_one_of(column: NDArray[Any], texts: Iterable[str]) -> Mask:
    """Return a mask of the rows of a text column that are in ``texts``."""
    mask = np.zeros(len(column), dtype=np.bool_)
    for text in texts:
        mask |= is_text(column, text)
    return mask


def failed_attempts(attempts: Table) -> Mask:
    """Return a mask of the attempts that failed; one that was given up for another did not."""
    return ~is_text(attempts["error"], None) & ~is_text(attempts["error"], Hedged.code)


def is_among(column: Ints, some: "Ints | Sequence[int]") -> Mask:
    """Return a mask of the rows of an integer column that are in ``some``, which is often empty."""
    if not len(column) or not len(some):
        # `isin` imports masked arrays; see `at_percentiles`.
        return np.zeros(len(column), dtype=np.bool_)
    return np.isin(column, some)


def distinct(column: Ints) -> Ints:
    """Return the distinct values, sorted; without counts, `unique` imports masked arrays."""
    return np.unique(column, return_counts=True)[0]


def sum_by(group: Ints, values: Ints, count: int) -> Ints:
    """Return the sum of each group's values, shape ``(count,)``; 0 for an empty group."""
    sums = np.zeros(count, dtype=np.int64)
    np.add.at(sums, group, values)
    return sums


def least_by(group: Ints, values: Ints, count: int) -> Ints:
    """Return the minimum of each group, shape ``(count,)``; ``LATEST`` for an empty group."""
    minima = np.full(count, LATEST)
    np.minimum.at(minima, group, values)
    return minima


def largest_by(group: Ints, values: Ints, count: int) -> Ints:
    """Return the maximum of each group, shape ``(count,)``; ``EARLIEST`` for an empty group."""
    maxima = np.full(count, EARLIEST)
    np.maximum.at(maxima, group, values)
    return maxima


def rows_of(table: Table, function: int, names: Iterable[str]) -> Table:
    """Return columns of the rows that belong to a row of ``functions``."""
    part = part_of(table, function)
    begin, end = np.searchsorted(part["function"], (function, function + 1)).tolist()
    return {name: part[name][begin:end] for name in names}


def rank_of(percent: float, count: int) -> int:
    """Return the nearest rank, from 1, of a percentile among ``count`` sorted values.

    It is the rank of the smallest value for which at least ``percent`` % of the values are not
    larger.
    """
    # Round first: 0.07 * 100 is 7.000000000000001 in binary floating point.
    return max(1, ceil(round(percent * count / 100, 6)))


def at_ranks(values: NDArray[Any], ranks: Sequence[int]) -> Floats:
    """Return the values at the given ranks, from 1, of values in any order."""
    places = np.asarray(ranks) - 1
    # ``numpy.percentile`` imports masked arrays, which takes as long as a complete small report.
    return np.asarray(np.partition(values, places)[places], dtype=np.float64)


def at_percentiles(values: NDArray[Any], wanted: Sequence[float]) -> Floats:
    """Return percentiles of a non-empty array; see ``rank_of``."""
    return at_ranks(values, [rank_of(percent, len(values)) for percent in wanted])


def percentiles(values: Floats) -> dict[str, float] | None:
    """Return p1, p5, p50, p95, p99 and the number ``n`` of raw values; None if there are none."""
    if not len(values):
        return None
    levels = at_percentiles(values, RATE_PERCENTILES).tolist()
    return {f"p{p}": v for p, v in zip(RATE_PERCENTILES, levels, strict=True)} | {"n": len(values)}


def median_of(values: "Floats | Ints | list[float]") -> float | None:
    """Return the median of the values that are not NaN, or None."""
    numbers = np.asarray(values)[~np.isnan(values)]
    middle = ((len(numbers) + 1) // 2, len(numbers) // 2 + 1)
    return float(at_ranks(numbers, middle).mean()) if len(numbers) else None
