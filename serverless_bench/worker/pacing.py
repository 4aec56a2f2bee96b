"""Due times of the operations of a function, in an open loop. Reads no clock.

All threads of a function share one schedule: any free thread takes the next instant. A busy thread
therefore loses no instant, and instants not taken by the end are known: those operations were due
and never started.
"""

import math
import random
import threading
from collections.abc import Iterable
from dataclasses import replace
from itertools import takewhile
from typing import Final

from serverless_bench.base.units import NS_PER_S
from serverless_bench.job.operations import OperationSpec
from serverless_bench.job.spec import InvocationSpec
from serverless_bench.rundir.record import Dropped

_ROWS: Final = 128
"""Approximate number of rows for random instants that were never started."""


class _Even:
    """Instants at even distances."""

    def __init__(self, begin_ns: int, distance_ns: float, phase: float) -> None:
        self._begin_ns = begin_ns
        self._distance_ns = distance_ns
        self._phase = phase
        self._number = 0
        self.next_ns = self._at(0)
        """The first instant that is not taken yet."""

    def _at(self, number: int) -> int:
        # Rounded down: an instant due before the end stays before it.
        return self._begin_ns + int((number + self._phase) * self._distance_ns)

    def advance(self) -> None:
        """Take the instant."""
        self._number += 1
        self.next_ns = self._at(self._number)

    def rest(self, end_ns: int) -> list[tuple[int, int, int]]:
        """Return the instants before the end as runs of (first, last, count); call it last."""
        last = max(self._number, int((end_ns - self._begin_ns) / self._distance_ns))
        while last >= self._number and self._at(last) >= end_ns:
            last -= 1
        count = last - self._number + 1
        return [(self.next_ns, self._at(last), count)] if count > 0 else []


class _Poisson:
    """A Poisson process."""

    def __init__(self, begin_ns: int, distance_ns: float, rng: random.Random) -> None:
        self._distance_ns = distance_ns
        self._rng = rng
        self._at_ns = float(begin_ns)
        self.advance()

    def advance(self) -> None:
        self._at_ns += self._rng.expovariate(1 / self._distance_ns)
        self.next_ns = int(self._at_ns)

    def rest(self, end_ns: int) -> list[tuple[int, int, int]]:
        runs: list[tuple[int, int, int]] = []
        expected = max(0, end_ns - self.next_ns) / self._distance_ns
        further = max(0, math.ceil(expected / _ROWS) - 1)
        while (first := self.next_ns) < end_ns:
            if further > 0:
                # The sum of so many exponential gaps follows the gamma distribution.
                length = self._rng.gammavariate(further, self._distance_ns)
                if first + length >= end_ns:
                    gaps = int(further * (end_ns - 1 - first) / length)
                    runs.append((first, first + int(length * gaps / further), gaps + 1))
                    break
                self._at_ns += length
            runs.append((first, int(self._at_ns), 1 + further))
            self.advance()
        return runs


class Schedule:
    """The instants of a function; its threads may take them concurrently.

    Parameters
    ----------
    invocation
        Has the rate, the arrivals and the seed.
    begin_ns
        Start of the measurement, on the monotonic clock.
    end_ns
        End of the measurement; None if it ends with the operations.
    """

    def __init__(self, invocation: InvocationSpec, begin_ns: int, end_ns: int | None) -> None:
        load, rng = invocation.load, random.Random(f"{invocation.seed}/schedule")
        if load.rate is None:
            raise ValueError("a closed loop has no schedule")
        distance_ns = NS_PER_S / load.rate
        self._arrivals: _Even | _Poisson
        if load.arrivals == "poisson":
            self._arrivals = _Poisson(begin_ns, distance_ns, rng)
        else:
            # Functions do not coordinate: a random phase for each avoids bursts.
            self._arrivals = _Even(begin_ns, distance_ns, rng.random())
        self._end_ns = end_ns
        self._lock = threading.Lock()

    def take(self) -> int | None:
        """Return the next instant, for this thread only; None if all are taken.

        The instant may be past: late operations do not postpone the ones due after them.
        """
        with self._lock:
            instant_ns = self._arrivals.next_ns
            if self._end_ns is not None and instant_ns >= self._end_ns:
                return None
            self._arrivals.advance()
            return instant_ns

    def end(self, end_ns: int) -> None:
        """End the schedule at this instant, unless it ends earlier."""
        with self._lock:
            self._end_ns = end_ns if self._end_ns is None else min(self._end_ns, end_ns)

    def untaken(self, stopped_ns: int | None, free_ns: int | None) -> list[Dropped]:
        """Return the instants that were due and not taken; call it after the last ``take``.

        Parameters
        ----------
        stopped_ns
            When the function gave up, possibly before the end; None if it did not.
        free_ns
            When its first thread became free after that, or after the end.
        """
        ends = [end for end in (self._end_ns, stopped_ns) if end is not None]
        if not ends:
            return []
        until_ns = max(min(ends), free_ns or 0)
        return [
            Dropped(first_ns=first, last_ns=last, count=count, until_ns=until_ns)
            for first, last, count in self._arrivals.rest(min(ends))
        ]


def not_taken(
    left: Iterable[OperationSpec], begin_ns: int, stopped_ns: int | None, free_ns: int | None
) -> list[Dropped]:
    """Return the instants of operations that came with one, were due and did not start.

    Parameters
    ----------
    left
        Operations that did not start.
    begin_ns
        Start of the measurement.
    stopped_ns, free_ns
        As in ``Schedule.untaken``; without a stop, all operations started.
    """
    if stopped_ns is None:
        return []
    given = takewhile(lambda spec: spec.due_ns is not None, left)
    dues = [begin_ns + (spec.due_ns or 0) for spec in given]
    until_ns = max(stopped_ns, free_ns or 0)
    return [
        Dropped(first_ns=due_ns, last_ns=due_ns, count=1, until_ns=until_ns)
        for due_ns in sorted(dues)
        if due_ns < stopped_ns
    ]


def at_most(rows: list[Dropped], count: int) -> list[Dropped]:
    """Return the first ``count`` instants of rows."""
    kept: list[Dropped] = []
    for row in rows:
        if count <= 0:
            break
        if row.count > count:
            length = (row.last_ns - row.first_ns) * (count - 1) // (row.count - 1)
            row = replace(row, last_ns=row.first_ns + length, count=count)  # noqa: PLW2901 - shortened
        kept.append(row)
        count -= row.count
    return kept
