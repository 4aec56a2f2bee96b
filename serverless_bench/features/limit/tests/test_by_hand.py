"""Blocks, rows, rounds and the ladder of a search, reckoned by hand."""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, log, sqrt
from pathlib import Path

import numpy as np
import pytest

from serverless_bench.features.limit.block import Block, block_of
from serverless_bench.features.limit.crossing import Crossing, Trial
from serverless_bench.features.limit.result import LevelRow, Limit, result_of
from serverless_bench.features.limit.search import Search
from serverless_bench.features.limit.tests.test_result import MS, OBJECTIVE, made, saved
from serverless_bench.rundir.record import Dropped
from tests.data.runs import S, lost, operation, record
from tests.tables import each_row


def search(*, lowest: int = 10, highest: int = 1000, **allowed: float) -> Search:
    return Search(
        allowed=allowed or {"p99": 0.01}, lowest=lowest, highest=highest, precision=0.05, seed=4
    )


def knowing(low: float, high: float, levels: Sequence[int] = (), **range_: int) -> Search:
    """Return a search that is sure of a limit between two, after blocks at levels."""
    found = search(**range_)
    found.trials["p99"] = [Trial(level=level, due=100, bad=0) for level in levels]
    found.found = Crossing(limits=np.geomspace(low, high, 2001), dispersion=1.0)
    return found


def block(level: int, took_ms: Sequence[int], *, failed: int = 0, dropped: int = 0) -> Block:
    return Block(
        level=level,
        path=None,
        took_s=np.array(took_ms) / 1000,
        failed=failed,
        dropped=dropped,
        achieved_per_s=float(len(took_ms)),
    )


def result(*blocks: Block) -> Limit:
    found = search(p99=0.01, errors=0.001)
    for one in blocks:
        for name, bad in one.bad(OBJECTIVE).items():
            found.trials[name].append(Trial(level=one.level, due=one.due, bad=bad))
    return result_of(found, blocks, OBJECTIVE, over="rate", block_s=5, settle_s=1, took_s=12)


def test_a_row_adds_up_its_blocks() -> None:
    of = result(
        block(100, range(1, 501), failed=2),
        block(20, [1, 2, 3]),
        block(100, range(501, 997), failed=1, dropped=1),
    )
    assert [row.level for row in of.rows] == [20, 100]
    row = of.rows[1]
    assert (row.blocks, row.due, row.failed, row.dropped) == (2, 1000, 3, 1)
    assert (row.achieved_per_s, row.errors) == (498, 0.004)
    assert (row.p50_s, row.p99_s) == (0.5, 0.99)
    around = 1.96 * sqrt(of.dispersion * 0.99 * 0.01 / 1000)
    assert row.p99_low_s == ceil((0.99 - around) * 1000) / 1000 < 0.99
    # Unfinished operations have an infinite time.
    assert row.p99_high_s == (None if 0.99 + around > 0.996 else pytest.approx(0.993, abs=0.003))
    assert (of.blocks, of.rounds, of.took_s, of.ended) == (3, 0, 12, "undecided")


def test_a_percentile_may_be_an_unfinished_operation() -> None:
    (row,) = result(block(50, range(1, 99), failed=1, dropped=1)).rows
    assert (row.p50_s, row.p99_s, row.p99_high_s) == (0.05, None, None)
    (row,) = result(block(50, range(1, 100), dropped=1)).rows
    assert (row.p99_s, row.p99_high_s) == (0.099, None)
    (row,) = result(block(50, [], dropped=4)).rows
    assert (row.p50_s, row.errors) == (None, 1)


@each_row(
    ("holds", "verdict"),
    [
        (1.0, "holds"),
        (0.976, "holds"),
        (0.974, "undecided"),
        (0.026, "undecided"),
        (0.024, "does not hold"),
    ],
)
def test_a_verdict_has_the_confidence_of_the_interval(holds: float, verdict: str) -> None:
    (row,) = result(block(50, range(1, 100))).rows
    assert isinstance(row, LevelRow)
    assert replace(row, holds=holds, together=1.0, broken=False).verdict == verdict
    # Too few blocks, or a few of them that break it, show no level to hold.
    assert replace(row, holds=holds, together=0.97, broken=False).verdict != "holds"


def test_a_level_whose_own_share_breaks_the_objective_does_not_hold() -> None:
    (row,) = result(block(50, [1] * 100)).rows
    assert not row.broken
    assert replace(row, holds=1.0, together=1.0, broken=False).verdict == "holds"
    assert replace(row, holds=1.0, together=1.0, broken=True).verdict == "undecided"


def test_the_limit_lies_in_its_interval_and_the_knee_where_the_rate_stops() -> None:
    found = made()
    assert found.limit is not None
    assert (found.low or 0) <= found.limit <= (found.high or 0)
    assert (found.lowest, found.highest, found.precision) == (10, 1000, 0.05)
    assert (found.block_s, found.settle_s, found.confidence) == (5, 1, 0.95)
    assert found.knee is not None
    assert found.knee.law == "capped"
    assert found.knee.at == pytest.approx(100, rel=0.02)


def test_where_the_rate_never_stops_there_is_no_knee() -> None:
    even = [block(level, [1] * level) for level in (10, 20, 40, 80, 160)]
    knee = result(*even).knee
    assert knee is not None
    assert (knee.at, knee.most_per_s) == (None, 160)
    few = result(*even[:3]).knee
    assert few is not None
    assert (few.at, few.law) == (None, None)
    assert result(*even[:2]).knee is None
    # A level without operations has no rate.
    assert result(*even[:2], *(block(level, [], dropped=9) for level in (320, 640))).knee is None


def test_blocks_begin_and_end_at_instants_that_are_due(tmp_path: Path) -> None:
    ends = {0: 2 * S, 1: 2 * S + 1, 2: 3 * S, 3: 4 * S, 4: 4 * S + 1}
    ops = [
        replace(operation(n, start_ns=n * S, end_ns=end), intended_ns=n * S)
        for n, end in ends.items()
    ]
    found = block_of(saved(tmp_path / "run", [record(0, ops)]), 7, 2.0)
    # Due from 2 to 4 s: two, in two seconds. Three ended then, one of them from a backlog.
    assert (found.level, found.took_s.tolist()) == (7, [1e-9, 1, 1])
    assert found.achieved_per_s == 1.0
    assert found.path == tmp_path / "run"
    # One thread for 4 s, whose operations took 5 s.
    assert found.busy == pytest.approx(5 / 4)


def test_a_lost_function_is_taken_for_one_like_the_others(tmp_path: Path) -> None:
    ops = [
        replace(operation(n, start_ns=n * S, end_ns=n * S + MS, error=error), intended_ns=n * S)
        for n, error in enumerate((None, None, "SlowDown"))
    ]
    never = Dropped(first_ns=3 * S, last_ns=4 * S, count=2, until_ns=5 * S)
    ran = [replace(record(n, ops), dropped=(never,)) for n in range(2)]
    found = block_of(saved(tmp_path / "run", [*ran, lost(2)]), 2, 0.0)
    # Each function that ran had five operations due, one of which failed.
    assert (len(found.took_s), found.failed, found.dropped) == (4, 2 + 5, 4)
    nothing = block_of(saved(tmp_path / "none", [lost(0)]), 2, 0.0)
    assert (nothing.failed, nothing.dropped, nothing.achieved_per_s) == (1, 0, 0.0)
    assert (nothing.level, nothing.path, nothing.took_s.tolist()) == (2, tmp_path / "none", [])


@pytest.mark.parametrize(
    ("allowed", "bad"),
    # Ten times the allowed share, a fifth at most, and never less than the allowed share.
    [(0.01, 100), (0.05, 200), (0.3, 300)],
)
def test_the_ramp_ends_where_far_more_is_bad_than_is_allowed(allowed: float, bad: int) -> None:
    ramping, ended = search(p99=allowed), search(p99=allowed)
    for one in (ramping, ended):
        assert one.next_level() == 10
        one.add(10, {"p99": 0}, 1000)
        assert one.next_level() == 20
    ramping.add(20, {"p99": bad}, 1000)
    assert ramping.next_level() == 40
    ended.add(20, {"p99": bad + 1}, 1000)
    assert ended.next_level() in range(10, 41)
    assert (ramping.rounds, ended.rounds) == (0, 1)


def test_levels_are_those_of_a_ladder_between_the_ends() -> None:
    found = search(highest=300)
    assert found.next_level() == 10
    levels: list[int] = []
    while (level := found.next_level()) is not None:
        levels.append(level)
        found.add(level, {"p99": 0 if level <= 150 else 500}, 1000)
    assert levels[:5] == [10, 20, 40, 80, 160]
    assert found.rounds >= 3
    assert len(levels) == 5 + 4 * found.rounds
    assert (found.next_level(), found.reached) == (None, "precision")
    # Rungs are 3.5 % apart, from a place that the seed draws.
    step, phase = log(1.035), float(np.random.default_rng(4).random())
    for level in set(levels[5:]) - {10, 300}:
        nearest = round(log(level) / step - phase) + phase
        assert abs(level - np.exp(nearest * step)) < 1


def test_the_interval_ends_at_levels_that_were_tried() -> None:
    between = knowing(90, 110, (50, 80, 89, 95, 105, 111, 200))
    assert between.interval == pytest.approx((89, 111))
    low, high = knowing(90, 110).interval
    assert (low, high) == pytest.approx((90.5, 109.5), abs=0.1)


def test_a_search_ends_when_it_knows_enough() -> None:
    # Half the width may be 5 % of the median, which is 100.
    assert knowing(95, 105, (90, 110)).reached is None
    assert knowing(97, 104, (95, 105)).reached == "precision"
    assert knowing(97, 104, (95, 106)).reached is None
    # There is no integer between two neighbouring ones.
    assert knowing(3.2, 3.8, (3, 4), lowest=1).reached == "precision"
    assert knowing(3.2, 4.8, (3, 5), lowest=1).reached is None
    assert knowing(7, 9.9, (10,)).reached == "lowest"
    assert knowing(1001, 1400, (1000,)).reached == "highest"
    assert knowing(900, 1400, (1000,)).reached is None
