"""The level at which the share of bad operations exceeds the allowed share."""

from collections.abc import Sequence

import numpy as np
import pytest

from serverless_bench.features.limit.crossing import (
    WATCHED,
    Crossing,
    Trial,
    breaks_alike,
    crossing,
    holds_together,
)
from tests.tables import each_row


def trials(*blocks: tuple[int, int, int]) -> list[Trial]:
    return [Trial(level=level, due=due, bad=bad) for level, due, bad in blocks]


def test_quantiles_and_probabilities_are_those_of_the_draws() -> None:
    some = Crossing(limits=np.array([10.0, 20.0, 30.0, 40.0]), dispersion=1.0)
    assert some.quantile(0.5) == 25
    assert [some.above(level) for level in (10, 20, 21, 41)] == [1, 0.75, 0.5, 0]


def test_the_limit_is_between_the_tested_levels() -> None:
    found = crossing([(0.01, trials((50, 10_000, 0), (100, 10_000, 5), (120, 10_000, 4000)))])
    assert found.limits.min() >= 100
    assert found.limits.max() <= 120
    # All ratios are equally likely.
    assert found.quantile(0.5) == pytest.approx((100 * 120) ** 0.5, rel=0.02)


@pytest.mark.parametrize(("bad", "low", "high"), [(0, 80, 160), (9000, 25, 50)])
def test_a_limit_outside_of_all_levels_is_only_known_to_be_there(
    bad: int, low: int, high: int
) -> None:
    limits = crossing([(0.01, trials((50, 10_000, bad), (80, 10_000, bad)))]).limits
    assert (limits.min(), limits.max()) == pytest.approx((low, high), rel=0.02)


def test_levels_with_few_operations_take_from_those_above() -> None:
    # 50 operations alone leave 1 % open; no higher level is worse.
    alone = crossing([(0.01, trials((10, 50, 0)))])
    among = crossing([(0.01, trials((10, 50, 0), (40, 5000, 1), (80, 5000, 2)))])
    assert alone.above(10) < 0.9
    assert among.above(10) > 0.99


def test_a_level_without_bad_operations_holds_with_at_least_a_half() -> None:
    blocks = trials((10, 5, 0), (20, 5000, 300))
    found = crossing([(0.01, blocks), (0.02, blocks)])
    assert (found.limits >= 10).mean() < 0.5
    # Neither of NumPy, which JSON refuses.
    assert (type(found.above(10)), found.above(10)) == (float, 0.5)


def test_a_share_that_is_bad_at_every_level_never_holds() -> None:
    levels = (100, 200, 400, 800)
    found = crossing([(0.01, trials(*((n, 20_000, 300) for n in levels), (1600, 8000, 8000)))])
    assert found.above(100) < 0.01


def test_the_limit_of_two_parts_is_the_lower_one() -> None:
    def part(limit: int) -> list[Trial]:
        return trials(*((n, 10_000, 0 if n < limit else 5000) for n in range(50, 150, 5)))

    both = crossing([(0.01, part(120)), (0.001, part(90))])
    assert 85 <= both.quantile(0.025) < both.quantile(0.975) <= 90


def test_far_above_the_limit_worse_is_not_more() -> None:
    def shares(allowed: float, bad: int) -> float:
        return crossing([(allowed, trials((10, 1000, 0), (200, 1000, bad)))]).quantile(0.5)

    # 20 times the allowed share, or half way from there to all.
    assert shares(0.01, 200) == shares(0.01, 1000)
    assert shares(0.3, 650) == shares(0.3, 1000)


def test_clumps_make_the_interval_wider() -> None:
    def width(*, clumps: bool) -> float:
        blocks = [
            (n, 2000, 20 + 2 * (n - 100) + (19 * (-1) ** n if clumps else 0))
            for n in range(92, 110)
        ]
        found = crossing([(0.01, trials(*blocks))])
        return found.quantile(0.975) - found.quantile(0.025)

    assert width(clumps=True) > 1.5 * width(clumps=False)


@each_row(
    ("below", "alike"),
    [
        # 1.2 % everywhere, however few operations a level has.
        (((10, 40, 0), (20, 80, 1), (40, 160, 3), (400, 10_000, 120)), True),
        (((10, 400, 6),), True),
        # No bad operation, or too few operations.
        (((10, 400, 0),), False),
        (((10, 40, 0), (20, 80, 0)), False),
        (((10, 40, 1),), False),
        # It gets worse.
        (((10, 2000, 2), (400, 2000, 24)), False),
        (((10, 400, 0), (400, 10_000, 150)), False),
        ((), True),
    ],
)
def test_lower_levels_break_an_objective_where_they_have_as_many_bad_operations(
    below: Sequence[tuple[int, int, int]], *, alike: bool
) -> None:
    blocks = trials(*below, (800, 20_000, 300), (1600, 8000, 8000))
    assert breaks_alike(0.01, blocks, 800) == alike


def test_a_level_holds_only_if_enough_blocks_at_or_below_it_hold_together() -> None:
    clean = trials(*((10, 40, 0),) * 12, *((100, 400, 0),) * 12, (200, 800, 800))
    assert len(clean) == WATCHED + 1
    assert holds_together(0.01, clean, 100) == 1
    assert holds_together(0.01, clean, 99) == holds_together(0.01, clean[1:], 100) == 0
    assert holds_together(0.01, clean, 200) < 0.5


@pytest.mark.parametrize("stalled", [(100, 400, 60), (10, 40, 6)])
def test_a_share_that_rests_on_one_block_is_uncertain(stalled: tuple[int, int, int]) -> None:
    """A stall of 15 % of a block is 0.6 % of all, also where the block has few operations."""
    blocks = trials(stalled, *((100, 400, 0),) * 23)
    assert sum(t.bad for t in blocks) < 0.01 * sum(t.due for t in blocks)
    assert 0.6 < holds_together(0.01, blocks, 100) < 0.95
    even = trials(*((100, 400, 2),) * 24)
    assert holds_together(0.01, even, 100) == 1


def test_no_block_is_left_out_because_others_hold() -> None:
    """Three of four blocks hold; the fourth has a stall that makes a quarter slow."""
    levels = range(100, 140)
    blocks = trials(*((level, 4000, 0 if level % 4 else 1000) for level in levels))
    assert crossing([(0.01, blocks)]).quantile(0.5) < 100
