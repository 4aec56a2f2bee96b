"""The live board: counters in shared memory through which running functions inform the driver.

A board is a row of 64-bit counters. It starts with a header, written by the driver, followed by
slots of equal length, each written by one worker process (``layout``). Counters of a slot only
grow. A reader adds up the slots and subtracts the sums of the previous look.

Only one process writes to a slot, so processes cannot lose each other's counts. Within that
process, one thread at a time counts the operations of all its threads. A long attempt is shown
while it runs, under the interpreter lock: CPython switches threads only at calls and backward
jumps, and ``words[i] += n`` has neither between its load and its store. (An interpreter without
that lock would need a different method there.) Counting is outside the timed section, and takes
half a microsecond per operation.

Functions that share no memory with their driver (AWS Lambda, Lithops, Dask) are counted when their
records arrive: ``BoardWriter.add_record``.
"""

import random
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import add, itemgetter, sub
from typing import ClassVar, Final, cast

from serverless_bench.base.clock import wall_ns
from serverless_bench.base.errors import Corrupt, Hedged
from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.live import layout as at
from serverless_bench.features.live.layout import (
    HISTOGRAM,
    KIND_NUMBER,
    LOWEST_BITS,
    OPERATIONS,
    bucket_of,
)
from serverless_bench.job.price_classes import FREE, FREE_STATUS, GET_CLASS
from serverless_bench.rundir.record import (
    Attempt,
    InvocationRecord,
    OperationRecord,
    OperationRow,
)
from serverless_bench.rundir.rows import to_columns
from serverless_bench.worker.board import HEADER_WORDS, KINDS, WARM_UP, WORD_BYTES, Board, BoardSlot
from serverless_bench.worker.cpu_time import awake_ns
from serverless_bench.worker.operation import MeasuredOperation

_PRICE_CLASS: Final = defaultdict(
    lambda: at.PUTS, {**dict.fromkeys(GET_CLASS, at.GETS), **dict.fromkeys(FREE, at.FREE)}
)
"""Counter of a request's price class; requests not listed are in the PUT class."""
_CONFLICT: Final = frozenset({409, 412})
"""Statuses of a conditional write that lost against another writer."""
_NO_FAILURE: Final = frozenset({Corrupt.code, Hedged.code})
_HIGHEST_BITS: Final = at.LOWEST_BITS + at.OCTAVES - 1
_SHIFT: Final = at.LOWEST_BITS - 1 - at.SUB_BITS
_WARM_UP: Final = KIND_NUMBER[WARM_UP]
_SAMPLE_NS: Final = NS_PER_S // 4
"""Interval between two looks at the CPU time that the worker has used."""


def _counter(index: int) -> property:
    """Return a property for a word of ``BoardTotals``."""
    return property(lambda totals: totals.words[index])


@dataclass(frozen=True, slots=True)
class BoardTotals:
    """Sum of the slots of a board, or the increase between two looks.

    Parameters
    ----------
    words
        The counters of a slot, or the sum over all slots.
    """

    words: Sequence[int]

    retries = _counter(at.RETRIES)
    """Attempts that were not the first of their request."""
    gets = _counter(at.GETS)
    """Attempts that Amazon S3 bills like GET."""
    puts = _counter(at.PUTS)
    """Attempts that Amazon S3 bills like PUT."""
    in_flight_ns = _counter(at.IN_FLIGHT_NS)
    """Sum of the durations of all attempts."""
    conflicts = _counter(at.CONFLICTS)
    """Conditional writes that lost against another writer (409, 412)."""
    payload_ns = _counter(at.PAYLOAD_NS)
    """Sum of the time spent generating or comparing bytes."""
    awake_ns = _counter(at.AWAKE_NS)
    """CPU time of the functions, and their time in the queue for a CPU."""
    sampled_ns = _counter(at.SAMPLED_NS)
    """Sum of the functions' time that ``awake_ns`` covers."""

    def since(self, before: "BoardTotals") -> "BoardTotals":
        """Return the increase since ``before``."""
        return BoardTotals(tuple(map(sub, self.words, before.words)))

    @property
    def bytes(self) -> Mapping[str, int]:
        """Bytes transferred in bodies, by kind of operation; includes failed attempts."""
        return self._by_kind(at.BYTES)

    @property
    def operations(self) -> Mapping[str, int]:
        """Finished operations, by kind."""
        return self._by_kind(at.OPERATIONS)

    @property
    def failed(self) -> Mapping[str, int]:
        """Operations that finished with an error, by kind."""
        return self._by_kind(at.FAILED)

    @property
    def failures(self) -> Mapping[str, int]:
        """Failed attempts by class, as in ``FAILURES``; ``corrupt`` counts operations."""
        return dict(zip(at.FAILURES, self.words[at.FAILURE : at.RETRIES], strict=True))

    @property
    def attempts(self) -> int:
        """Finished attempts of finished operations."""
        return sum(self.words[at.GETS : at.FREE + 1])

    @property
    def lock_probes(self) -> tuple[int, int]:
        """Number of times a thread asked for the interpreter lock, and had to wait for it."""
        return self.words[at.PROBES], self.words[at.DELAYED]

    @property
    def histogram(self) -> Sequence[int]:
        """Latencies of measured operations that succeeded, by bucket as in ``live_layout``.

        In an open loop, a latency starts when the operation was due.
        """
        return self.words[at.HISTOGRAM : at.HISTOGRAM + at.BUCKETS]

    @property
    def measured(self) -> int:
        """Finished operations, without preparations and warm-ups."""
        return sum(self.words[at.MEASURED])

    @property
    def moved(self) -> int:
        """Bytes of all kinds."""
        return sum(self.words[at.MOVED])

    def __add__(self, other: "BoardTotals") -> "BoardTotals":
        return BoardTotals(tuple(map(add, self.words, other.words)))

    def _by_kind(self, first: int) -> Mapping[str, int]:
        return dict(zip(KINDS, self.words[first : first + len(KINDS)], strict=True))


class LiveBoard(Board):
    """Counters that functions and their driver share."""

    slot_words: ClassVar = at.SLOT_WORDS
    count_ns: ClassVar = NS_PER_S // 40
    """Interval between two counts: nobody looks more often, and counting some hundreds of
    operations delays the next operation by less than its normal variation."""
    most: ClassVar = sys.maxsize
    """Operations that are counted each time. Of more, so many are drawn at random, and each stands
    for as many as the ratio of the numbers."""

    def writer(self, slot: int = 0) -> "BoardWriter":
        """Return a writer for a slot; call it in the process that runs the functions."""
        first = HEADER_WORDS + slot * at.SLOT_WORDS
        return BoardWriter(self, self._words[first : first + at.SLOT_WORDS])

    def totals(self) -> BoardTotals:
        """Return the sum over all slots."""
        # Each slot is read as one long number, and the numbers are added. No count comes near
        # 2**64, so no word carries into the next. 1,000 slots take a millisecond.
        size, first = at.SLOT_WORDS * WORD_BYTES, HEADER_WORDS * WORD_BYTES
        data, order = self._words.cast("B"), sys.byteorder
        begins = range(first, len(data), size)
        total = sum(int.from_bytes(data[begin : begin + size], order) for begin in begins)
        return BoardTotals(tuple(memoryview(total.to_bytes(size, order)).cast("Q")))


class OwnBoard(LiveBoard):
    """Counters that a function reads itself every few seconds, to write a progress object."""

    count_ns: ClassVar = NS_PER_S
    """Code and counters drop out of the caches in between. An object has the latest counts."""
    most: ClassVar = 128
    """Counting all operations of 4 KiB would take 1 % of the CPU time of a function."""


class BoardWriter(BoardSlot):
    """Writes to one slot of a board, as the only process that does.

    Parameters
    ----------
    board
        Board that has the slot.
    words
        Counters of the slot.
    """

    def __init__(self, board: LiveBoard, words: "memoryview[int]") -> None:
        self._words = words
        self._count_ns, self._most = board.count_ns, board.most
        self._measured: Sequence[MeasuredOperation] = ()
        self._counted = 0
        self._counting = threading.Lock()
        self.due_ns = 0
        self._probed = (0, 0)
        self._awake_ns = self._sampled_ns = 0
        super().__init__(board)
        self.on_moved = {kind: self._adder(at.BYTES + n) for n, kind in enumerate(KINDS)}

    def _adder(self, index: int) -> Callable[[int, int], None]:
        words = self._words

        def moved(count: int, took_ns: int) -> None:
            words[index] += count
            words[at.IN_FLIGHT_NS] += took_ns
            self.heed(took_ns)
            now_ns = wall_ns()
            if now_ns >= self.due_ns:
                self.count(now_ns)

        return moved

    def follow(self, measured: Sequence[MeasuredOperation]) -> None:
        """Count operations appended from now on to ``measured``, instead of the previous list."""
        self._measured, self._counted = measured, len(measured)
        self.probe, self._probed = None, (0, 0)
        # Time spent waiting for the next invocation is not work of this invocation.
        if (now_ns := wall_ns()) >= self._sampled_ns + _SAMPLE_NS:
            self._awake_ns, self._sampled_ns = awake_ns(), now_ns

    def count(self, now_ns: int) -> None:
        """Count the operations that finished before ``now_ns``, an instant since the epoch.

        Operations are counted in batches: in between, this code drops out of the CPU's
        caches. If several threads call at the same time, only one counts.
        """
        if not self._counting.acquire(blocking=False):
            return
        try:
            self.due_ns = now_ns + self._count_ns
            begin, self._counted = self._counted, len(self._measured)
            weight, rest = divmod(self._counted - begin, self._most)
            self._add(self._measured[begin : begin + rest])
            if weight:
                drawn = random.sample(range(begin + rest, self._counted), self._most)
                self._add([self._measured[at] for at in drawn], weight)
            if now_ns >= self._sampled_ns + _SAMPLE_NS:
                self._sample(now_ns)
        finally:
            self._counting.release()

    def _add(self, measured: Iterable[MeasuredOperation], weight: int = 1) -> None:
        # Rare cases are handled in other functions: the common path has to be cheap.
        words, number_of, price_class = self._words, KIND_NUMBER, _PRICE_CLASS
        counts = [0] * HISTOGRAM
        in_flight_ns = payload_ns = 0
        for done in measured:
            row, attempts, moved = done.row, done.attempt_rows, 0
            (
                name,
                _,
                _,
                start_ns,
                end_ns,
                _,
                _,
                size,
                _,
                _,
                _,
                generation_ns,
                error,
                warmup,
                _,
                _,
                _,
                due,
            ) = row
            kind = number_of[name]
            payload_ns += generation_ns
            if error is None and not warmup:
                latency_ns = end_ns - (start_ns if due is None else due)
                bits = latency_ns.bit_length()
                # Inlined ``bucket_of``: the call would take a quarter of the total time.
                if LOWEST_BITS <= bits <= _HIGHEST_BITS:
                    octave = bits - LOWEST_BITS
                    sub_bucket = latency_ns >> (octave + _SHIFT) & 7
                    words[HISTOGRAM + (octave << 3 | sub_bucket)] += weight
                else:
                    words[HISTOGRAM + bucket_of(latency_ns)] += weight
            else:
                kind = _WARM_UP if warmup else kind
                _add_failure(counts, kind, error)
            counts[OPERATIONS + kind] += 1
            for attempt in attempts:
                (
                    request,
                    _,
                    number,
                    start_ns,
                    end_ns,
                    _,
                    status,
                    code,
                    _,
                    _,
                    _,
                    _,
                    _,
                    count,
                    _,
                    _,
                ) = attempt
                in_flight_ns += end_ns - start_ns
                moved += count
                if code or number:
                    _add_unusual_attempt(counts, request, number, status, code)
                else:
                    counts[price_class[request]] += 1
            if done.shown is not None:
                moved -= done.shown[0]
                in_flight_ns -= done.shown[1]
            # A user function's span has no attempts: use the size that the function reported.
            counts[kind] += moved if attempts else size
        counts[at.IN_FLIGHT_NS] = in_flight_ns
        counts[at.PAYLOAD_NS] = payload_ns
        for index, count in enumerate(counts):
            if count:
                words[index] += weight * count

    def _sample(self, now_ns: int) -> None:
        """Count the CPU time and the waits for the interpreter since the last sample."""
        words = self._words
        words[at.SAMPLED_NS] += now_ns - self._sampled_ns
        before_ns, self._awake_ns, self._sampled_ns = self._awake_ns, awake_ns(), now_ns
        words[at.AWAKE_NS] += max(0, self._awake_ns - before_ns)
        if self.probe is not None:
            (probes, delayed), self._probed = self._probed, (self.probe.probes, self.probe.delayed)
            words[at.PROBES] += self._probed[0] - probes
            words[at.DELAYED] += self._probed[1] - delayed

    def add_record(self, record: InvocationRecord) -> None:
        """Count the record of a function that did not write to a board."""
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


def _add_failure(counts: list[int], kind: int, error: str | None) -> None:
    """Count the error of an operation; a warm-up that succeeded has none."""
    counts[at.FAILED + kind] += error is not None
    if error == "corrupt":
        counts[at.FAILURE + at.FAILURE_NUMBER[error]] += 1


def _add_unusual_attempt(
    counts: list[int], request: str, number: int, status: int | None, code: str | None
) -> None:
    """Count an attempt that failed, or that repeats an earlier attempt."""
    if number:
        counts[at.RETRIES] += 1
    # Corrupt operations are already counted in ``_add_failure``; a hedged request did not fail.
    if code is not None and code not in _NO_FAILURE:
        counts[at.FAILURE + at.FAILURE_NUMBER.get(code, at.OTHER_FAILURE)] += 1
    if status in _CONFLICT:
        counts[at.CONFLICTS] += 1
    is_free = status is not None and status >= FREE_STATUS
    counts[at.FREE if is_free else _PRICE_CLASS[request]] += 1
