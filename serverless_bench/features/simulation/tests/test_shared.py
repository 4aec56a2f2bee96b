"""The store that functions of a simulation share, and the lengths of steps, by hand."""

import numpy as np
import pytest

from serverless_bench.features.cost.model import Store
from serverless_bench.features.simulation.store import (
    SharedStore,
    short_step_s,
    usual_step_s,
)
from serverless_bench.job.operations import OperationKind

NEVER = float("inf")
PUT, GET = OperationKind.PUT, OperationKind.GET


def test_a_second_of_requests_may_come_at_once_and_then_the_rate_counts() -> None:
    store = SharedStore(Store(put_per_s=10.0, partitions=2, most_partitions=2), PUT)
    assert (store.admit(15), store.is_refusing) == (15, False)
    assert (store.admit(10), store.is_refusing) == (5, True)
    store.begin_step(0.1)
    assert store.admit(10) == 2
    store.begin_step(100.0)
    assert store.admit(100) == 20
    reads = SharedStore(Store(put_per_s=10.0, get_per_s=3.0), GET)
    assert reads.admit(7) == 3
    assert SharedStore(Store(put_per_s=10.0), GET).admit(10**6) == 10**6


def test_a_store_is_calm_a_second_after_it_refused_the_last_time() -> None:
    store = SharedStore(Store(put_per_s=10.0), PUT)
    assert not store.is_refusing
    store.admit(11)
    seen = []
    for _ in range(4):
        seen.append(store.is_refusing)
        store.begin_step(0.5)
    # In the step of a refusal, and in steps that start less than a second after its end.
    assert [*seen, store.is_refusing] == [True, True, True, False, False]


def test_partitions_split_by_the_time_that_they_refused() -> None:
    store = SharedStore(Store(put_per_s=10.0, split_s=1.0, most_partitions=3), PUT)
    most = []
    for passed_s in (0.6, 0.6, 0.9, 5.0, 5.0):
        most.append(store.admit(1000))
        store.begin_step(passed_s)
        # This step has no refusals: it only fills the bucket.
        store.begin_step(1000.0)
    assert most == [10, 10, 20, 30, 30]


@pytest.mark.parametrize(
    ("most", "claim", "there", "share"),
    [
        # Together no more than the ceiling: no limit.
        ((10, 20, 30), (1, 1, 1), (1, 1, 1), NEVER),
        # 10, 20, and the rest.
        ((10, 20, 100), (1, 1, 1), (1, 1, 1), 30),
        ((50, 50, 50), (1, 1, 1), (1, 1, 1), 20),
        # 10, a third and two thirds of the rest.
        ((10, 40, 100), (1, 1, 2), (1, 1, 1), 50 / 3),
        # The second one is active for half of the step.
        ((10, 20, 100), (1, 1, 1), (1, 0.5, 1), 40),
        ((100, 100), (1, 1), (0.5, 0.25), 80),
    ],
)
def test_a_ceiling_is_shared_by_max_min_fairness(
    most: tuple[float, ...], claim: tuple[float, ...], there: tuple[float, ...], share: float
) -> None:
    store = SharedStore(Store(bytes_per_s=60.0), PUT)
    arrays = (np.array(values, float) for values in (most, claim, there))
    assert store.share(*arrays) == pytest.approx(share)
    assert SharedStore(Store(), PUT).share(*(np.full(3, 1e12),) * 3) == NEVER


def test_steps_are_a_twentieth_of_a_function_within_bounds() -> None:
    found = [usual_step_s(seconds) for seconds in (0, 0.001, 1, 2, 100, 200, 1000)]
    assert found == [0.001, 0.001, 0.05, 0.1, 0.1, 0.1, 0.5]
    assert [short_step_s(0.08, usual) for usual in (0.1, 0.005)] == [0.01, 0.005]
    assert short_step_s(0.0001, 0.1) == 0.001
