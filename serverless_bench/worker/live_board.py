"""The live board: what functions tell the driver while they run, as counters in shared memory.

A board is a row of 64-bit counters. It begins with a header, in which the driver writes; then
come slots of equal length, one per worker process, in which that worker writes
(``live_layout``). Counters of a slot only grow. Who reads adds up the slots, and subtracts
what it saw before.

Only one process writes into a slot, so processes cannot lose each other's counts. Of the threads
of that process one counts at a time what all of them have measured; an attempt that takes long
is shown while it runs, under the interpreter's lock: CPython lets another thread run only at
calls and where code jumps back, and ``words[i] += n`` has neither between its read and its
write. (An interpreter without that lock would need another one there.) Counting is outside of
what is timed, and takes half a microsecond for an operation.

What functions have done that share no memory with their driver (AWS Lambda, Lithops, Dask) is
known when their records have come: ``BoardWriter.add_record``.
"""

import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from mmap import mmap
from operator import add, itemgetter, sub
from typing import Final, cast

from serverless_bench.clock import wall_ns
from serverless_bench.job.price_classes import FREE, FREE_STATUS, GET_CLASS
from serverless_bench.rundir.record import (
    Attempt,
    InvocationRecord,
    OperationRecord,
    OperationRow,
)
from serverless_bench.rundir.rows import to_columns
from serverless_bench.units import NS_PER_S
from serverless_bench.worker import live_layout as at
from serverless_bench.worker.cpu_time import LockProbe, awake_ns
from serverless_bench.worker.live_layout import (
    HISTOGRAM,
    KIND_NUMBER,
    LOWEST_BITS,
    OPERATIONS,
    bucket_of,
)
from serverless_bench.worker.operation import MeasuredOperation

_PRICE_CLASS: Final = defaultdict(
    lambda: at.PUTS, {**dict.fromkeys(GET_CLASS, at.GETS), **dict.fromkeys(FREE, at.FREE)}
)
"""Where requests are counted by what they cost; all others are of the PUT class."""
_CONFLICT: Final = frozenset({409, 412})
"""Statuses of conditional writes that somebody else was faster than."""
_HIGHEST_BITS: Final = at.LOWEST_BITS + at.OCTAVES - 1
_SHIFT: Final = at.LOWEST_BITS - 1 - at.SUB_BITS
_WARM_UP: Final = at.KIND_NUMBER[at.WARM_UP]
_WORD_BYTES: Final = 8
_COUNT_NS: Final = NS_PER_S // 40
"""Operations of so long are counted at a time: nobody looks more often, and some hundreds that
wait for it hold up the next one by less than what it varies by."""
_SAMPLE_NS: Final = NS_PER_S // 4
"""A worker looks this seldom at the processor time that it has used."""


def _counter(index: int) -> property:
    """Return what reads one word of ``BoardTotals``."""
    return property(lambda totals: totals.words[index])


@dataclass(frozen=True, slots=True)
class BoardTotals:
    """What the slots of a board add up to, or what was added between two looks.

    Parameters
    ----------
    words
        Of one slot, or of the sum of all.
    """

    words: Sequence[int]

    retries = _counter(at.RETRIES)
    """Attempts that were not the first of their request."""
    gets = _counter(at.GETS)
    """Attempts that Amazon S3 charges for as it does for GET."""
    puts = _counter(at.PUTS)
    """Attempts that Amazon S3 charges for as it does for PUT."""
    in_flight_ns = _counter(at.IN_FLIGHT_NS)
    """The time that attempts took, added up."""
    conflicts = _counter(at.CONFLICTS)
    """Attempts at conditional writes that somebody else was faster than (409, 412)."""
    payload_ns = _counter(at.PAYLOAD_NS)
    """The time in which bytes were made or compared, added up."""
    awake_ns = _counter(at.AWAKE_NS)
    """Processor time of the functions, and their time in the queue for a processor."""
    sampled_ns = _counter(at.SAMPLED_NS)
    """The time of functions, added up, in which ``awake_ns`` was found."""

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
    def lock_probes(self) -> tuple[int, int]:
        """How often a thread asked for the interpreter's lock, and had to wait for it."""
        return self.words[at.PROBES], self.words[at.DELAYED]

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
        self._measured: Sequence[MeasuredOperation] = ()
        self._counted = 0
        self._counting = threading.Lock()
        self.due_ns = 0
        """Who ends an operation at this instant or later calls ``count``."""
        self.probe: LockProbe | None = None
        """Samples the interpreter's lock, as long as it is there."""
        self._probed = (0, 0)
        self._awake_ns = self._sampled_ns = 0
        self.on_moved: Mapping[str, Callable[[int, int], None]] = {
            kind: self._adder(at.BYTES + n) for n, kind in enumerate(at.KINDS)
        }
        """By kind of operation: takes what an attempt that goes on has moved, and its time."""

    def _adder(self, index: int) -> Callable[[int, int], None]:
        words = self._words

        def moved(count: int, took_ns: int) -> None:
            words[index] += count
            words[at.IN_FLIGHT_NS] += took_ns
            now_ns = wall_ns()
            if now_ns >= self.due_ns:
                self.count(now_ns)

        return moved

    @property
    def stopped(self) -> bool:
        """Whether functions with a duration are to end."""
        return self._board.stopped

    def follow(self, measured: Sequence[MeasuredOperation]) -> None:
        """Count what is appended from now on, and no longer what was followed before."""
        self._measured, self._counted = measured, len(measured)
        self.probe, self._probed = None, (0, 0)
        # What a worker waited for its next invocation is none of its work.
        if (now_ns := wall_ns()) >= self._sampled_ns + _SAMPLE_NS:
            self._awake_ns, self._sampled_ns = awake_ns(), now_ns

    def count(self, now_ns: int) -> None:
        """Count what has ended until now.

        Some are counted at a time: between two of them this code leaves the processor's caches.
        Of threads that want to one does. ``now_ns`` is since the epoch, as in records.
        """
        if not self._counting.acquire(blocking=False):
            return
        try:
            self.due_ns = now_ns + _COUNT_NS
            begin, self._counted = self._counted, len(self._measured)
            self._add(self._measured[begin : self._counted])
            if now_ns >= self._sampled_ns + _SAMPLE_NS:
                self._sample(now_ns)
        finally:
            self._counting.release()

    def _add(self, measured: Iterable[MeasuredOperation]) -> None:
        # The rare is elsewhere: what nearly every operation does has to be cheap.
        words, number_of, price_class = self._words, KIND_NUMBER, _PRICE_CLASS
        found = [0] * HISTOGRAM
        in_flight_ns = payload_ns = 0
        for done in measured:
            row, attempts, moved = done.row, done.attempt_rows, 0
            name, _, _, began, ended, _, _, size, _, _, _, made, error, warmup, _, _, _, due = row
            kind = number_of[name]
            payload_ns += made
            if error is None and not warmup:
                latency_ns = ended - (began if due is None else due)
                bits = latency_ns.bit_length()
                # ``bucket_of`` without the call, which would be a quarter of all this.
                if LOWEST_BITS <= bits <= _HIGHEST_BITS:
                    octave = bits - LOWEST_BITS
                    sub_bucket = latency_ns >> (octave + _SHIFT) & 7
                    words[HISTOGRAM + (octave << 3 | sub_bucket)] += 1
                else:
                    words[HISTOGRAM + bucket_of(latency_ns)] += 1
            else:
                kind = _WARM_UP if warmup else kind
                _add_failure(found, kind, error)
            found[OPERATIONS + kind] += 1
            for attempt in attempts:
                request, _, again, began, ended, _, status, code, _, _, _, _, _, count, _, _ = (
                    attempt
                )
                in_flight_ns += ended - began
                moved += count
                if code or again:
                    _add_unusual_attempt(found, request, again, status, code)
                else:
                    found[price_class[request]] += 1
            if done.shown is not None:
                moved -= done.shown[0]
                in_flight_ns -= done.shown[1]
            # A span of a user's function has no attempts: its bytes are what it says.
            found[kind] += moved if attempts else size
        found[at.IN_FLIGHT_NS] = in_flight_ns
        found[at.PAYLOAD_NS] = payload_ns
        for index, count in enumerate(found):
            if count:
                words[index] += count

    def _sample(self, now_ns: int) -> None:
        """Count the processor time, and the waits for the interpreter, since the last sample."""
        words = self._words
        words[at.SAMPLED_NS] += now_ns - self._sampled_ns
        before_ns, self._awake_ns, self._sampled_ns = self._awake_ns, awake_ns(), now_ns
        words[at.AWAKE_NS] += max(0, self._awake_ns - before_ns)
        if self.probe is not None:
            (probes, delayed), self._probed = self._probed, (self.probe.probes, self.probe.delayed)
            words[at.PROBES] += self._probed[0] - probes
            words[at.DELAYED] += self._probed[1] - delayed

    def add_record(self, record: InvocationRecord) -> None:
        """Count what stands in the record of a function that wrote on no board."""
        attempts = zip(*to_columns(Attempt, record.attempts).values(), strict=True)
        of_operation = {
            n: [row[1:] for row in rows] for n, rows in groupby(attempts, itemgetter(0))
        }
        columns = to_columns(OperationRecord, record.operations).values()
        self._add(
            MeasuredOperation(cast("OperationRow", row), of_operation.get(number, ()), ())
            for number, *row in zip(*columns, strict=True)
        )
        used_ns = round((record.cpu_user_s + record.cpu_sys_s) * NS_PER_S)
        words = self._words
        words[at.AWAKE_NS] += used_ns + (record.run_wait_ns or 0)
        words[at.SAMPLED_NS] += max(0, record.end_ns - record.start_ns)
        words[at.PROBES] += record.lock_probes or 0
        words[at.DELAYED] += record.lock_delayed or 0


def _add_failure(found: list[int], kind: int, error: str | None) -> None:
    """Count an operation as failed, unless it succeeded and only does not count."""
    found[at.FAILED + kind] += error is not None
    if error == "corrupt":
        found[at.FAILURE + at.FAILURE_NUMBER[error]] += 1


def _add_unusual_attempt(
    found: list[int], request: str, again: int, status: int | None, code: str | None
) -> None:
    """Count an attempt that failed, or that another one came before."""
    if again:
        found[at.RETRIES] += 1
    # Of what is corrupt the operation has been counted.
    if code is not None and code != "corrupt":
        found[at.FAILURE + at.FAILURE_NUMBER.get(code, at.OTHER_FAILURE)] += 1
    if status in _CONFLICT:
        found[at.CONFLICTS] += 1
    is_free = status is not None and status >= FREE_STATUS
    found[at.FREE if is_free else _PRICE_CLASS[request]] += 1
