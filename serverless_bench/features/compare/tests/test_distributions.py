"""Student's t and chi-squared agree with SciPy, which commands do not load."""

from math import inf

import pytest
from scipy import stats

from serverless_bench.features.compare.distributions import (
    beta_share,
    chi_squared_quantile,
    student_quantile,
    student_tail,
)
from tests.tables import each_row

FREEDOMS = (1, 2, 3.3, 5, 11, 57.5, 400)


@each_row("freedom", FREEDOMS)
def test_tails_of_student(freedom: float) -> None:
    for t in (-40.0, -2.5, -1e-3, 0.0, 1e-3, 0.7, 2.5, 40.0):
        expected = float(stats.t(freedom).sf(t))
        assert student_tail(freedom, t) == pytest.approx(expected, rel=1e-10)
    assert (student_tail(freedom, inf), student_tail(freedom, -inf)) == (0, 1)


@each_row("freedom", FREEDOMS)
def test_quantiles(freedom: float) -> None:
    for share in (0.6, 0.9, 0.975, 0.9995):
        student, squared = stats.t(freedom), stats.chi2(freedom)
        expected = float(student.ppf(share))
        assert student_quantile(freedom, share) == pytest.approx(expected, rel=1e-10)
        for part in (share, 1 - share):
            expected = float(squared.ppf(part))
            assert chi_squared_quantile(freedom, part) == pytest.approx(expected, rel=1e-10)


def test_shares_of_beta() -> None:
    for a, b in ((0.5, 0.5), (3, 1997.5), (41.5, 2), (900, 800)):
        for x in (0.0, 1e-4, 0.02, 0.5, 0.53, 0.97, 1.0):
            expected = float(stats.beta(a, b).cdf(x))
            assert beta_share(a, b, x) == pytest.approx(expected, rel=1e-9, abs=1e-300)
