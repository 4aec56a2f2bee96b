"""The checker of histories agrees with a checker that tries every order."""

from functools import cache
from math import inf
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from serverless_bench.features.conditional.linearizability import (
    AnsweredRead,
    Bounds,
    Fault,
    KeyHistory,
    PossibleWrite,
    lost_updates,
    violations,
)
from tests.tables import each_row

E = TypeVar("E", AnsweredRead, PossibleWrite)
SHARP: dict[int, Bounds] = {}
"""Clocks without an error."""


def is_linearizable(history: KeyHistory) -> bool:
    """Try every order that real time allows; a write without an end may fall out."""
    events: list[AnsweredRead | PossibleWrite] = [*history.writes, *history.reads]

    @cache
    def can_go_on(left: frozenset[int], state: str | None) -> bool:
        if all(events[n].end_ns == inf for n in left):
            return True
        for n in left:
            event = events[n]
            if any(events[other].end_ns < event.start_ns for other in left):
                continue
            # A write replaces the version that it is based on, a read sees the current version.
            needed = event.base if isinstance(event, PossibleWrite) else event.version
            if needed == state and can_go_on(left - {n}, event.version):
                return True
        return False

    return can_go_on(frozenset(range(len(events))), None)


@st.composite
def histories(draw: st.DrawFn) -> KeyHistory:
    """Make a short history: mostly a chain, with instants, bases and reads that may be wrong."""
    count = draw(st.integers(0, 4))
    names: list[str | None] = [None, *(f"v{n}" for n in range(count))]
    instant = st.integers(0, 12)
    writes = []
    for n in range(count):
        base = draw(st.sampled_from(names)) if draw(st.booleans()) else names[n]
        start, length = draw(instant), draw(st.integers(0, 6))
        end = inf if draw(st.integers(0, 3)) == 0 else start + length
        writes.append(PossibleWrite(f"v{n}", base, draw(st.integers(0, 1)), start, end))
    reads = []
    for _ in range(draw(st.integers(0, 4))):
        start, length = draw(instant), draw(st.integers(0, 6))
        version = draw(st.sampled_from([*names, "nobody's"]))
        reads.append(AnsweredRead(version, None, draw(st.integers(0, 1)), start, start + length))
    return KeyHistory("k", writes, reads)


def agree(history: KeyHistory) -> None:
    assert (not list(violations(history, SHARP))) is is_linearizable(history)


@settings(max_examples=375)
@given(histories())
def test_it_agrees_with_trying_every_order(history: KeyHistory) -> None:
    agree(history)


@pytest.mark.full
@settings(max_examples=1500)
@given(histories())
def test_it_agrees_in_many_histories(history: KeyHistory) -> None:
    agree(history)


def shifted(event: E, by: float) -> E:
    return replace(event, start_ns=event.start_ns + by, end_ns=event.end_ns + by)


@settings(max_examples=125)
@given(histories(), st.integers(0, 4), st.integers(0, 4))
def test_uncertain_clocks_cause_no_violation(history: KeyHistory, first: int, second: int) -> None:
    cause_no_violation(history, first, second)


@pytest.mark.full
@settings(max_examples=500)
@given(histories(), st.integers(0, 4), st.integers(0, 4))
def test_uncertain_clocks_cause_none_in_many_histories(
    history: KeyHistory, first: int, second: int
) -> None:
    cause_no_violation(history, first, second)


def cause_no_violation(history: KeyHistory, first: int, second: int) -> None:
    """With any clock errors within the known bounds, a possible history raises no violation."""
    clocks: dict[int, Bounds] = {0: (-4.0, 4.0), 1: (-4.0, 4.0)}
    shown = (first, -second)
    writes = [shifted(write, shown[write.function]) for write in history.writes]
    reads = [shifted(read, shown[read.function]) for read in history.reads]
    if is_linearizable(history):
        assert list(violations(KeyHistory("k", writes, reads), clocks)) == []


def chain(*writes: tuple[str, str | None, float, float]) -> list[PossibleWrite]:
    return [PossibleWrite(version, base, 0, start, end) for version, base, start, end in writes]


FAULTS = [
    (Fault.FORKED, chain(("a", None, 0, 1), ("b", "a", 2, 3), ("c", "a", 2, 3)), []),
    (Fault.PHANTOM, [], [AnsweredRead("x", None, 1, 0, 1)]),
    (Fault.STALE, chain(("a", None, 0, 1), ("b", "a", 2, 3)), [AnsweredRead("a", None, 0, 4, 5)]),
    (Fault.STALE, chain(("a", None, 0, 1)), [AnsweredRead(None, None, 0, 2, 3)]),
    (Fault.STALE, chain(("a", None, 4, 5)), [AnsweredRead("a", None, 0, 1, 2)]),
    (Fault.STALE, chain(("a", "b", 0, 9), ("b", "a", 0, 9)), []),
]


@each_row(("fault", "writes", "reads"), FAULTS)
def test_a_fault_has_a_name(
    fault: Fault, writes: list[PossibleWrite], reads: list[AnsweredRead]
) -> None:
    (found,) = violations(KeyHistory("k", writes, reads), SHARP)
    assert (found.key, found.fault) == ("k", fault)


@each_row(
    ("writes", "lost"),
    [
        ([], 0),
        (chain(("a", None, 0, 1), ("b", "a", 2, 3)), 0),
        (chain(("a", None, 0, 1), ("b", "a", 2, 3), ("c", "a", 2, 3)), 1),
        # Whichever branch survived, three are gone.
        (chain(*((name, None, 0, 1) for name in "abcd")), 3),
        (chain(("a", None, 0, 1), ("b", "a", 2, 3), ("c", "b", 4, 5), ("x", None, 0, 1)), 1),
        # A write without an answer promises nothing.
        (chain(("a", None, 0, 1), ("b", None, 0, inf)), 0),
        # A write without a record comes between both.
        (chain(("a", None, 0, 1), ("c", "unrecorded", 4, 5)), 0),
    ],
)
def test_acknowledged_updates_in_no_branch_are_lost(writes: list[PossibleWrite], lost: int) -> None:
    assert lost_updates(KeyHistory("k", writes, [])) == lost


@given(histories())
def test_a_possible_history_has_no_lost_update(history: KeyHistory) -> None:
    if is_linearizable(history):
        assert lost_updates(history) == 0


def test_a_fork_names_the_version_and_all_that_replaced_it() -> None:
    writes = [
        PossibleWrite("a", None, 4, 0, 1),
        PossibleWrite("b", "a", 5, 2, 3),
        PossibleWrite("c", "a", 6, 2, 3),
    ]
    (found,) = violations(KeyHistory("k", writes, []), SHARP)
    assert (found.versions, found.functions) == (("a", "b", "c"), (5, 6))


def test_an_unanswered_write_is_neither_counted_nor_a_violation() -> None:
    lost = PossibleWrite("b", "a", 1, 2, inf)
    writes = [*chain(("a", None, 0, 1), ("c", "a", 4, 5)), lost]
    assert list(violations(KeyHistory("k", writes, []), SHARP)) == []


def test_an_unanswered_write_counts_if_it_was_read() -> None:
    lost = PossibleWrite("b", "a", 1, 2, inf)
    writes = [*chain(("a", None, 0, 1), ("c", "a", 4, 5)), lost]
    (found,) = violations(KeyHistory("k", writes, [AnsweredRead("b", "a", 0, 6, 7)]), SHARP)
    assert found.fault is Fault.FORKED


def test_a_version_of_a_function_without_a_record_is_believed() -> None:
    writes = chain(("a", None, 0, 1), ("c", "b", 8, 9))
    history = KeyHistory("k", writes, [AnsweredRead("b", "a", 0, 6, 7)])
    assert list(violations(history, SHARP, lambda token: token == "b")) == []
    assert [one.fault for one in violations(history, SHARP)] == [Fault.PHANTOM]


def test_two_functions_are_compared_as_far_as_their_clocks_are_known() -> None:
    writes = [PossibleWrite("a", None, 0, 0, 1)]
    reads = [AnsweredRead(None, None, 1, 5, 6)]
    assert list(violations(KeyHistory("k", writes, reads), SHARP))
    off: dict[int, Bounds] = {0: (0, 0), 1: (-2, 6)}
    assert list(violations(KeyHistory("k", writes, reads), off)) == []
    unknown: dict[int, Bounds] = {0: (-inf, inf), 1: (-inf, inf)}
    assert list(violations(KeyHistory("k", writes, reads), unknown)) == []


def test_one_function_is_compared_by_its_own_clock_however_wrong_that_is() -> None:
    writes = [PossibleWrite("a", None, 0, 0, 1)]
    reads = [AnsweredRead(None, None, 0, 5, 6)]
    assert list(violations(KeyHistory("k", writes, reads), {0: (-inf, inf)}))
