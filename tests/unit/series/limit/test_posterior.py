"""The posterior of a limit: by hand, and against the reference that reckons cell by cell."""

import numpy as np
import pytest

from serverless_bench.statistics.posterior import Posterior, Trial, posterior
from tests.reference import limit as reference

LIMITS = np.array([10.0, 100.0, 1000.0])


def of(*mass: float, dispersion: float = 1.0) -> Posterior:
    return Posterior(limits=LIMITS, mass=np.array(mass), dispersion=dispersion)


def test_quantiles_spread_a_cell_over_the_cell() -> None:
    # Cells reach to the square roots of 10 beside their limits; mass may add up to anything.
    for times in (1, 3):
        found = of(0.25 * times, 0.5 * times, 0.25 * times)
        assert found.quantile(0.5) == pytest.approx(100)
        assert found.quantile(0.25) == pytest.approx(10**1.5)
        assert found.quantile(0.75) == pytest.approx(10**2.5)
        assert (found.quantile(0), found.quantile(1)) == pytest.approx((10**0.5, 10**3.5))
        above = [found.above(level) for level in (10, 11, 100, 101, 1000, 1001)]
        assert above == pytest.approx([1, 0.75, 0.75, 0.25, 0.25, 0])


def test_the_lower_one_of_two_limits_by_hand() -> None:
    one, two = of(0.5, 0.5, 0, dispersion=2.0), of(0, 0.5, 0.5, dispersion=3.0)
    assert one.least_with(two).mass.tolist() == [0.5, 0.5, 0]
    assert two.least_with(two).mass.tolist() == [0, 0.75, 0.25]
    assert one.least_with(two).dispersion == two.least_with(one).dispersion == 3.0


SLOW = [(40, 200, 0), (80, 400, 0), (90, 450, 3), (100, 500, 4), (100, 500, 9), (160, 800, 700)]
ERRORS = [(40, 200, 0), (80, 400, 0), (90, 450, 1), (100, 500, 0), (100, 500, 6), (160, 800, 1)]


@pytest.mark.parametrize(
    "parts",
    [
        [(0.01, SLOW)],
        [(0.3, SLOW)],
        [(0.01, SLOW), (0.002, ERRORS)],
        # Nobody knows: none was ever bad.
        [(0.01, [(50, 100, 0)])],
    ],
)
def test_it_agrees_with_the_reference(parts: list[reference.Part]) -> None:
    trials = [
        (allowed, [Trial(level=level, due=due, bad=bad) for level, due, bad in blocks])
        for allowed, blocks in parts
    ]
    found, other = posterior(trials, 5, 2000), reference.posterior(parts, 5, 2000)
    assert found.limits == pytest.approx(other.limits)
    assert found.mass == pytest.approx(other.mass, rel=1e-6, abs=1e-12)
    assert found.dispersion == pytest.approx(other.dispersion)
    assert found.quantile(0.5) == pytest.approx(reference.median(other.limits, other.mass))


def test_far_above_the_limit_worse_is_not_more() -> None:
    def median(allowed: float, bad: int) -> float:
        trials = [Trial(level=10, due=1000, bad=0), Trial(level=200, due=1000, bad=bad)]
        return posterior([(allowed, trials)], 5, 2000).quantile(0.5)

    # 20 times what is allowed, or half way from there to all.
    assert median(0.01, 190) != median(0.01, 200) == median(0.01, 1000)
    assert median(0.3, 640) != median(0.3, 650) == median(0.3, 1000)


def test_a_block_without_operations_says_nothing() -> None:
    some = [Trial(level=10, due=1000, bad=0), Trial(level=200, due=1000, bad=300)]
    empty = Trial(level=100, due=0, bad=0)
    one, two = (posterior([(0.01, trials)], 5, 2000) for trials in (some, [*some, empty]))
    assert two.quantile(0.5) == pytest.approx(one.quantile(0.5), rel=0.02)
