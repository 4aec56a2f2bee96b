"""Tables as columns: what a run's rows become once they are loaded."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from serverless_bench.plugins import extra

if TYPE_CHECKING:
    import pandas as pd

Table = dict[str, NDArray[Any]]
"""Columns of equal length by name. Integers are int64, text is objects."""
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

ABSENT: Final = -1
"""Stands for None in integer columns: no instant, size or count is negative."""
EARLIEST, LATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
"""Before and after every instant."""
READS: Final = ("get", "get_range")
"""Kinds of operations that read an object or a part of it."""

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


def is_text(column: NDArray[Any], text: str | None) -> Mask:
    """Return which rows of a text column are ``text``, or are empty for None."""
    return np.asarray(column == text, dtype=np.bool_)


def is_one_of(column: NDArray[Any], texts: Iterable[str]) -> Mask:
    """Return which rows of a text column are one of ``texts``."""
    found = np.zeros(len(column), dtype=np.bool_)
    for text in texts:
        found |= is_text(column, text)
    return found


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


def rows_of(table: Table, function: int) -> slice:
    """Return the rows that belong to a row of ``functions``; they come function by function."""
    return slice(*np.searchsorted(table["function"], (function, function + 1)).tolist())


def flattened(data: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield what nested mappings hold, by dotted name."""
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from flattened(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def percentiles(values: Floats) -> dict[str, float] | None:
    """Return p1, p5, p50, p95 and p99 of raw values, or None if there are none.

    NumPy's default method, linear interpolation between order statistics (Hyndman and
    Fan's type 7).
    """
    if not len(values):
        return None
    found = np.percentile(values, RATE_PERCENTILES)
    return {f"p{p}": float(v) for p, v in zip(RATE_PERCENTILES, found, strict=True)}


def to_frame(table: Table) -> "pd.DataFrame":
    """Return a table as a pandas frame; see ``Frames``.

    Raises
    ------
    PluginError
        If pandas is not installed.
    """
    with extra("frames", "a frame"):
        import pandas as pd  # noqa: PLC0415 - an extra, and slow
    frame = pd.DataFrame(table)
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
