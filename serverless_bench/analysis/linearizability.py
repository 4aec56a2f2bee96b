"""Whether what happened at one key can have happened in one order: linearizability. Pure.

Every write names the version that it makes, which no other write makes, and the version
that it replaces. So the order of the writes that took effect is given: each follows the one
that it replaced, and all of them make one chain from the empty key on. Three things are
left to check (linearizability is defined by Herlihy and Wing 1990; Gibbons and Korach 1997
show that it takes n log n where it is known which write each read has read from):

1.  No version has two successors: else the update of one of them is lost.
2.  Whatever was read was written, and by a write that was not refused.
3.  Real time agrees. Each write has an instant in its interval, and each read one in its
    own, after the write of its version and before the next one. Taking for each the
    earliest instant that is left shows whether there are such instants.

A write whose outcome is unknown took effect if somebody saw its version; else it is left
out, which contradicts nothing. Instants of two functions are compared as far as their
clocks are known: each interval is widened by that. Those of one function are compared as
they are.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf
from typing import Final

Bounds = tuple[float, float]
"""Least and largest error of a function's clock, in ns; infinite if nothing is known."""
_EXACT: Final[Bounds] = (0, 0)
_NOBODY: Final = -1


class Fault(StrEnum):
    """What is wrong with a history."""

    FORKED = "forked"
    """One version was replaced twice: one of the two updates is lost."""
    PHANTOM = "phantom"
    """A version was read that nobody wrote, or whose write was refused."""
    STALE = "stale"
    """A version was read, or replaced, after a later one had been there."""
    UNCLAIMED = "unclaimed"
    """A claim was refused as taken, and nobody has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One fault; analysis/figures.toml defines each field."""

    key: str
    fault: Fault
    versions: tuple[str, ...]
    functions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Event:
    """A read or a write of one version."""

    version: str | None
    """None if nothing was there."""
    base: str | None
    """The version that this one replaced; None for the empty key."""
    function: int
    start_ns: float
    end_ns: float
    """Infinite for a write whose outcome is unknown."""


@dataclass(frozen=True, slots=True)
class PossibleWrite(Event):
    """A write that was acknowledged, or may have been performed."""

    version: str


class AnsweredRead(Event):
    """A read that was answered."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class KeyHistory:
    """What was done at one key, in no order."""

    key: str
    writes: Sequence[PossibleWrite]
    reads: Sequence[AnsweredRead]


def violations(
    history: KeyHistory,
    clocks: Mapping[int, Bounds],
    is_unrecorded: Callable[[str], bool] = lambda _: False,
) -> Iterator[Violation]:
    """Yield what is wrong with the history of one key; nothing if it is linearizable.

    Parameters
    ----------
    history
        Its reads and writes; writes that were refused are left out.
    clocks
        By function: its clock minus the true time lies between these.
    is_unrecorded
        Whether a version may have been written by a function that left no record.
    """
    found = list(_phantoms(history, is_unrecorded))
    chain = _effective(history, is_unrecorded)
    found += _forks(history.key, chain)
    yield from found
    if found:
        return
    stages, circle = _in_order(chain, history.reads)
    versions = {write.version for write in chain}
    # Each has replaced one that came after it; what rests on no known version is left alone.
    if circle and all(write.base in versions for write in circle):
        yield _violation(history.key, Fault.STALE, circle)
        return
    pair = _contradiction([[_widened(event, clocks) for event in stage] for stage in stages])
    for own in _by_function(stages):
        pair = pair or _contradiction(own)
    if pair is not None:
        yield _violation(history.key, Fault.STALE, pair)


def lost_updates(history: KeyHistory) -> int:
    """Return how many acknowledged writes of a key are lost, at least.

    Versions that replace one another make a tree, and one branch of it can have survived: at most
    that with the most acknowledged writes. What rests on a version without a record is a tree of
    its own.
    """
    after: dict[str | None, list[PossibleWrite]] = defaultdict(list)
    for write in history.writes:
        after[write.base].append(write)
    kept = 0
    for root in after.keys() - {write.version for write in history.writes}:
        deepest, left = 0, [(root, 0)]
        while left:
            version, depth = left.pop()
            deepest = max(deepest, depth)
            # Each once: damaged records may have versions that rest on one another.
            left += (
                (write.version, depth + (write.end_ns < inf)) for write in after.pop(version, ())
            )
        kept += deepest
    return sum(write.end_ns < inf for write in history.writes) - kept


def _phantoms(history: KeyHistory, is_unrecorded: Callable[[str], bool]) -> Iterator[Violation]:
    written = {write.version for write in history.writes}
    seen: dict[str, int] = {}
    # What a write replaced was read by the same function, but perhaps not recorded.
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
    """Return the writes that took effect: acknowledged ones, and those that others rest on."""
    writes = {write.version: write for write in history.writes}
    for read in history.reads:
        version = read.version
        if version is not None and version not in writes and is_unrecorded(version):
            writes[version] = PossibleWrite(version, read.base, _NOBODY, -inf, inf)
    found: dict[str, PossibleWrite] = {}
    seen = [read.version for read in history.reads]
    seen += [write.version for write in history.writes if write.end_ns < inf]
    while seen:
        write = writes.get(seen.pop() or "")
        if write is not None and write.version not in found:
            found[write.version] = write
            seen.append(write.base)
    return sorted(found.values(), key=lambda write: (write.start_ns, write.version))


def _forks(key: str, chain: Sequence[PossibleWrite]) -> Iterator[Violation]:
    successors: dict[str | None, list[PossibleWrite]] = {}
    for write in chain:
        successors.setdefault(write.base, []).append(write)
    for base, mine in successors.items():
        if len(mine) > 1:
            found = _violation(key, Fault.FORKED, mine)
            yield replace(found, versions=(base or "", *found.versions))


_Stage = Sequence[Event]
"""A write alone, or all reads of the version of the write before."""


def _in_order(
    chain: Sequence[PossibleWrite], reads: Sequence[AnsweredRead]
) -> tuple[list[_Stage], Sequence[PossibleWrite]]:
    """Return what was done, from the empty key on, and the writes that do not rest on it."""
    after = {write.base: write for write in chain}
    reads_of: dict[str | None, list[AnsweredRead]] = defaultdict(list)
    for read in reads:
        reads_of[read.version].append(read)
    stages: list[_Stage] = [reads_of[None]]
    version: str | None = None
    while (write := after.pop(version, None)) is not None:
        version = write.version
        stages += [write], reads_of[version]
    return stages, tuple(after.values())


def _widened(event: Event, clocks: Mapping[int, Bounds]) -> Event:
    """Return an event with the interval in which it certainly was, by the true time."""
    low, high = clocks.get(event.function, _EXACT)
    return replace(event, start_ns=event.start_ns - high, end_ns=event.end_ns - low)


def _by_function(stages: Sequence[_Stage]) -> Iterator[Sequence[_Stage]]:
    """Yield what each function did: its own clock says in which order."""
    own: dict[int, list[_Stage]] = defaultdict(list)
    for stage in stages:
        mine: dict[int, list[Event]] = defaultdict(list)
        for event in stage:
            mine[event.function].append(event)
        for function, events in mine.items():
            own[function].append(events)
    yield from own.values()


def _contradiction(stages: Sequence[_Stage]) -> tuple[Event, Event] | None:
    """Return two events of which the first belongs before the second, and began after its end."""
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
