"""The search for a limit, on stores whose limit is known."""

from math import log

import numpy as np
import pytest

from serverless_bench.series.limit.block import Objective
from serverless_bench.series.limit.search import Search
from serverless_bench.statistics.posterior import Trial, posterior
from tests.stores.queues import Queue

ALLOWED = {"p99": 0.01, "errors": 0.001}
SEEDS = 100
MUST_HOLD = 91
SHAPES = {
    "200 op/s": Queue(per_s=200, servers=2, p99_s=0.05),
    "1,000 op/s": Queue(per_s=1000, servers=10, p99_s=0.05),
    "5,000 op/s": Queue(per_s=5000, servers=50, p99_s=0.05),
    "latency grows": Queue(per_s=1000, servers=1, p99_s=0.01, random=True),
}


def objective_of(queue: Queue) -> Objective:
    return Objective(p99_s=queue.p99_s, errors=0.001)


def searched(queue: Queue, seed: int, *, blocks: int = 36, **settings: float) -> Search:
    """Return a search that has seen so many blocks of a store, or is through."""
    rng = np.random.default_rng([seed, 1])
    how = {"lowest": 10, "highest": 20_000, "precision": 0.05} | settings
    search = Search(allowed=ALLOWED, seed=seed, **how)  # type: ignore[arg-type] # whole numbers
    for _ in range(blocks):
        level = search.next_level()
        if level is None:
            break
        block = queue.block(level, rng)
        search.add(level, block.bad(objective_of(queue)), block.due)
    search.conclude()
    return search


@pytest.mark.parametrize("name", SHAPES)
def test_the_interval_has_the_truth_in_it_as_often_as_it_says(name: str) -> None:
    queue = SHAPES[name]
    hits, widths = 0, []
    for seed in range(SEEDS):
        low, high = searched(queue, seed).interval
        hits += low <= queue.limit_per_s <= high
        widths.append((high - low) / queue.limit_per_s)
    assert hits >= MUST_HOLD
    # An interval of everything would have it, too.
    assert float(np.median(widths)) < 0.35


def levels_tried(seed: int) -> list[int]:
    search = searched(SHAPES["1,000 op/s"], seed, blocks=100)
    assert search.reached == "precision"
    return [trial.level for trial in search.trials["p99"]]


def test_levels_come_again_in_rounds_between_others() -> None:
    levels = levels_tried(0)
    assert levels[:8] == [10, 20, 40, 80, 160, 320, 640, 1280]
    border = [level for level in levels if 950 < level < 1060]
    assert sum(border.count(level) > 1 for level in set(border)) > 1
    assert border != sorted(border)
    assert levels == levels_tried(0) != levels_tried(1)


def test_one_spoiled_block_costs_blocks_but_not_the_truth() -> None:
    queue, rng = SHAPES["1,000 op/s"], np.random.default_rng(5)
    search = Search(allowed=ALLOWED, lowest=10, highest=20_000, precision=0.05)
    for number in range(80):
        level = search.next_level()
        if level is None:
            break
        block = queue.block(level, rng)
        bad = block.bad(objective_of(queue))
        # Something else used the machine: the ramp ends far too early.
        search.add(level, {**bad, "p99": block.due} if number == 3 else bad, block.due)
    low, high = search.interval
    assert low <= queue.limit_per_s <= high


@pytest.mark.parametrize(
    ("range_", "ended"), [({"lowest": 400}, "lowest"), ({"highest": 100}, "highest")]
)
def test_a_limit_outside_of_what_is_allowed_is_said_to_be_there(
    range_: dict[str, float], ended: str
) -> None:
    assert searched(SHAPES["200 op/s"], 3, blocks=200, **range_).reached == ended


def test_whole_numbers_are_as_precise_as_it_gets() -> None:
    search = Search(allowed={"p99": 0.01}, lowest=1, highest=64, precision=0.05)
    while (level := search.next_level()) is not None:
        search.add(level, {"p99": 0 if level <= 6 else 500}, 1000)
    assert search.reached == "precision"
    assert search.interval == (6, 7)


def test_the_limit_of_two_parts_is_the_lower_one() -> None:
    def trials(limit: int) -> list[Trial]:
        levels = range(50, 150, 5)
        return [Trial(level=n, due=10_000, bad=0 if n < limit else 5000) for n in levels]

    slow, failed = trials(120), trials(90)
    both = posterior([(0.01, slow), (0.001, failed)], 10, 1000)
    assert 85 <= both.quantile(0.025) < both.quantile(0.975) <= 90
    assert posterior([(0.01, slow)], 10, 1000).quantile(0.5) == pytest.approx(117.5, abs=2.5)


def test_a_curve_is_crossed_where_it_reaches_what_is_allowed() -> None:
    # Without noise: the share of an M/M/1 queue, 1000 served a second, 10 ms.
    levels = range(480, 620, 10)
    trials = [
        Trial(level=n, due=100_000, bad=round(100_000 * np.exp(-(1000 - n) * 0.01))) for n in levels
    ]
    found = posterior([(0.01, trials)], 10, 20_000)
    assert found.quantile(0.5) == pytest.approx(1000 - log(100) / 0.01, rel=0.02)


def test_more_noise_than_chance_makes_the_interval_wider() -> None:
    def width(spread: int) -> float:
        trials = [
            Trial(level=n, due=1000, bad=max(0, 10 + (n - 100) + spread * (-1) ** n))
            for n in range(92, 110)
        ]
        found = posterior([(0.01, trials)], 10, 1000)
        return found.quantile(0.975) - found.quantile(0.025)

    assert width(8) > 1.5 * width(0)
