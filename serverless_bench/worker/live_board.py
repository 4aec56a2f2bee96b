"""The live board: what functions tell the driver while they run, as counters in shared memory.

A board is a row of 64-bit counters. It begins with a header, in which the driver writes; then
come slots of equal length, one per worker process, in which that worker writes
(``live_layout``). Counters of a slot only grow. Who reads adds up the slots, and subtracts
what it saw before.

Only one process writes into a slot, so processes cannot lose each other's counts. Threads of
that process share it under the interpreter's lock: CPython lets another thread run only at
calls and where code jumps back, and ``words[i] += n`` has neither between its read and its
write. (An interpreter without that lock would need another one here.) A handful of additions
after an operation, outside of what is timed, take about a microsecond.

What functions have done that share no memory with their driver (AWS Lambda, Lithops, Dask) is
known when their records have come: ``BoardWriter.add_record``.
"""

import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from mmap import mmap
from operator import add, sub
from typing import Final, cast

from serverless_bench.clock import wall_ns
from serverless_bench.job.price_classes import FREE, FREE_STATUS, GET_CLASS
from serverless_bench.rundir.record import (
    Attempt,
    AttemptRow,
    InvocationRecord,
    OperationRecord,
    OperationRow,
)
from serverless_bench.rundir.rows import to_columns
from serverless_bench.units import NS_PER_S
from serverless_bench.worker import live_layout as at
from serverless_bench.worker.cpu_time import awake_ns
from serverless_bench.worker.live_layout import bucket_of

_PRICE_CLASS: Final = {
    **dict.fromkeys(GET_CLASS, at.GETS),
    **dict.fromkeys(FREE, at.FREE),
}
"""Where requests are counted by what they cost; all others are of the PUT class."""
_OPERATIONS: Final = at.OPERATIONS
_RETRIES: Final = at.RETRIES
_PUTS: Final = at.PUTS
_IN_FLIGHT_NS: Final = at.IN_FLIGHT_NS
_HISTOGRAM: Final = at.HISTOGRAM
_KIND_NUMBER: Final = at.KIND_NUMBER
_WARM_UP: Final = at.KIND_NUMBER[at.WARM_UP]
_WORD_BYTES: Final = 8
_AT_ONCE: Final = 32
_COUNT_NS: Final = NS_PER_S // 10
"""Operations are counted so many at a time, or those of so long: nobody looks more often."""
_SAMPLE_NS: Final = NS_PER_S // 2
"""A worker looks this seldom at the processor time that it has used."""


@dataclass(frozen=True, slots=True)
class BoardTotals:
    """What the slots of a board add up to, or what was added between two looks.

    Parameters
    ----------
    words
        Of one slot, or of the sum of all.
    """

    words: Sequence[int]

    def since(self, before: "BoardTotals") -> "BoardTotals":
        """Return what has been added since ``before``."""
        return BoardTotals(tuple(map(sub, self.words, before.words)))

    @property
    def bytes(self) -> Mapping[str, int]:
        """Moved in bodies, by kind of operation; those of failed attempts as well."""
        return self._by_kind(at.BYTES)

    @property
    def operations(self) -> Mapping[str, int]:
        """Operations that have ended, by kind."""
        return self._by_kind(at.OPERATIONS)

    @property
    def failed(self) -> Mapping[str, int]:
        """Operations that have ended with an error, by kind."""
        return self._by_kind(at.FAILED)

    @property
    def failures(self) -> Mapping[str, int]:
        """Failed attempts by class, as in ``FAILURES``; ``corrupt`` counts operations."""
        return dict(zip(at.FAILURES, self.words[at.FAILURE : at.RETRIES], strict=True))

    @property
    def attempts(self) -> int:
        """Attempts that have ended, of operations that have ended."""
        return sum(self.words[at.GETS : at.FREE + 1])

    @property
    def retries(self) -> int:
        """Attempts that were not the first of their request."""
        return self.words[at.RETRIES]

    @property
    def gets(self) -> int:
        """Attempts that Amazon S3 charges for as it does for GET."""
        return self.words[at.GETS]

    @property
    def puts(self) -> int:
        """Attempts that Amazon S3 charges for as it does for PUT."""
        return self.words[at.PUTS]

    @property
    def in_flight_ns(self) -> int:
        """The time that attempts took, added up."""
        return self.words[at.IN_FLIGHT_NS]

    @property
    def awake_ns(self) -> int:
        """Processor time of the functions, and their time in the queue for a processor."""
        return self.words[at.AWAKE_NS]

    @property
    def histogram(self) -> Sequence[int]:
        """Latencies of measured operations that succeeded, by bucket as in ``live_layout``.

        In an open loop they begin when the operation was due.
        """
        return self.words[at.HISTOGRAM : at.HISTOGRAM + at.BUCKETS]

    @property
    def measured(self) -> int:
        """Operations that have ended, without preparations and warm-ups."""
        return sum(self.words[at.OPERATIONS : at.FAILED - 1])

    @property
    def moved(self) -> int:
        """Bytes of all kinds."""
        return sum(self.words[at.BYTES : at.OPERATIONS])

    def __add__(self, more: "BoardTotals") -> "BoardTotals":
        return BoardTotals(tuple(map(add, self.words, more.words)))

    def _by_kind(self, first: int) -> Mapping[str, int]:
        return dict(zip(at.KINDS, self.words[first : first + len(at.KINDS)], strict=True))


class LiveBoard:
    """Counters that functions and their driver share.

    Parameters
    ----------
    memory
        ``size_of`` the slots in bytes, zeros at first: a mapped file where functions are
        processes of their own.
    """

    def __init__(self, memory: bytearray | mmap) -> None:
        self._words = memoryview(memory).cast("B").cast("Q")
        self.slots = (len(self._words) - at.HEADER_WORDS) // at.SLOT_WORDS

    @classmethod
    def here(cls) -> "LiveBoard":
        """Return a board of one slot, for what happens in this process."""
        return cls(bytearray(cls.size_of(1)))

    @staticmethod
    def size_of(slots: int) -> int:
        """Return the bytes of a board."""
        return (at.HEADER_WORDS + slots * at.SLOT_WORDS) * _WORD_BYTES

    def stop(self) -> None:
        """Have functions with a duration end as if it had passed, each after its operation.

        Functions without a duration go on.
        """
        self._words[at.STOP] = 1

    @property
    def stopped(self) -> bool:
        """Whether they are to end."""
        return self._words[at.STOP] != 0

    def writer(self, slot: int = 0) -> "BoardWriter":
        """Return what writes into a slot; the process that runs the functions makes it."""
        first = at.HEADER_WORDS + slot * at.SLOT_WORDS
        return BoardWriter(self, self._words[first : first + at.SLOT_WORDS])

    def totals(self) -> BoardTotals:
        """Return the sum over all slots."""
        # A slot is read as one long number, and these are added: no count comes near 2**64,
        # so nothing is carried from one word into the next. 1,000 slots take a millisecond.
        size, first = at.SLOT_WORDS * _WORD_BYTES, at.HEADER_WORDS * _WORD_BYTES
        data, order = self._words.cast("B"), sys.byteorder
        begins = range(first, first + self.slots * size, size)
        total = sum(int.from_bytes(data[begin : begin + size], order) for begin in begins)
        return BoardTotals(tuple(memoryview(total.to_bytes(size, order)).cast("Q")))


class BoardWriter:
    """One slot of a board, for the only process that writes into it.

    Parameters
    ----------
    board
        Has the slot.
    words
        The slot.
    """

    def __init__(self, board: LiveBoard, words: "memoryview[int]") -> None:
        self._board = board
        self._words = words
        self._pending = deque[tuple[OperationRow, Sequence[AttemptRow]]]()
        self._count_at_ns = 0
        self._awake_ns = awake_ns()
        self._sample_at_ns = wall_ns() + _SAMPLE_NS
        self.on_moved: Mapping[str, Callable[[int], None]] = {
            kind: self._adder(at.BYTES + n) for n, kind in enumerate(at.KINDS)
        }
        """By kind of operation: to be called with the number of bytes that have moved."""

    def _adder(self, index: int) -> Callable[[int], None]:
        words = self._words

        def moved(count: int) -> None:
            words[index] += count

        return moved

    @property
    def stopped(self) -> bool:
        """Whether functions with a duration are to end."""
        return self._board.stopped

    def ended(self, operation: OperationRow, attempts: Sequence[AttemptRow]) -> None:
        """Take an operation that has ended, and its attempts; some are counted at a time.

        Whoever ends calls ``count`` at last.
        """
        # Between two operations this code leaves the caches of the processor; for a row it stays.
        pending, end_ns = self._pending, operation[4]
        pending.append((operation, attempts))
        if len(pending) >= _AT_ONCE or end_ns >= self._count_at_ns:
            self._count_at_ns = end_ns + _COUNT_NS
            self.count()
            if end_ns >= self._sample_at_ns:
                self._sample(end_ns)

    def count(self) -> None:
        """Count what has ended until now."""
        # Threads may do so at once: each takes what the others have not.
        while self._pending:
            try:
                operation, attempts = self._pending.popleft()
            except IndexError:
                return
            self._add(operation, attempts)

    def _add(self, operation: OperationRow, attempts: Sequence[AttemptRow]) -> None:
        words, error = self._words, operation[12]
        kind = _WARM_UP if operation[13] else _KIND_NUMBER[operation[0]]
        words[_OPERATIONS + kind] += 1
        if error is not None:
            self._failed(kind, error)
        elif kind != _WARM_UP:
            intended_ns = operation[17]
            begin_ns = operation[3] if intended_ns is None else intended_ns
            words[_HISTOGRAM + bucket_of(operation[4] - begin_ns)] += 1
        if not attempts:
            # A span of a user's function: its bytes are what it says.
            words[at.BYTES + kind] += operation[7]
        for row in attempts:
            words[_IN_FLIGHT_NS] += row[4] - row[3]
            if row[2]:
                words[_RETRIES] += 1
            code, status = row[7], row[6]
            # Of what is corrupt the operation has been counted.
            if code is not None and code != "corrupt":
                words[at.FAILURE + at.FAILURE_NUMBER.get(code, at.OTHER_FAILURE)] += 1
            if status is None or status < FREE_STATUS:
                words[_PRICE_CLASS.get(row[0], _PUTS)] += 1
            else:
                words[at.FREE] += 1

    def _failed(self, kind: int, error: str) -> None:
        self._words[at.FAILED + kind] += 1
        if error == "corrupt":
            self._words[at.FAILURE + at.FAILURE_NUMBER[error]] += 1

    def _sample(self, now_ns: int) -> None:
        """Count the processor time since the last sample; of several threads one does."""
        self._sample_at_ns = now_ns + _SAMPLE_NS
        now_awake_ns = awake_ns()
        before_ns, self._awake_ns = self._awake_ns, now_awake_ns
        self._words[at.AWAKE_NS] += max(0, now_awake_ns - before_ns)

    def add_record(self, record: InvocationRecord) -> None:
        """Count what stands in the record of a function that wrote on no board."""
        attempts = zip(*to_columns(Attempt, record.attempts).values(), strict=True)
        of_operation = {n: [row[1:] for row in rows] for n, rows in groupby(attempts, _first)}
        words = self._words
        for number, *operation in zip(
            *to_columns(OperationRecord, record.operations).values(), strict=True
        ):
            rows = of_operation.get(number, ())
            self._add(cast("OperationRow", operation), rows)
            kind = at.KIND_NUMBER[at.WARM_UP if operation[13] else operation[0]]
            words[at.BYTES + kind] += sum(row[13] for row in rows)
        used_ns = round((record.cpu_user_s + record.cpu_sys_s) * NS_PER_S)
        words[at.AWAKE_NS] += used_ns + (record.run_wait_ns or 0)


def _first(row: tuple[int, ...]) -> int:
    return row[0]
