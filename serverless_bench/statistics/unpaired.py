"""Say whether one set of runs is faster than another. Pure: numbers in, a verdict out.

The unit of replication is the run: functions of one run share its minute, its quota and
its partition, so a thousand of them are one piece of evidence and not a thousand.
Everything happens on logarithms, because a difference that matters is a ratio.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import comb, exp, inf, log, log1p
from typing import Final

import numpy as np

from serverless_bench.rundir.tables import Floats
from serverless_bench.statistics.paired import runs_for_same
from serverless_bench.statistics.verdict import ALPHA, THRESHOLD, Interval, Verdict

MIN_RUNS: Final = 4
"""Per side. Three and three cannot differ significantly: the least p is 2/20 = 0.1."""
MAX_SPLITS: Final = 20_000
"""Tests by permutation take all splits up to this number; two sides of 8 have 12,870."""
RANDOM_SPLITS: Final = 9_999


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What speaks for a verdict."""

    interval: Interval
    """Two-sided, at ``1 - ALPHA``."""
    same_interval: Interval
    """Two-sided, at ``1 - 2 * ALPHA``: the sides are the same if it is within the threshold."""
    mann_whitney_p: float
    permutation_p: float
    """Of the difference of the means of the logarithms."""
    runs_needed: int
    """Per side, for "same" in 9 of 10 comparisons if nothing differs and the spread stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One side against the baseline. Ratios are other over baseline."""

    verdict: Verdict
    ratio: float
    """Hodges-Lehmann estimate: the median over all pairs of one run of each side."""
    evidence: Evidence | None
    """None below ``MIN_RUNS`` runs per side."""


def compare(
    baseline: Sequence[float],
    other: Sequence[float],
    *,
    threshold: float = THRESHOLD,
    more_is_better: bool = True,
    seed: int = 0,
) -> Comparison:
    """Compare two sides, one number per run.

    A side is faster or slower if both exact tests reject "no difference" at ``ALPHA`` and
    the estimate is beyond the threshold. It is the same if the ``1 - 2 * ALPHA`` interval
    lies within the threshold: two one-sided tests at ``ALPHA`` (Schuirmann 1987). Never
    both, for the estimate is inside its interval.

    Parameters
    ----------
    baseline, other
        The same metric of each run, positive.
    threshold
        Relative difference that matters; with 0.05, 1/1.05 to 1.05 is "the same".
    more_is_better
        Whether a larger number is faster.
    seed
        Of tests by permutation, where there are too many splits to take them all.

    Raises
    ------
    ValueError
        If a side is empty, or a number or the threshold is not positive.
    """
    if not threshold > 0:
        raise ValueError(f"the threshold must be positive, got {threshold}")
    if not baseline or not other or not 0 < min(*baseline, *other) <= max(*baseline, *other) < inf:
        raise ValueError("each side needs runs, and each run a positive number")
    a, b = np.log(np.asarray(baseline, float)), np.log(np.asarray(other, float))
    shifts = np.sort(np.subtract.outer(b, a), axis=None)
    shift = float(np.median(shifts))
    if min(len(a), len(b)) < MIN_RUNS:
        return Comparison(verdict=Verdict.NOT_ENOUGH_RUNS, ratio=exp(shift), evidence=None)
    limit = log1p(threshold)
    squares = float((len(a) - 1) * a.var(ddof=1) + (len(b) - 1) * b.var(ddof=1))
    pooled = squares / (len(a) + len(b) - 2)
    evidence = Evidence(
        interval=_interval(shifts, len(a), len(b), ALPHA / 2),
        same_interval=_interval(shifts, len(a), len(b), ALPHA),
        mann_whitney_p=_mann_whitney_p(a, b, seed),
        permutation_p=_permutation_p(a, b, seed),
        runs_needed=max(MIN_RUNS, runs_for_same(pooled, limit)),
    )
    gain = shift if more_is_better else -shift
    return Comparison(verdict=_verdict(gain, limit, evidence), ratio=exp(shift), evidence=evidence)


def _verdict(gain: float, limit: float, evidence: Evidence) -> Verdict:
    """Return the verdict for a gain in the logarithm, where more is better."""
    significant = max(evidence.mann_whitney_p, evidence.permutation_p) <= ALPHA
    if significant and abs(gain) > limit:
        return Verdict.FASTER if gain > 0 else Verdict.SLOWER
    same = evidence.same_interval
    if -limit < log(same.low) and log(same.high) < limit:
        return Verdict.SAME
    return Verdict.UNDECIDED


def _interval(shifts: Floats, a_runs: int, b_runs: int, tail: float) -> Interval:
    """Return the Hodges-Lehmann interval that leaves at most ``tail`` on either side.

    The shifts with which the Mann-Whitney test would not reject (Hollander, Wolfe and
    Chicken 2014, section 4.3). Ties make it wider than it need be, never narrower.
    """
    counts = mann_whitney_counts(a_runs, b_runs)
    below = np.cumsum([float(count) for count in counts]) / comb(a_runs + b_runs, a_runs)
    cut = int(np.searchsorted(below, tail, side="right")) - 1
    if cut < 0:
        raise ValueError(f"{a_runs} and {b_runs} runs have no interval at {1 - 2 * tail:g}")
    return Interval(
        low=exp(shifts[cut]),
        high=exp(shifts[-1 - cut]),
        confidence=1 - 2 * float(below[cut]),
    )


@cache
def mann_whitney_counts(a_runs: int, b_runs: int) -> tuple[int, ...]:
    """Return in how many splits the Mann-Whitney statistic U is 0, 1, ..., a_runs * b_runs.

    The coefficients of the Gaussian binomial (Mann and Whitney 1947), the product over
    i = 1 ... a_runs of (1 - q**(b_runs + i)) / (1 - q**i), one factor after the other.
    """
    counts = [1] + [0] * (a_runs * b_runs)
    for i in range(1, a_runs + 1):
        for u in range(len(counts) - 1, b_runs + i - 1, -1):
            counts[u] -= counts[u - b_runs - i]
        for u in range(i, len(counts)):
            counts[u] += counts[u - i]
    return tuple(counts)


def _mann_whitney_p(a: Floats, b: Floats, seed: int) -> float:
    """Return the exact two-sided p; with ties, from the splits of the midranks."""
    from scipy import stats  # noqa: PLC0415 - an extra that takes seconds to load

    if len(np.unique(np.concatenate((a, b)))) == len(a) + len(b):
        return float(stats.mannwhitneyu(a, b, method="exact").pvalue)
    splits = stats.PermutationMethod(n_resamples=_resamples(a, b), rng=np.random.default_rng(seed))
    return float(stats.mannwhitneyu(a, b, method=splits).pvalue)


def _permutation_p(a: Floats, b: Floats, seed: int) -> float:
    """Return the two-sided p of the difference of the means over splits of all runs."""
    from scipy import stats  # noqa: PLC0415 - as above

    def difference(x: Floats, y: Floats, axis: int = -1) -> Floats:
        return np.asarray(x.mean(axis=axis) - y.mean(axis=axis))

    found = stats.permutation_test(
        (a, b),
        difference,
        permutation_type="independent",
        vectorized=True,
        n_resamples=_resamples(a, b),
        rng=np.random.default_rng(seed),
    )
    return float(found.pvalue)


def _resamples(a: Floats, b: Floats) -> int:
    """Return how many splits to take; SciPy takes each once if these are enough."""
    splits = comb(len(a) + len(b), len(a))
    return splits if splits <= MAX_SPLITS else RANDOM_SPLITS
