"""Shared resources of functions in a simulation, by hand: launch rate of the cloud and store."""

import numpy as np
import pytest

from serverless_bench.features.simulation.launch import SimulatedLauncher
from serverless_bench.features.simulation.model import Launch, Store
from serverless_bench.features.simulation.store import SharedStore
from serverless_bench.job.operations import OperationKind

NEVER = float("inf")


def launcher(
    model: Launch, count: int, *, places: int = 10_000, names: int = 1
) -> SimulatedLauncher:
    return SimulatedLauncher(
        model, count, concurrency=places, names=names, rng=np.random.default_rng(1)
    )


def test_a_bucket_of_starts_is_spent_and_fills_again() -> None:
    found = launcher(Launch(burst=2, per_s=2.0, cold_s=1.5), 6)
    assert found.earliest_s() == 0
    # Two at once, and one after half a second; the second of the next one is not over.
    assert found.launch(0.0, 1.0).tolist() == [0, 1, 2]
    assert found.earliest_s() == 1
    assert found.launch(1.0, 2.0).tolist() == [3, 4]
    assert (found.earliest_s(), found.is_done) == (2, False)
    # Unused tokens are kept, two at most.
    assert found.launch(9.0, 9.1).tolist() == [5]
    assert (found.earliest_s(), found.is_done) == (NEVER, True)
    assert found.submitted_s.tolist() == [0, 0, 0.5, 1, 1.5, 9]
    assert found.start_s.tolist() == [1.5, 1.5, 2, 2.5, 3, 10.5]
    assert found.environment.tolist() == [0, 1, 2, 3, 4, 5]
    assert (found.launched, found.environments) == (6, 6)


def test_each_name_has_a_bucket_of_its_own() -> None:
    two = launcher(Launch(burst=2, per_s=2.0), 9, names=2)
    assert len(two.launch(0.0, 0.5)) == 4 + 1
    assert two.submitted_s[4] == 0.25


def test_an_environment_that_is_idle_is_taken_again_and_costs_no_start() -> None:
    model = Launch(burst=2, per_s=0.1, cold_s=1.0, warm_s=0.25, collect_s=0.5)
    found = launcher(model, 4, places=2)
    assert len(found.launch(0.0, 0.1)) == 2
    # No environment is free, and no function has ended.
    assert found.earliest_s() == NEVER
    assert found.launch(0.1, 0.2).tolist() == []
    found.ended(1, 3.0)
    # The driver has to notice.
    assert found.earliest_s() == 3.5
    assert found.launch(3.5, 3.6).tolist() == [2]
    assert (found.is_cold.tolist()[:3], found.environment[2]) == ([True, True, False], 1)
    assert (found.submitted_s[2], found.start_s[2], found.environments) == (3.5, 3.75, 2)
    found.ended(2, 4.0)
    found.ended(0, 4.2)
    assert found.earliest_s() == 4.5
    assert found.launch(4.7, 4.8).tolist() == [3]
    assert not found.is_cold[3]


def test_without_an_idle_environment_a_function_waits() -> None:
    found = launcher(Launch(burst=1, per_s=0.1, cold_s=1.0), 4)
    assert found.launch(0.0, 0.1).tolist() == [0]
    assert found.earliest_s() == 10
    # Earlier, if a function ends.
    found.ended(0, 6.0)
    assert found.earliest_s() == 6
    assert found.launch(6.0, 20.0).tolist() == [1, 2]
    assert found.is_cold.tolist()[:3] == [True, False, True]
    assert found.submitted_s[:3].tolist() == [0, 6, 10]
    assert found.earliest_s() == 20


def test_the_driver_sends_one_after_the_other() -> None:
    found = launcher(Launch(submit_per_s=4.0), 5)
    assert found.launch(1.0, 1.6).tolist() == [0, 1, 2]
    assert found.submitted_s[:3].tolist() == [1, 1.25, 1.5]
    assert found.earliest_s() == 1.75
    # A step that starts earlier launches no function earlier.
    assert found.launch(1.6, 2.0).tolist() == [3]
    assert found.submitted_s[3] == 1.75
    assert found.launch(7.0, 7.1).tolist() == [4]
    assert found.submitted_s[4] == 7


def test_starts_differ_by_their_sigma() -> None:
    found = launcher(Launch(cold_s=2.0, cold_sigma=0.5), 2000)
    found.launch(0.0, 0.1)
    logs = np.log(found.start_s)
    assert np.median(logs) == pytest.approx(np.log(2), abs=0.05)
    assert logs.std() == pytest.approx(0.5, abs=0.03)


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
