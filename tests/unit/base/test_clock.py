"""Clocks: interrupted readings, and any time awake, suspensions and settings of the wall clock."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.base import clock
from serverless_bench.base.clock import EpochClock, WakingClock

S = 10**9
NOTICED_S = 2
ORIGIN_NS = 1_700_000_000 * S
spans = st.tuples(st.integers(0, 10 * S), st.integers(-5 * S, 10_000 * S))
"""Time awake, and by how much the wall clock is ahead after that: of a suspension, or set."""


@given(st.lists(st.integers(0, S), min_size=9, max_size=9))
def test_its_origin_is_exact_unless_all_readings_are_interrupted(breaks_ns: list[int]) -> None:
    passed_ns = 0
    pauses = iter(breaks_ns)

    def awake_ns() -> int:
        nonlocal passed_ns
        now_ns, passed_ns = passed_ns, passed_ns + next(pauses)
        return now_ns

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock, "monotonic_ns", awake_ns)
        patch.setattr(clock, "wall_ns", lambda: ORIGIN_NS + awake_ns())
        error_ns = EpochClock().origin_ns - ORIGIN_NS
    # Between the three readings of an attempt, and after it.
    quickest_ns = min(breaks_ns[at] + breaks_ns[at + 1] for at in range(0, 9, 3))
    assert 0 <= error_ns <= quickest_ns


@given(st.lists(spans, max_size=20))
def test_it_counts_each_suspension_once_and_never_goes_back(
    changes: list[tuple[int, int]],
) -> None:
    awake_ns, ahead_ns = 0, 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock, "monotonic_ns", lambda: awake_ns)
        patch.setattr(clock, "wall_ns", lambda: ORIGIN_NS + awake_ns + ahead_ns)
        waking = WakingClock()
        before_ns, counted_ns = waking.now_ns(), 0
        for passed_ns, changed_ns in changes:
            awake_ns += passed_ns
            ahead_ns += changed_ns
            now_ns = waking.now_ns()
            slept_ns = sum(end - begin for begin, end in waking.suspensions)
            new_ns, counted_ns = slept_ns - counted_ns, slept_ns
            assert now_ns - before_ns == passed_ns + new_ns, "it never goes back"
            assert clock.wall_ns() - now_ns <= NOTICED_S * S
            if new_ns:
                assert new_ns > NOTICED_S * S
                assert waking.suspensions[-1] == (now_ns - new_ns, now_ns)
            before_ns = now_ns


def test_an_hour_is_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    waking = WakingClock()
    before_ns, wall_ns = waking.now_ns(), clock.wall_ns
    monkeypatch.setattr(clock, "wall_ns", lambda: wall_ns() + 3600 * S)
    assert waking.now_ns() - before_ns > 3500 * S
    ((began_ns, ended_ns),) = waking.suspensions
    assert abs(ended_ns - began_ns - 3600 * S) < NOTICED_S * S
