"""Tables as columns: what a run's rows become once they are loaded."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from serverless_bench.plugins import extra

if TYPE_CHECKING:
    import pandas as pd

Table = Mapping[str, NDArray[Any]]
"""Columns of equal length by name. Integers are int64, text is objects. Those of a large run are
read, or computed, each time that they are looked at (``BlockTable``, ``DerivedTable``)."""
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Percentiles = Mapping[str, float]
"""Of raw values, by names such as ``p50``."""

ABSENT: Final = -1
"""Stands for None in integer columns: no instant, size or count is negative."""
EARLIEST, LATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
"""Before and after every instant."""
READS: Final = ("get", "get_range")
"""Kinds of operations that read an object or a part of it."""

_PART_ROWS: Final = 1 << 20
"""Rows that are worked on at a time; bounds the memory of a large reduction."""
RATE_PERCENTILES: Final = (1, 5, 50, 95, 99)

_DURATIONS: Final = frozenset(
    {
        "gate_wait_ns",
        "import_ns",
        "interpreter_ns",
        "payload_ns",
        "run_wait_ns",
        "step_ns",
        "wait_ns",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frames:
    """A run as tidy pandas frames.

    The column ``function`` of the others is the index of ``functions``. Instants
    are UTC timestamps without the ``_ns`` in their names, everything else keeps its unit
    there, and what is absent is missing (``NaT``, ``NA``).
    """

    functions: "pd.DataFrame"
    """One row per planned invocation, and one per further line about it."""
    operations: "pd.DataFrame"
    """One row per operation."""
    attempts: "pd.DataFrame"
    """One row per HTTP attempt."""
    progress: "pd.DataFrame"
    """One row per stretch of an operation with an even rate."""
    usages: "pd.DataFrame"
    """One row per operation whose library was watched."""


class _ReadTable(Table):
    """A table whose columns are made whenever they are looked at.

    Parameters
    ----------
    columns
        Whatever they are made from, by name.
    """

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = columns

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the columns."""
        return iter(self._columns)

    def __len__(self) -> int:
        """Return how many columns there are."""
        return len(self._columns)


class ChangedTable(_ReadTable):
    """Another table with some of its columns changed, whenever they are looked at.

    Parameters
    ----------
    table
        The other one.
    change
        Returns a column by its name, of the table or a part of it.
    """

    def __init__(self, table: Table, change: Callable[[str, Table], NDArray[Any]]) -> None:
        super().__init__(table)
        self._change = change

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a whole column."""
        return self._change(name, self._columns)

    def parts(self) -> Iterator[Table]:
        """Yield parts that have all rows of their functions."""
        return (ChangedTable(part, self._change) for part in parts(self._columns))

    def part_of(self, function: int) -> Table:
        """Return a part that has all rows of a function."""
        return ChangedTable(part_of(self._columns, function), self._change)


class BlockTable(_ReadTable):
    """A table in blocks; all rows of a function are in one block.

    A column is in memory as long as somebody holds it, and no longer.

    Parameters
    ----------
    columns
        By name, what returns the rows of a block.
    counts
        Rows of each block.
    first
        The first function of each block.
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
        """Return a whole column."""
        read, start = self._columns[name], 0
        whole = np.empty(sum(self._counts), dtype=read(0).dtype)
        for number, count in enumerate(self._counts):
            whole[start : start + count] = read(number)
            start += count
        return whole

    def parts(self) -> Iterator[Table]:
        """Yield the blocks."""
        return map(self._block, range(len(self._counts)))

    def part_of(self, function: int) -> Table:
        """Return the block that would have the rows of a function."""
        return self._block(max(0, bisect_right(self._first, function) - 1))

    def _block(self, number: int) -> Table:
        return _RowBlock({name: partial(read, number) for name, read in self._columns.items()})


class _RowBlock(_ReadTable):
    """One block of a table."""

    def __getitem__(self, name: str) -> NDArray[Any]:
        read: Callable[[], NDArray[Any]] = self._columns[name]
        return read()


def parts(table: Table) -> Iterator[Table]:
    """Yield a table in parts of about ``_PART_ROWS``, each with all rows of its functions."""
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
    """Return a part of a table that has all rows of a function."""
    return table.part_of(function) if isinstance(table, ChangedTable | BlockTable) else table


def is_text(column: NDArray[Any], text: str | None) -> Mask:
    """Return which rows of a text column are ``text``, or are empty for None."""
    return np.asarray(column == text, dtype=np.bool_)


def is_one_of(column: NDArray[Any], texts: Iterable[str]) -> Mask:
    """Return which rows of a text column are one of ``texts``."""
    found = np.zeros(len(column), dtype=np.bool_)
    for text in texts:
        found |= is_text(column, text)
    return found


def is_among(column: Ints, some: "Ints | Sequence[int]") -> Mask:
    """Return which rows of a column of numbers are one of ``some``: often there are none."""
    if not len(column) or not len(some):
        # `isin` imports masked arrays; see `at_percentiles`.
        return np.zeros(len(column), dtype=np.bool_)
    return np.isin(column, some)


def sum_by(group: Ints, values: Ints, count: int) -> Ints:
    """Return the sum of each group's values, shape ``(count,)``; 0 of a group without any."""
    found = np.zeros(count, dtype=np.int64)
    np.add.at(found, group, values)
    return found


def least_by(group: Ints, values: Ints, count: int) -> Ints:
    """Return the least of each group's values, shape ``(count,)``; ``LATEST`` without any."""
    found = np.full(count, LATEST)
    np.minimum.at(found, group, values)
    return found


def largest_by(group: Ints, values: Ints, count: int) -> Ints:
    """Return the largest of each group's values, shape ``(count,)``; ``EARLIEST`` without any."""
    found = np.full(count, EARLIEST)
    np.maximum.at(found, group, values)
    return found


def rows_of(table: Table, function: int, names: Iterable[str]) -> Table:
    """Return columns of the rows that belong to a row of ``functions``."""
    part = part_of(table, function)
    begin, end = np.searchsorted(part["function"], (function, function + 1)).tolist()
    return {name: part[name][begin:end] for name in names}


def flattened(data: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield what nested mappings hold, by dotted name."""
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from flattened(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def rank_of(percent: float, count: int) -> int:
    """Return the rank, from 1, of a percentile among so many sorted values: the nearest one.

    It is that of the least value that so many % of all are not above.
    """
    # Rounded first: 0.07 * 100 is 7.000000000000001 in binary.
    return max(1, ceil(round(percent * count / 100, 6)))


def at_ranks(values: NDArray[Any], ranks: Sequence[int]) -> Floats:
    """Return the values of some ranks, from 1, of values in any order."""
    places = np.asarray(ranks) - 1
    # ``numpy.percentile`` imports masked arrays, which take as long as all of a small report.
    return np.asarray(np.partition(values, places)[places], dtype=np.float64)


def at_percentiles(values: NDArray[Any], wanted: Sequence[float]) -> Floats:
    """Return percentiles of at least one value, see ``rank_of``."""
    return at_ranks(values, [rank_of(percent, len(values)) for percent in wanted])


def percentiles(values: Floats) -> dict[str, float] | None:
    """Return p1, p5, p50, p95 and p99 of raw values, and ``n`` of them; None if there are none."""
    if not len(values):
        return None
    found = at_percentiles(values, RATE_PERCENTILES).tolist()
    return {f"p{p}": v for p, v in zip(RATE_PERCENTILES, found, strict=True)} | {"n": len(values)}


def to_frame(table: Table) -> "pd.DataFrame":
    """Return a table as a pandas frame; see ``Frames``.

    Raises
    ------
    PluginError
        If pandas is not installed.
    """
    with extra("frames", "a frame"):
        import pandas as pd  # noqa: PLC0415 - an extra, and slow
    frame = pd.DataFrame(dict(table))
    for name in table:
        column = frame[name]
        if column.dtype != "int64":
            continue
        absent = column == ABSENT
        if name.endswith("_ns") and name not in _DURATIONS:
            instants = pd.to_datetime(column.mask(absent), utc=True)
            frame = frame.rename(columns={name: name.removesuffix("_ns")})
            frame[name.removesuffix("_ns")] = instants
        elif absent.any():
            frame[name] = column.astype("Int64").mask(absent)
    return frame
