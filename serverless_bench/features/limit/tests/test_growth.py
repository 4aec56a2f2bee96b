"""A growing queue is recognized before it is too long, and a steady queue is not."""

import numpy as np
import pytest

from serverless_bench.features.limit.block import Objective, growth_of
from tests.stores.queues import Queue

# No operation of a block of 5 s is later than this at 2 % more than the store's capacity.
WIDE_S = 0.2
SEEDS = 100


def growing(queue: Queue, rate: float, blocks: int = SEEDS) -> int:
    asked = Objective(p99_s=queue.p99_s)
    made = (queue.block(rate, np.random.default_rng([7, seed])) for seed in range(blocks))
    return sum(block.grows(asked) for block in made)


@pytest.mark.parametrize(("per_s", "servers"), [(200, 2), (1000, 10), (5000, 50)])
def test_one_percent_too_much_grows_and_one_percent_less_does_not(per_s: int, servers: int) -> None:
    queue = Queue(per_s=per_s, servers=servers, p99_s=WIDE_S, noise_s=0.005)
    late = queue.block(per_s * 1.02, np.random.default_rng(0)).took_s > WIDE_S
    assert late.mean() < 0.01
    found = {share: growing(queue, per_s * share, 20) for share in (0.99, 1.005, 1.01, 1.02)}
    assert found == {0.99: 0, 1.005: 20, 1.01: 20, 1.02: 20}


def test_random_service_hides_a_little_too_much_but_raises_no_alarm() -> None:
    queue = Queue(per_s=1000, servers=1, p99_s=WIDE_S, random=True)
    assert growing(queue, 900) <= 1
    # The remaining power that serverless_bench/features/limit/README.md states.
    assert 15 <= growing(queue, 1010) <= 35
    assert 50 <= growing(queue, 1050) <= 80


def test_too_few_operations_or_one_instant_do_not_decide() -> None:
    few = np.arange(31.0)
    assert growth_of(few, few) is None
    assert growth_of(np.zeros(40), np.arange(40.0)) is None


def test_a_trend_is_found_in_any_order_but_not_from_one_operation() -> None:
    due_s = np.random.default_rng(3).permutation(np.arange(400) / 100)
    found = growth_of(due_s, 0.01 + 0.02 * due_s)
    assert found is not None
    assert found.per_s == pytest.approx(0.02)
    assert found.low_per_s == pytest.approx(0.02)
    one = growth_of(due_s, np.where(due_s > 3.98, 5.0, 0.01))
    assert one is not None
    assert one.per_s == pytest.approx(0.0)
    assert not one.breaks(0.05)


def test_a_stall_in_the_middle_is_no_growth() -> None:
    due_s = np.arange(1000) / 250
    stalled = growth_of(due_s, np.where((due_s > 2) & (due_s < 3), 3.2 - due_s, 0.01))
    assert stalled is not None
    assert not stalled.breaks(0.05)
