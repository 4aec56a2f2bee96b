"""Whether a knee is where somebody expects it: the p of both claims, by hand."""

from math import log

import numpy as np
import pytest

from serverless_bench.features.compare.ratio import found_share, rounds_needed
from serverless_bench.features.studies.knee import KneeTest, p_across, p_expected

LINE = KneeTest(
    values=(1, 2, 4),
    medians=(100, 197, 200),
    # Row by row: small if the value of the column is more than 5 % better, or if it is not.
    above=np.array([[1, 0.01, 0.02], [1, 1, 0.6], [1, 1, 1]]),
    below=np.array([[0, 0.99, 0.98], [0.001, 0, 0.03], [0.001, 0.002, 0]]),
)
SHORT = KneeTest(
    values=(1, 2),
    medians=(100, 101),
    above=np.array([[1, 0.3], [1, 1]]),
    below=np.array([[0, 0.04], [0.01, 0]]),
)


def test_a_knee_is_elsewhere_if_another_is_better_or_a_smaller_one_is_as_good() -> None:
    # Times the number of claims that may each be it by chance: 2, 3 and 4.
    assert [LINE.p_not(n) for n in range(3)] == pytest.approx([0.02, 1, 0.12])


def test_a_knee_is_here_if_it_is_close_to_the_best_and_no_smaller_one_is() -> None:
    assert [LINE.p_is(n) for n in range(3)] == pytest.approx([0.99, 0.03, 1])


def test_the_interval_contains_values_that_are_not_excluded() -> None:
    knee = LINE.knee()
    assert (knee.at, knee.low, knee.high) == (2, 2, 4)
    assert knee.rates == ((1, 100), (2, 197), (4, 200))


@pytest.mark.parametrize(
    ("expect", "p"),
    # An unmeasured number can only be excluded: 3 makes 4 the first that is close to the best.
    [(1, (0.02, 0.99)), (2, (1, 0.03)), (3, (0.12, 1)), (4, (0.12, 1)), (9, (0.12, 1))],
)
def test_an_expected_knee_may_be_between_or_beyond_measured_values(
    expect: int, p: tuple[float, float]
) -> None:
    assert p_expected(LINE, expect) == pytest.approx(p)


def test_lines_have_one_knee_if_all_have_it_at_one_value() -> None:
    assert p_across([LINE]) == (1, 1)
    # At 1: 2 x 0.02. At 2: 2 x 0.08. At 4, which one line lacks, it is impossible. For it, of three
    # values: 3 x the larger p of 0.03 and 0.3.
    assert p_across([LINE, SHORT]) == pytest.approx((0.16, 0.9))
    assert p_across([SHORT, SHORT]) == pytest.approx((0.6, 0.08))


def test_power_is_that_of_students_t() -> None:
    about = {"ratio": 1.25, "threshold": 0.05}
    assert found_share(1e-6, 1, 1, **about) == 1
    assert found_share(1e-6, 1, 1, ratio=1.04, threshold=0.05) == 0
    assert rounds_needed(1e-6, 1, **about) == 6
    # By the noncentral t distribution, with a spread as large as the effect: 0.748 for nine rounds;
    # 0.883 for twelve, and 0.911 for thirteen.
    assert found_share(log(1.25) / 3, 8, 1, **about) == pytest.approx(0.748, abs=0.001)
    assert rounds_needed(log(1.25), 1, **about) == 13
