"""Check whether the operations on a key are linearizable. Pure functions.

Every write names the version that it creates, which is unique, and the version that it replaces.
This defines the order of the successful writes: each follows the write that it replaced, and all
of them form a chain that starts at the empty key. Three properties have to be checked (Herlihy and
Wing 1990 define linearizability; Gibbons and Korach 1997 show that the check takes n log n steps
if it is known which write each read has read from):

1.  No version has two successors; otherwise one of the updates is lost.
2.  Each version that was read had been written, by a write that was not rejected.
3.  The order agrees with real time. Each write has a point in time within its interval, and each
    read has a point in its interval, after the write of its version and before the next write.
    The check chooses the earliest possible point for each of them in turn.

A write with an unknown outcome took effect if its version was read; otherwise it is excluded,
which is always consistent. Times of two functions are compared with the uncertainty of their
clocks: each interval is extended by it. Times of the same function are compared directly.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from math import inf
from typing import Final

from msgspec import Struct, structs

Bounds = tuple[float, float]
"""Minimum and maximum error of a function's clock, in ns; infinite if unknown."""
_EXACT: Final[Bounds] = (0, 0)
_NOBODY: Final = -1


class Fault(StrEnum):
    """Type of a violation."""

    FORKED = "forked"
    """A version was replaced twice, so one of the updates is lost."""
    PHANTOM = "phantom"
    """A version was read without a successful write."""
    STALE = "stale"
    """A version was read or replaced after a later version had been visible."""
    UNCLAIMED = "unclaimed"
    """A claim was rejected as taken, but no function holds it."""


class Violation(Struct, frozen=True, kw_only=True):
    """A violation of linearizability; figures.toml defines each field."""

    key: str
    fault: Fault
    versions: tuple[str, ...]
    functions: tuple[int, ...]


class Event(Struct, frozen=True):
    """A read or a write of a version."""

    version: str | None
    """Version; None if the key did not exist."""
    base: str | None
    """Version that this version replaced; None for the empty key."""
    function: int
    start_ns: float
    end_ns: float
    """End time; infinite for a write with an unknown outcome."""


class PossibleWrite(Event, frozen=True):
    """A write that was acknowledged, or may have taken effect."""

    version: str


class AnsweredRead(Event, frozen=True):
    """A read that received a response."""


class KeyHistory(Struct, frozen=True):
    """Operations on a key, in any order."""

    key: str
    writes: Sequence[PossibleWrite]
    reads: Sequence[AnsweredRead]


def violations(
    history: KeyHistory,
    clocks: Mapping[int, Bounds],
    is_unrecorded: Callable[[str], bool] = lambda _: False,
) -> Iterator[Violation]:
    """Yield the violations in the history of a key; empty if it is linearizable.

    Parameters
    ----------
    history
        Reads and writes of the key, without rejected writes.
    clocks
        Bounds of the clock error by function: its clock minus true time.
    is_unrecorded
        Function that returns whether a function without a record may have written a version.
    """
    problems = list(_phantoms(history, is_unrecorded))
    chain = _effective(history, is_unrecorded)
    problems += _forks(history.key, chain)
    yield from problems
    if problems:
        return
    stages, detached = _in_order(chain, history.reads)
    versions = {write.version for write in chain}
    # A cycle: each write replaced a later version. Writes on unknown versions are ignored.
    if detached and all(write.base in versions for write in detached):
        yield _violation(history.key, Fault.STALE, detached)
        return
    pair = _contradiction([[_widened(event, clocks) for event in stage] for stage in stages])
    for own_stages in _by_function(stages):
        pair = pair or _contradiction(own_stages)
    if pair is not None:
        yield _violation(history.key, Fault.STALE, pair)


def lost_updates(history: KeyHistory) -> int:
    """Return the minimum number of acknowledged writes of a key that are lost.

    Versions and their successors form a tree, of which a single branch can have survived: at best
    the branch with the most acknowledged writes. Writes on a version without a record form a
    separate tree.
    """
    after: dict[str | None, list[PossibleWrite]] = defaultdict(list)
    for write in history.writes:
        after[write.base].append(write)
    kept = 0
    for root in after.keys() - {write.version for write in history.writes}:
        deepest, pending = 0, [(root, 0)]
        while pending:
            version, depth = pending.pop()
            deepest = max(deepest, depth)
            # Visit each version once: damaged records may contain cycles.
            pending += (
                (write.version, depth + (write.end_ns < inf)) for write in after.pop(version, ())
            )
        kept += deepest
    return sum(write.end_ns < inf for write in history.writes) - kept


def _phantoms(history: KeyHistory, is_unrecorded: Callable[[str], bool]) -> Iterator[Violation]:
    written = {write.version for write in history.writes}
    seen: dict[str, int] = {}
    # The function also read the version that a write replaced, but may not have recorded it.
    bases = ((write.base, write.function) for write in history.writes)
    for version, function in (*((read.version, read.function) for read in history.reads), *bases):
        if version is not None:
            seen.setdefault(version, function)
    for version, function in seen.items():
        if version not in written and not is_unrecorded(version):
            yield Violation(
                key=history.key, fault=Fault.PHANTOM, versions=(version,), functions=(function,)
            )


def _effective(history: KeyHistory, is_unrecorded: Callable[[str], bool]) -> list[PossibleWrite]:
    """Return the writes that took effect: acknowledged writes, and writes that others saw."""
    writes = {write.version: write for write in history.writes}
    for read in history.reads:
        version = read.version
        if version is not None and version not in writes and is_unrecorded(version):
            writes[version] = PossibleWrite(version, read.base, _NOBODY, -inf, inf)
    effective: dict[str, PossibleWrite] = {}
    seen = [read.version for read in history.reads]
    seen += [write.version for write in history.writes if write.end_ns < inf]
    while seen:
        write = writes.get(seen.pop() or "")
        if write is not None and write.version not in effective:
            effective[write.version] = write
            seen.append(write.base)
    return sorted(effective.values(), key=lambda write: (write.start_ns, write.version))


def _forks(key: str, chain: Sequence[PossibleWrite]) -> Iterator[Violation]:
    successors: dict[str | None, list[PossibleWrite]] = {}
    for write in chain:
        successors.setdefault(write.base, []).append(write)
    for base, writes in successors.items():
        if len(writes) > 1:
            violation = _violation(key, Fault.FORKED, writes)
            yield structs.replace(violation, versions=(base or "", *violation.versions))


_Stage = Sequence[Event]
"""A single write, or all reads of the version written by the previous stage."""


def _in_order(
    chain: Sequence[PossibleWrite], reads: Sequence[AnsweredRead]
) -> tuple[list[_Stage], Sequence[PossibleWrite]]:
    """Return the stages starting at the empty key, and the writes not connected to them."""
    writes_by_base = {write.base: write for write in chain}
    reads_of: dict[str | None, list[AnsweredRead]] = defaultdict(list)
    for read in reads:
        reads_of[read.version].append(read)
    stages: list[_Stage] = [reads_of[None]]
    version: str | None = None
    while (write := writes_by_base.pop(version, None)) is not None:
        version = write.version
        stages += [write], reads_of[version]
    return stages, tuple(writes_by_base.values())


def _widened(event: Event, clocks: Mapping[int, Bounds]) -> Event:
    """Return an event with its interval extended by the uncertainty of its clock."""
    low, high = clocks.get(event.function, _EXACT)
    return structs.replace(event, start_ns=event.start_ns - high, end_ns=event.end_ns - low)


def _by_function(stages: Sequence[_Stage]) -> Iterator[Sequence[_Stage]]:
    """Yield the stages of each function, in the order of its clock."""
    stages_by_function: dict[int, list[_Stage]] = defaultdict(list)
    for stage in stages:
        events_by_function: dict[int, list[Event]] = defaultdict(list)
        for event in stage:
            events_by_function[event.function].append(event)
        for function, events in events_by_function.items():
            stages_by_function[function].append(events)
    yield from stages_by_function.values()


def _contradiction(stages: Sequence[_Stage]) -> tuple[Event, Event] | None:
    """Return two events in logical order, the first of which started after the second ended."""
    latest: Event | None = None
    for stage in stages:
        for event in stage:
            if latest is not None and latest.start_ns > event.end_ns:
                return latest, event
        for event in stage:
            if latest is None or event.start_ns > latest.start_ns:
                latest = event
    return None


def _violation(key: str, fault: Fault, events: Sequence[Event]) -> Violation:
    return Violation(
        key=key,
        fault=fault,
        versions=tuple(event.version or "" for event in events),
        functions=tuple(event.function for event in events if event.function != _NOBODY),
    )
