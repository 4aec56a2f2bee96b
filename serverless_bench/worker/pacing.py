"""When the operations of one function are due, in an open loop. Reads no clock.

All threads of a function share one schedule: whichever is free takes the next instant. So
threads that have no operations lose none of them, and what is not taken when the time
is over is known: it was due, and never begun.
"""

import math
import random
import threading
from dataclasses import replace
from typing import Final

from serverless_bench.job.spec import InvocationSpec
from serverless_bench.rundir.record import Overdue
from serverless_bench.units import NS_PER_S

_ROWS: Final = 128
"""About how many rows stand for random instants that were never begun, however many."""


class _Even:
    """At even distances."""

    def __init__(self, begin_ns: int, distance_ns: float, phase: float) -> None:
        self._begin_ns = begin_ns
        self._distance_ns = distance_ns
        self._phase = phase
        self._number = 0
        self.next_ns = self._at(0)
        """The first instant that is not taken yet."""

    def _at(self, number: int) -> int:
        # Rounded down: what is due before the end stays before it.
        return self._begin_ns + int((number + self._phase) * self._distance_ns)

    def advance(self) -> None:
        """Take it."""
        self._number += 1
        self.next_ns = self._at(self._number)

    def rest(self, end_ns: int) -> list[tuple[int, int, int]]:
        """Return those before the end as first, last and count of runs; the last call."""
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
        found: list[tuple[int, int, int]] = []
        expected = max(0, end_ns - self.next_ns) / self._distance_ns
        more = max(0, math.ceil(expected / _ROWS) - 1)
        while (first := self.next_ns) < end_ns:
            if more > 0:
                # Together so many distances are a sample of the gamma distribution.
                length = self._rng.gammavariate(more, self._distance_ns)
                if first + length >= end_ns:
                    gaps = int(more * (end_ns - 1 - first) / length)
                    found.append((first, first + int(length * gaps / more), gaps + 1))
                    break
                self._at_ns += length
            found.append((first, int(self._at_ns), 1 + more))
            self.advance()
        return found


class Schedule:
    """The instants of one function; its threads may take them at once.

    Parameters
    ----------
    invocation
        Has the rate, the arrivals and the seed.
    begin_ns
        When the measurement begins, on the monotonic clock.
    end_ns
        When it is over; None if it ends with the operations.
    """

    def __init__(self, invocation: InvocationSpec, begin_ns: int, end_ns: int | None) -> None:
        load, rng = invocation.load, random.Random(f"{invocation.seed}/schedule")  # noqa: S311
        if load.rate is None:
            raise ValueError("a closed loop has no schedule")
        distance_ns = NS_PER_S / load.rate
        self._arrivals: _Even | _Poisson
        if load.arrivals == "poisson":
            self._arrivals = _Poisson(begin_ns, distance_ns, rng)
        else:
            # Functions know nothing of each other: a phase of its own keeps them from bursts.
            self._arrivals = _Even(begin_ns, distance_ns, rng.random())
        self._end_ns = end_ns
        self._lock = threading.Lock()

    def take(self) -> int | None:
        """Return the next instant, which no other thread gets then; None if all are taken.

        It may be past: what is due does not wait for what is late.
        """
        with self._lock:
            instant_ns = self._arrivals.next_ns
            if self._end_ns is not None and instant_ns >= self._end_ns:
                return None
            self._arrivals.advance()
            return instant_ns

    def end(self, end_ns: int) -> None:
        """End it at this instant, if it does not end before."""
        with self._lock:
            self._end_ns = end_ns if self._end_ns is None else min(self._end_ns, end_ns)

    def untaken(self, stopped_ns: int | None, free_ns: int | None) -> list[Overdue]:
        """Return what was due and was not taken; nothing can be taken after this.

        Parameters
        ----------
        stopped_ns
            When the function gave up, if it did; it may have done so before the end.
        free_ns
            When the first of its threads was free after that, or after the end.
        """
        ends = [end for end in (self._end_ns, stopped_ns) if end is not None]
        if not ends:
            return []
        until_ns = max(min(ends), free_ns or 0)
        return [
            Overdue(first_ns=first, last_ns=last, count=count, until_ns=until_ns)
            for first, last, count in self._arrivals.rest(min(ends))
        ]


def at_most(rows: list[Overdue], count: int) -> list[Overdue]:
    """Return the first ``count`` instants of rows."""
    kept: list[Overdue] = []
    for row in rows:
        if count <= 0:
            break
        if row.count > count:
            length = (row.last_ns - row.first_ns) * (count - 1) // (row.count - 1)
            row = replace(row, last_ns=row.first_ns + length, count=count)  # noqa: PLW2901 - a part
        kept.append(row)
        count -= row.count
    return kept
