import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import to_builtins

from serverless_bench.metrics.histogram import RELATIVE_ERROR, Histogram
from serverless_bench.rundir.tables import Ints, rank_of

US, HOUR = 1_000, 3_600_000_000_000

# Evenly over magnitudes: a plain integer would be an hour, as a rule.
durations = st.builds(
    lambda low, bits: (1 << bits) + low % (1 << bits), st.integers(0, 2**62), st.integers(0, 61)
)


def ints(values: list[int]) -> Ints:
    return np.array(values, dtype=np.int64)


@given(st.lists(durations, min_size=1, max_size=200), st.integers(0, 1000))
def test_a_percentile_is_within_one_percent_of_its_order_statistic(
    values: list[int], per_mille: int
) -> None:
    rank = max(1, -(-per_mille * len(values) // 1000))
    exact = sorted(values)[rank - 1]
    assert rank == rank_of(per_mille / 10, len(values))
    (found,) = Histogram.from_durations(ints(values)).at_ranks([rank])
    assert found == pytest.approx(exact, rel=RELATIVE_ERROR)
    assert RELATIVE_ERROR <= 0.01


def test_every_magnitude_from_a_microsecond_to_an_hour_is_within_one_percent() -> None:
    values = np.geomspace(US, HOUR, 20_000).astype(np.int64)
    for value in [*values.tolist(), *(2**bits - 1 for bits in range(1, 63))]:
        (found,) = Histogram.from_durations(ints([0, value, 2**63 - 1])).at_ranks([2])
        assert abs(found - value) <= value / 128


@given(st.lists(durations, min_size=1, max_size=50))
def test_least_largest_and_sum_are_exact(values: list[int]) -> None:
    found = Histogram.from_durations(ints(values))
    assert (found.count, found.sum_ns) == (len(values), sum(values))
    assert (found.min_ns, found.max_ns) == (min(values), max(values))
    assert found.at_ranks([len(values)]).tolist() == [float(max(values))]


def test_a_million_durations_are_a_few_kilobytes() -> None:
    drawn = np.random.default_rng(1).lognormal(np.log(20e6), 1.0, 10**6).astype(np.int64)
    found = Histogram.from_durations(drawn)
    assert len(json.dumps(to_builtins(found))) < 12_000
    for q in (50, 90, 99, 99.9):
        assert found.at_ranks([rank_of(q, 10**6)]) == pytest.approx(
            np.percentile(drawn, q), rel=0.01
        )


def test_sums_go_beyond_64_bits() -> None:
    assert Histogram.from_durations(np.full(1000, 2**62)).sum_ns == 1000 * 2**62


def test_a_duration_is_not_negative() -> None:
    with pytest.raises(ValueError, match="-1 ns"):
        Histogram.from_durations(ints([3, -1]))
