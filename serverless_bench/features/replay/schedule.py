"""Schedule of a replay: compact text that a job, and each of its functions, carries.

It has no key of the log. An object has a name: the first 128 bits of an HMAC of the key with the
user's secret, where another object at that key, of another size for instance, has the next name; or
without a secret, a hash of the number.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from serverless_bench.base import packed
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.types import wrong

MISSING: Final = -1
"""Length of a request for an object that does not exist."""
NAME_BITS: Final = 128
_MOST_LISTS: Final = 64
"""Lists in a schedule: columns, and totals of each kind of operation."""


class Row(NamedTuple):
    """One operation of a schedule."""

    due_us: int
    """Microseconds after the first operation of the job."""
    kind: OperationKind
    object: int
    """Number of the object; -1 for a listing."""
    offset: int
    length: int
    """Bytes of a range, 0 for other kinds, or ``MISSING``."""


class ReplaySchedule(NamedTuple):
    """Operations, and the objects that they need; for a plan, the totals alone."""

    totals: Sequence[tuple[OperationKind, int, int]]
    """Kind, number and bytes of all operations of the job."""
    made: tuple[int, int]
    """Number and bytes of the objects that the job prepares."""
    lasts_us: int
    """Time from the first operation to the last."""
    names: Sequence[int] = ()
    sizes: Sequence[int] = ()
    """Names and sizes of the objects; those of size 0 never exist."""
    prepared: Sequence[int] = ()
    """Numbers of the objects to prepare; copies also need their sources."""
    rows: Sequence[Row] = ()

    def pack(self) -> str:
        """Return the schedule as text."""
        names = [f"{name:x}" for name in self.names]
        # Columns compress better than rows.
        columns = [[row[place] for row in self.rows] for place in range(len(Row._fields))]
        return packed.pack([*self[:3], names, *self[4:6], columns])

    def copied(self) -> list[int]:
        """Return the numbers of the objects that are copies at some time."""
        return sorted({row.object for row in self.rows if row.kind is OperationKind.COPY})

    def of_thread(self, thread: int, threads: int) -> Iterator[Row]:
        """Yield the operations of a thread: those on an object that changes stay in order.

        Any thread may read an object that no operation writes or deletes.
        """
        changing = {
            row.object
            for row in self.rows
            if row.kind in {OperationKind.PUT, OperationKind.COPY, OperationKind.DELETE}
        }
        yield from (
            row
            for position, row in enumerate(self.rows)
            if (row.object if row.object in changing else position) % threads == thread
        )


@lru_cache(maxsize=4)
def unpack(text: str) -> ReplaySchedule:
    """Return the schedule in a text.

    Raises
    ------
    UsageError
        If the text is not that of a schedule.
    """
    try:
        data = packed.unpack(text, most_lists=_MOST_LISTS)
        totals, made, lasts_us, names, sizes, prepared, columns = data
        schedule = ReplaySchedule(
            [(OperationKind(kind), int(count), int(size)) for kind, count, size in totals],
            (int(made[0]), int(made[1])),
            int(lasts_us),
            [int(name, 16) for name in names],
            [int(size) for size in sizes],
            [int(number) for number in prepared],
            [
                Row(int(due_us), OperationKind(kind), *map(int, rest))
                for due_us, kind, *rest in zip(*columns, strict=True)
            ],
        )
        numbers = [*schedule.prepared, *(row.object for row in schedule.rows)]
        objects = zip(schedule.names, schedule.sizes, strict=True)
        fits = all(-1 <= number < len(names) for number in numbers)
        if fits and all(0 <= n < 1 << NAME_BITS and size >= 0 for n, size in objects):
            return schedule
    except (ValueError, TypeError, LookupError, RecursionError):
        pass
    raise wrong("log", "is not the schedule of a replay", hint="give the log to sbench replay")


# The driver asks for the part of each function, one after the other.
@lru_cache(maxsize=4)
def deal(text: str, functions: int) -> Sequence[str]:
    """Return the parts of a schedule, one for each function: all operations on an object in one."""
    whole = unpack(text)
    rows: list[list[Row]] = [[] for _ in range(functions)]
    for position, row in enumerate(whole.rows):
        # A listing has -1, which stays.
        number = position if row.object < 0 else row.object
        rows[number % functions].append(row._replace(object=row.object // functions))
    return [
        whole._replace(
            names=whole.names[index::functions],
            sizes=whole.sizes[index::functions],
            prepared=[n // functions for n in whole.prepared if n % functions == index],
            rows=rows[index],
        ).pack()
        for index in range(functions)
    ]
