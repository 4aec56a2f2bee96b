import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from benchmarks import comparisons
from serverless_bench.features.compare.ratio import welch_ratio
from serverless_bench.features.compare.run_comparison import Comparison, compared_sides
from serverless_bench.features.compare.verdict import ALPHA, MIN_BLOCKS, THRESHOLD, Verdict
from tests import chance

REPEATS = 200
A_QUARTER = REPEATS // 4
WHOLE = pytest.mark.full
OPPOSITE = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}

rates = st.floats(1e3, 1e12)
sides = st.lists(rates, min_size=1, max_size=9)


def compare(
    baseline: Sequence[float],
    other: Sequence[float],
    *,
    in_blocks: bool = False,
    threshold: float = THRESHOLD,
    more_is_better: bool = True,
) -> Comparison:
    (found,) = compared_sides(
        baseline, [other], in_blocks=in_blocks, threshold=threshold, more_is_better=more_is_better
    )
    return found


def verdicts(*, ratio: float, spread: float, runs: int, seed: int) -> Counter[Verdict]:
    rng = np.random.default_rng(seed)

    def once() -> Verdict:
        a, b = np.exp(rng.normal(0, spread, (2, runs)))
        return compare(list(a), list(ratio * b)).verdict

    return Counter(once() for _ in range(REPEATS))


def most(share: float) -> float:
    """Return the highest number of repeats that chance exceeds once in 10,000 tests."""
    return float(stats.binom.ppf(0.9999, REPEATS, share))


def bound(count: int) -> float:
    """Return the highest share of false alarms in so many cases."""
    return comparisons.bound(count) if count >= REPEATS else chance.most(count, ALPHA) / count


@pytest.mark.parametrize("cases", [comparisons.equal_versions, comparisons.unlike_spreads])
@pytest.mark.parametrize(
    "count",
    [A_QUARTER, pytest.param(REPEATS, marks=WHOLE), pytest.param(2000, marks=WHOLE)],
)
def test_false_alarms_stay_at_five_percent(
    cases: Callable[[], Iterable[comparisons.Case]], count: int
) -> None:
    shares = {str(case): case.share(count) for case in cases()}
    assert {name: share for name, share in shares.items() if share > bound(count)} == {}


@pytest.mark.parametrize("case", [*comparisons.true_differences()], ids=str)
def test_eight_runs_or_blocks_find_ten_percent(case: comparisons.Case) -> None:
    assert case.share(REPEATS) >= 0.9


def test_six_runs_of_one_configuration_are_the_same() -> None:
    found = verdicts(ratio=1, spread=0.02, runs=6, seed=1)
    # As the page says: same in 97 %, and faster or slower in at most 5 %.
    assert REPEATS - found[Verdict.SAME] <= most(0.034)
    assert found[Verdict.FASTER] + found[Verdict.SLOWER] <= most(ALPHA)


def test_a_difference_of_the_threshold_is_called_the_same_in_at_most_five_percent() -> None:
    found = verdicts(ratio=1.05, spread=0.02, runs=6, seed=4)
    assert found[Verdict.SAME] <= most(ALPHA)


def test_a_difference_of_the_threshold_with_unlike_spreads_is_not_called_the_same() -> None:
    rng = np.random.default_rng(7)
    found = [
        compare(
            np.exp(rng.normal(0, 0.002, 6)).tolist(),
            np.exp(rng.normal(math.log(1.05), 0.05, 6)).tolist(),
        )
        for _ in range(REPEATS)
    ]
    assert sum(one.verdict is Verdict.SAME for one in found) <= most(ALPHA)


@given(*[st.lists(st.floats(-3, 3), min_size=6, max_size=12)] * 2)
@settings(max_examples=60, deadline=None)
def test_without_blocks_it_is_welchs_t(first: list[float], second: list[float]) -> None:
    assume(min(np.ptp(first), np.ptp(second)) > 1e-3)
    found = welch_ratio(np.array(first), np.array(second))
    expected = stats.ttest_ind(second, first, equal_var=False)
    # Where both means are almost equal, rounding changes t, and thereby p, by up to 1e-9.
    assert found.p_different() == pytest.approx(expected.pvalue, abs=1e-8)
    within = found.interval()
    assert within is not None
    reached = (math.log(within.low), math.log(within.high))
    assert reached == pytest.approx(tuple(expected.confidence_interval()), abs=1e-6)


def test_without_spread_there_is_no_doubt() -> None:
    still, moved = np.full(6, 1.0), np.full(8, 2.0)
    assert welch_ratio(still, still).p_different() == 1
    assert welch_ratio(still, moved).p_different() == 0
    assert compare([3.0] * 6, [3.0] * 6).verdict is Verdict.SAME


def test_pairs_within_blocks_are_told_apart_where_blocks_differ_more() -> None:
    """The same figures, decided by their design: finding 7."""
    rng = np.random.default_rng(1)
    block = 0.2 * rng.standard_normal(6)
    a = np.exp(block + 0.03 * rng.standard_normal(6)).tolist()
    b = np.exp(block + 0.03 * rng.standard_normal(6) - math.log(1.1)).tolist()
    assert compare(a, b).verdict is Verdict.UNDECIDED
    found = compare(a, b, in_blocks=True)
    assert found.verdict is Verdict.SLOWER
    expected = stats.ttest_rel(np.log(b), np.log(a))
    assert found.evidence is not None
    # compare() gives up one degree of freedom because distributions may be skewed.
    assert found.evidence.p_different == pytest.approx(
        2 * stats.t.sf(abs(expected.statistic), expected.df - 1)
    )
    assert found.ratio == pytest.approx(stats.gmean(b) / stats.gmean(a))


def test_several_sides_are_one_family() -> None:
    rng = np.random.default_rng(2)
    baseline, *others = np.exp(0.1 * rng.standard_normal((4, 8)) + [[0], [0.11], [0.0], [0.02]])
    alone = [compare(baseline.tolist(), other.tolist()) for other in others]
    found = compared_sides(baseline.tolist(), [other.tolist() for other in others])
    p = [one.evidence.p_different for one in alone if one.evidence]
    adjusted = [one.evidence.p_different for one in found if one.evidence]
    assert adjusted == pytest.approx(holm_of(p))
    assert [one.ratio for one in found] == [one.ratio for one in alone]


def holm_of(p: Sequence[float]) -> list[float]:
    order = np.argsort(p)
    adjusted = np.maximum.accumulate([(len(p) - n) * p[at] for n, at in enumerate(order)])
    return [float(min(1.0, adjusted[np.flatnonzero(order == at)[0]])) for at in range(len(p))]


@pytest.mark.parametrize(
    ("others", "count"),
    [
        pytest.param(3, A_QUARTER, id="3, a quarter"),
        pytest.param(8, A_QUARTER, id="8, a quarter"),
        pytest.param(3, REPEATS, marks=WHOLE, id="3"),
        pytest.param(8, REPEATS, marks=WHOLE, id="8"),
    ],
)
def test_false_alarms_are_held_over_all_sides(others: int, count: int) -> None:
    rng = np.random.default_rng(3)
    wrong = 0
    for _ in range(count):
        drawn = np.exp(0.2 * rng.standard_normal((1 + others, 7)))
        found = compared_sides(drawn[0].tolist(), drawn[1:].tolist())
        wrong += any(one.verdict in {Verdict.FASTER, Verdict.SLOWER} for one in found)
    assert wrong <= count * bound(count)


def test_a_significant_difference_below_the_threshold_is_the_same() -> None:
    found = compare(
        [1.0, 1.001, 1.002, 1.003, 1.004, 1.005], [1.01, 1.011, 1.012, 1.013, 1.014, 1.015]
    )
    assert found.verdict is Verdict.SAME
    assert found.evidence is not None
    assert found.evidence.p_different < ALPHA


def test_one_outlier_makes_no_verdict() -> None:
    baseline = [1.0, 1.01, 1.02, 1.03, 1.04, 1.05]
    assert compare(baseline, [1.2, 1.21, 1.22, 1.23, 1.24, 0.1]).verdict is Verdict.UNDECIDED


def test_less_may_be_better() -> None:
    slow, fast = ([level + 0.01 * n for n in range(6)] for level in (2.0, 1.0))
    assert compare(slow, fast, more_is_better=False).verdict is Verdict.FASTER
    assert compare(fast, slow, more_is_better=False).verdict is Verdict.SLOWER


def test_the_advised_number_of_runs_is_enough_for_a_spread_at_its_upper_limit() -> None:
    rng = np.random.default_rng(6)
    normal = np.array([stats.norm.ppf((i + 0.5) / 40) for i in range(40)])
    numbers = list(np.exp(0.03 * normal / normal.std(ddof=1)))
    evidence = compare(numbers, list(rng.permutation(numbers))).evidence
    assert evidence is not None
    # With 78 degrees of freedom the spread is at most 3.2 % in 80 % of cases.
    assert evidence.runs_needed == 11


@pytest.mark.parametrize(
    ("a", "b", "threshold"),
    [([], [1.0], 0.05), ([1.0], [0.0], 0.05), ([1.0], [math.inf], 0.05), ([1.0], [1.0], 0.0)],
)
def test_fields_that_are_not_numbers_are_refused(
    a: list[float], b: list[float], threshold: float
) -> None:
    with pytest.raises(ValueError, match="positive"):
        compare(a, b, threshold=threshold)


@given(sides, sides)
@settings(max_examples=60, deadline=None)
def test_there_is_no_verdict_below_six_runs(a: list[float], b: list[float]) -> None:
    found = compare(a, b)
    few = min(len(a), len(b)) < MIN_BLOCKS
    assert (found.verdict is Verdict.NOT_ENOUGH_RUNS) == few
    assert (found.evidence is None) == few


@given(sides, sides)
@settings(max_examples=40, deadline=None)
def test_swapping_the_sides_turns_the_verdict_round(a: list[float], b: list[float]) -> None:
    there, back = compare(a, b), compare(b, a)
    assert back.verdict is OPPOSITE.get(there.verdict, there.verdict)
    assert back.ratio == pytest.approx(1 / there.ratio)


@given(sides, sides, st.sampled_from([2.0**-20, 0.5, 2.0**30]))
@settings(max_examples=40, deadline=None)
def test_the_unit_does_not_matter(a: list[float], b: list[float], unit: float) -> None:
    found, scaled = compare(a, b), compare([x * unit for x in a], [x * unit for x in b])
    assert scaled.ratio == pytest.approx(found.ratio)
    assert scaled.verdict is found.verdict
