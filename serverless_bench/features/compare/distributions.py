"""Student's t and chi-squared distributions; SciPy would take longer to import than a report."""

from collections.abc import Callable
from functools import cache
from math import exp, inf, lgamma, log, log1p, pi, sqrt
from typing import Final

_PRECISION: Final = 1e-15


def student_tail(freedom: float, t: float) -> float:
    """Return the probability that Student's t exceeds ``t``."""
    tail = beta_share(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2
    return tail if t > 0 else 1 - tail


@cache
def student_quantile(freedom: float, share: float) -> float:
    """Return the value that Student's t exceeds with probability ``1 - share``; share above 0.5."""
    scale = exp(lgamma((freedom + 1) / 2) - lgamma(freedom / 2)) / sqrt(pi * freedom)
    t, step = 0.0, inf
    # Above 0 the distribution is concave: Newton's method rises to the quantile.
    while step > _PRECISION * t:
        density = scale * (1 + t * t / freedom) ** (-(freedom + 1) / 2)
        step = (share - 1 + student_tail(freedom, t)) / density
        t += step
    return t


@cache
def chi_squared_quantile(freedom: float, share: float) -> float:
    """Return the value that chi-squared exceeds with probability ``1 - share``."""
    return 2 * _root(lambda x: _gamma_share(freedom / 2, x), share)


def _root(rising: Callable[[float], float], share: float) -> float:
    """Return the positive number at which a distribution function reaches ``share``."""
    low, high = 0.0, 1.0
    while rising(high) < share:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if rising(middle) < share else (low, middle)
    return high


def beta_share(a: float, b: float, x: float) -> float:
    """Return the regularized incomplete beta function (DLMF 8.17.22, by Lentz's method)."""
    if not 0 < x < 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_share(b, a, 1 - x)
    down = fraction = 1 / (1 - (a + b) * x / (a + 1))
    up, change, m = 1.0, inf, 0
    while abs(change - 1) > _PRECISION:
        m += 1
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            down, up = 1 / (1 + term * down), 1 + term / up
            change = up * down
            fraction *= change
    scale = lgamma(a + b) - lgamma(a) - lgamma(b)
    return exp(a * log(x) + b * log1p(-x) + scale) / a * fraction


def _gamma_share(a: float, x: float) -> float:
    """Return the regularized lower incomplete gamma function (DLMF 8.11.4)."""
    term = total = exp(a * log(x) - x - lgamma(a + 1)) if x else 0.0
    while term > _PRECISION * total:
        a += 1
        term *= x / a
        total += term
    return total
