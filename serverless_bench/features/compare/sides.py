"""Decide whether sets of runs are faster than a baseline. Pure: numbers in, verdicts out.

The unit of replication is the run: the functions of a run share the time, the quota and the
partition, so a thousand of them are a single piece of evidence. All computations use logarithms,
because relevant differences are ratios.
"""

from collections.abc import Sequence
from math import inf, log1p
from typing import Final

import numpy as np
from msgspec import Struct, structs

from serverless_bench.features.compare.ratio import (
    UPPER,
    RatioEstimate,
    ratio_of_logs,
    runs_for_same,
    spread_factor,
    welch_ratio,
)
from serverless_bench.features.compare.verdict import (
    ALPHA,
    MIN_BLOCKS,
    THRESHOLD,
    Interval,
    Verdict,
    holm,
)
from serverless_bench.rundir.tables import Floats

_FOR_SHAPE: Final = 1
"""Degrees of freedom subtracted because logarithms are not normally distributed. For uniform
distributions with a tenfold difference in spread, the false positive rate at six runs per side is
5.2 % with it, and 6.2 % without."""

PAIRS: Final = (
    "Student's t of pairs within blocks, on logarithms: assumes that the ratios of"
    " blocks are independent and not skewed"
)
SAMPLES: Final = (
    "Welch's t on logarithms: assumes that runs are independent, and"
    " that the sides differ in level and spread, not in shape"
)
"""Names and assumptions of the tests with and without blocks."""


class Evidence(Struct, frozen=True, kw_only=True):
    """Interval and tests on which a verdict is based."""

    interval: Interval
    """Two-sided interval at ``1 - ALPHA``."""
    p_different: float
    """p-value of "no difference", adjusted for all comparisons with the baseline (Holm)."""
    p_same: float
    """p-value of "the difference is at least the threshold", adjusted in the same way."""
    runs_needed: int
    """Runs per side needed for the verdict "same" in 9 of 10 comparisons of equal sides, assuming a
    spread at the upper 80 % limit of the estimate."""


class Comparison(Struct, frozen=True, kw_only=True):
    """Comparison of a side with the baseline; ratios are side / baseline."""

    verdict: Verdict
    ratio: float
    """Ratio of the geometric means."""
    evidence: Evidence | None
    """None if there are fewer than ``MIN_BLOCKS`` runs per side."""


def compare(
    baseline: Sequence[float],
    others: Sequence[Sequence[float]],
    *,
    in_blocks: bool = False,
    threshold: float = THRESHOLD,
    more_is_better: bool = True,
) -> tuple[Comparison, ...]:
    """Compare sides with a baseline, using a number per run, as a family of tests.

    A side is faster or slower if "no difference" is rejected at ``ALPHA`` and the estimate exceeds
    the threshold. It is the same if two one-sided tests at ``ALPHA`` reject a difference of at
    least the threshold (Schuirmann 1987). With multiple sides, both are adjusted by Holm's
    procedure.

    Parameters
    ----------
    baseline, others
        Values of the same metric for each run, positive; in blocks, in the order of the blocks.
    in_blocks
        Whether each side ran once in every block.
    threshold
        Smallest relevant relative difference; with 0.05, 1/1.05 to 1.05 is "the same".
    more_is_better
        Whether a larger number is faster.

    Raises
    ------
    ValueError
        If a side is empty, or a number or the threshold is not positive.
    """
    if not threshold > 0:
        raise ValueError(f"the threshold must be positive, got {threshold}")
    for side in (baseline, *others):
        if not side or not 0 < min(side) <= max(side) < inf:
            raise ValueError("each side needs runs with positive values")
    first, *logs = (np.log(np.asarray(side, float)) for side in (baseline, *others))
    ratios = dict(enumerate(_ratio(first, second, in_blocks=in_blocks) for second in logs))
    different = holm({other: ratio.p_different() for other, ratio in ratios.items()})
    same = holm({other: ratio.p_same(log1p(threshold)) for other, ratio in ratios.items()})
    comparisons = []
    for other, ratio in ratios.items():
        evidence = None
        interval = ratio.interval()
        if interval is not None:
            evidence = Evidence(
                interval=interval,
                p_different=different[other],
                p_same=same[other],
                runs_needed=_runs_needed(ratio, len(first), len(logs[other]), threshold),
            )
        gain = ratio.mean if more_is_better else -ratio.mean
        verdict = _verdict(gain, log1p(threshold), evidence)
        comparisons.append(Comparison(verdict=verdict, ratio=ratio.ratio, evidence=evidence))
    return tuple(comparisons)


def _ratio(first: Floats, second: Floats, *, in_blocks: bool) -> RatioEstimate:
    if min(len(first), len(second)) < MIN_BLOCKS:
        return RatioEstimate(mean=float(second.mean() - first.mean()), error=inf, freedom=0)
    ratio = ratio_of_logs(second - first) if in_blocks else welch_ratio(first, second)
    return structs.replace(ratio, freedom=ratio.freedom - _FOR_SHAPE)


def _verdict(gain: float, limit: float, evidence: Evidence | None) -> Verdict:
    """Return the verdict for a gain in the logarithm; positive is better."""
    if evidence is None:
        return Verdict.NOT_ENOUGH_RUNS
    if evidence.p_different <= ALPHA and abs(gain) > limit:
        return Verdict.FASTER if gain > 0 else Verdict.SLOWER
    return Verdict.SAME if evidence.p_same <= ALPHA else Verdict.UNDECIDED


def _runs_needed(ratio: RatioEstimate, first: int, second: int, threshold: float) -> int:
    variance = ratio.error**2 / (1 / first + 1 / second)
    upper = variance * spread_factor(ratio.freedom, UPPER) ** 2
    return max(MIN_BLOCKS, runs_for_same(upper, log1p(threshold)))
