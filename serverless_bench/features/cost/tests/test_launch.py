"""Start of functions, by hand: the driver's pace, and the launch rate of the cloud."""

import numpy as np
import pytest

from serverless_bench.features.cost.limits import FunctionLauncher
from serverless_bench.features.cost.model import Launch

NEVER = float("inf")


def launcher(
    model: Launch, count: int, *, places: int = 10_000, names: float = 1, pace_s: float = 0.0
) -> FunctionLauncher:
    rng = np.random.default_rng(1)
    return FunctionLauncher(model, count, concurrency=places, names=names, rng=rng, pace_s=pace_s)


def launched(found: FunctionLauncher, end_s: float) -> list[int]:
    """Launch all functions that start before an instant."""
    indices = []
    while found.earliest_s() < end_s:
        indices.append(found.launch())
    return indices


def test_a_bucket_of_starts_is_spent_and_fills_again() -> None:
    found = launcher(Launch(burst=2, per_s=2.0, cold_s=1.5), 6)
    assert found.earliest_s() == 0
    # Two at once, and one after half a second.
    assert launched(found, 1.0) == [0, 1, 2]
    assert found.earliest_s() == 1
    assert launched(found, NEVER) == [3, 4, 5]
    assert found.submitted_s.tolist() == [0, 0, 0.5, 1, 1.5, 2]
    assert found.start_s.tolist() == [1.5, 1.5, 2, 2.5, 3, 3.5]
    assert found.environment.tolist() == [0, 1, 2, 3, 4, 5]
    assert (found.launched, found.environments, found.earliest_s()) == (6, 6, NEVER)


def test_unused_starts_are_kept_up_to_the_burst() -> None:
    found = launcher(Launch(burst=2, per_s=2.0, collect_s=5.0), 6, places=2)
    assert launched(found, NEVER) == [0, 1]
    found.ended(0, 10.0)
    found.ended(1, 10.0)
    # They reuse both environments, and the bucket is full again.
    assert launched(found, NEVER) == [2, 3]
    assert found.submitted_s.tolist()[2:4] == [15, 15]
    assert not found.is_cold[2:4].any()


def test_each_name_has_a_bucket_of_its_own() -> None:
    two = launcher(Launch(burst=2, per_s=2.0), 9, names=2)
    assert len(launched(two, 0.5)) == 4 + 1
    assert two.submitted_s[4] == 0.25
    # A sample of half of the functions has half of the rates.
    half = launcher(Launch(burst=2, per_s=2.0), 3, names=0.5)
    assert launched(half, NEVER) == [0, 1, 2]
    assert half.submitted_s.tolist() == [0, 1, 2]


def test_an_environment_that_is_idle_is_taken_again_and_costs_no_start() -> None:
    model = Launch(burst=2, per_s=0.1, cold_s=1.0, warm_s=0.25, collect_s=0.5)
    found = launcher(model, 4, places=2)
    assert len(launched(found, NEVER)) == 2
    # No environment is free, and no function has ended.
    assert found.earliest_s() == NEVER
    found.ended(1, 3.0)
    # The driver has to notice.
    assert found.earliest_s() == 3.5
    assert launched(found, NEVER) == [2]
    assert (found.is_cold.tolist()[:3], found.environment[2]) == ([True, True, False], 1)
    assert (found.submitted_s[2], found.start_s[2], found.environments) == (3.5, 3.75, 2)
    found.ended(2, 4.0)
    found.ended(0, 4.2)
    assert found.earliest_s() == 4.5
    assert launched(found, NEVER) == [3]
    assert not found.is_cold[3]


def test_without_an_idle_environment_a_function_waits() -> None:
    found = launcher(Launch(burst=1, per_s=0.1, cold_s=1.0), 4)
    assert launched(found, 0.1) == [0]
    assert found.earliest_s() == 10
    # Earlier, if a function ends.
    found.ended(0, 6.0)
    assert found.earliest_s() == 6
    assert launched(found, 20.0) == [1, 2]
    assert found.is_cold.tolist()[:3] == [True, False, True]
    assert found.submitted_s[:3].tolist() == [0, 6, 10]
    assert found.earliest_s() == 20


@pytest.mark.parametrize(
    ("submit_per_s", "pace_s", "interval"),
    [(4.0, 0.0, 0.25), (4.0, 1.0, 1.0), (None, 0.5, 0.5), (None, 0.0, 0.0)],
)
def test_the_driver_sends_one_after_the_other(
    submit_per_s: float | None, pace_s: float, interval: float
) -> None:
    found = launcher(Launch(submit_per_s=submit_per_s), 4, pace_s=pace_s)
    assert launched(found, NEVER) == [0, 1, 2, 3]
    assert found.submitted_s.tolist() == [0, interval, 2 * interval, 3 * interval]


def test_starts_differ_by_their_sigma() -> None:
    found = launcher(Launch(cold_s=2.0, cold_sigma=0.5), 2000)
    launched(found, NEVER)
    logs = np.log(found.start_s)
    assert np.median(logs) == pytest.approx(np.log(2), abs=0.05)
    assert logs.std() == pytest.approx(0.5, abs=0.03)
