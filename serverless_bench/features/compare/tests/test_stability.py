"""The end of a run with a stable rate, on series with known mean, autocorrelation and drift."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from serverless_bench.features.compare import stability
from serverless_bench.features.compare.stability import (
    MIN_BLOCKS,
    MOST_TREND,
    SAMPLE_S,
    RateEstimate,
    StoppingRule,
    rate_estimate,
)
from serverless_bench.rundir.tables import Floats
from tests.chance import least
from tests.reference.stability import figures
from tests.tables import each_row

SEEDS = 100
MUST_HOLD = 91
SIZES = [SEEDS // 4, pytest.param(SEEDS, marks=pytest.mark.full)]
RATE = 30.0
"""Mean of a sample."""
Series = Callable[[np.random.Generator, int], Floats]


def independent(rng: np.random.Generator, count: int) -> Floats:
    return rng.poisson(RATE, count).astype(np.float64)


def remembering(rng: np.random.Generator, count: int) -> Floats:
    """Return an AR(1) series with a coefficient of a half."""
    noise = rng.normal(0, 0.1 * np.sqrt(0.75), count)
    off = np.empty(count)
    off[0] = rng.normal(0, 0.1)
    for n in range(1, count):
        off[n] = 0.5 * off[n - 1] + noise[n]
    return RATE * (1 + off)


def drifting(per_s: float) -> Series:
    def series(rng: np.random.Generator, count: int) -> Floats:
        trend = 1 + per_s * SAMPLE_S * np.arange(count)
        return np.maximum(0.0, RATE * (trend + rng.normal(0, 0.1, count)))

    return series


def stopped(series: Series, seed: int, *, asked: float, count: int) -> RateEstimate | None:
    """Return the check at which a run ends, of many; None if it never ends."""
    samples, stopping = series(np.random.default_rng([seed, 2]), count), StoppingRule(asked)
    seen = 10
    while seen <= count:
        if stopping.stable(samples[:seen]):
            return stopping.latest
        seen += max(10, seen // 20)
    return None


@pytest.mark.parametrize("seeds", SIZES)
@pytest.mark.parametrize("series", [independent, remembering])
def test_a_run_that_ends_when_it_is_stable_has_the_truth_in_its_interval(
    series: Series, seeds: int
) -> None:
    must_hold = MUST_HOLD if seeds == SEEDS else least(seeds, 0.95)
    ends = [stopped(series, seed, asked=0.03, count=4000) for seed in range(seeds)]
    there = [end for end in ends if end is not None]
    assert len(there) >= must_hold
    truth = RATE / SAMPLE_S
    held = sum(end.low_per_s <= truth <= end.high_per_s for end in there)
    assert held >= must_hold * len(there) / seeds
    assert all(end.half_width <= 0.03 and end.blocks >= MIN_BLOCKS for end in there)


@pytest.mark.parametrize("seeds", SIZES)
@pytest.mark.parametrize("per_s", [0.02, -0.006, 0.01])
def test_a_drifting_rate_is_not_stable(per_s: float, seeds: int) -> None:
    ends = [stopped(drifting(per_s), seed, asked=0.02, count=1000) for seed in range(seeds)]
    assert sum(end is not None for end in ends) == 0


def burst(rng: np.random.Generator, count: int) -> Floats:
    """Return a store's rate that falls to 40 % when its burst of 25 s is spent."""
    return np.where(np.arange(count) * SAMPLE_S < 25, 1, 0.4) * rng.poisson(1000, count)


def compacting(rng: np.random.Generator, count: int) -> Floats:
    """Return the rate of a store that is at 20 % for the last 5 s of every 30 s."""
    return np.where(np.arange(count) * SAMPLE_S % 30 < 25, 1, 0.2) * rng.poisson(1000, count)


@pytest.mark.parametrize("series", [burst, compacting])
def test_a_burst_and_a_cycle_are_not_taken_for_all_there_is(series: Series) -> None:
    ends = [stopped(series, seed, asked=0.03, count=700) for seed in range(20)]
    assert [end.mean_per_s for end in ends if end is not None] == []


def test_nothing_is_stable_before_the_least_time() -> None:
    steady, stopping = np.full(1000, RATE), StoppingRule(0.02)
    seen = next(n for n in range(5, 1000, 5) if stopping.stable(steady[:n]))
    assert seen * SAMPLE_S == pytest.approx(30)


@each_row("series", [independent, remembering, drifting(0.01)])
@each_row("count", [97, 403, 702])
def test_a_look_agrees_with_the_reference(series: Series, count: int) -> None:
    samples = series(np.random.default_rng([count, 3]), count)
    found, other = rate_estimate(samples), figures(samples.tolist())
    assert found is not None
    assert found.blocks == other.blocks
    assert found.block_s == pytest.approx(other.block_s)
    assert found.mean_per_s == pytest.approx(other.mean_per_s)
    assert found.trend == pytest.approx(other.trend)
    assert found.half_width == pytest.approx(other.half_width)


def test_the_run_ends_at_the_requested_precision() -> None:
    about = {"mean_per_s": 1.0, "low_per_s": 0.9, "high_per_s": 1.1, "blocks": 20, "block_s": 0.25}
    there = RateEstimate(**about, half_width=0.1, trend=MOST_TREND * 0.1)  # type: ignore[arg-type]
    assert there.holds(0.1)
    assert not replace(there, half_width=0.11).holds(0.1)
    assert not replace(there, trend=MOST_TREND * 0.11).holds(0.1)


def test_a_rate_is_never_negative() -> None:
    once = np.zeros(1000)
    once[500] = 100.0
    found = rate_estimate(once)
    assert found is not None
    assert found.low_per_s == 0.0 < found.mean_per_s < found.high_per_s


def test_autocorrelation_makes_blocks_longer() -> None:
    rng = np.random.default_rng(1)
    plain, slow = independent(rng, 2000), np.repeat(independent(rng, 100), 20)
    short, long = rate_estimate(plain), rate_estimate(slow)
    assert short is not None
    assert long is not None
    assert short.block_s < 0.6 < long.block_s
    assert long.blocks < short.blocks


def test_the_law_has_to_hold_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stability, "MIN_S", 0.0)
    steady, stopping = np.full(1000, RATE), StoppingRule(0.02)
    seen = next(n for n in range(5, 1000, 5) if stopping.stable(steady[:n]))
    assert stopping.latest is not None
    # 12 blocks of 6 samples behind the first fifth, and half as long again.
    assert (seen, stopping.looks) == (90 * 1.5, 27)
    assert (stopping.latest.mean_per_s, stopping.latest.half_width) == (RATE / SAMPLE_S, 0.0)
    # One check that fails restarts the count.
    assert not stopping.stable(np.concatenate((steady[:250], np.zeros(100))))
    assert not stopping.stable(steady[:400])


def test_few_samples_give_no_interval_and_none_gives_no_rate() -> None:
    few = rate_estimate(np.full(20, RATE))
    assert few is not None
    assert few.half_width == float("inf")
    assert not few.holds(0.4)
    assert (few.blocks, few.mean_per_s, few.low_per_s) == (2, RATE / SAMPLE_S, 0.0)
    assert rate_estimate(np.zeros(50)) is None
    assert rate_estimate([]) is None
