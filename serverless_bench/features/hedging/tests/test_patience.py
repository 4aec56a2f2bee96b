"""After which time a read is requested again: a percentile of the times before."""

import math
import random

import pytest

from serverless_bench.base.errors import Hedged, ServerFault
from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.hedging.patience import HEDGE_WINDOW, LEAST_TIMES, Hedging
from serverless_bench.worker.meter import Meter
from tests.unit.meters import patient_meter

MS = NS_PER_S // 1000


def answered(after_ns: int) -> Meter:
    meter = patient_meter()
    meter.last_byte_sent_ns, meter.answered_ns = NS_PER_S, NS_PER_S + after_ns
    return meter


def given_up(after_ns: int) -> Meter:
    meter = patient_meter()
    meter.outcome, meter.last_byte_sent_ns = Hedged("other"), NS_PER_S
    meter.end_ns = NS_PER_S + after_ns
    return meter


def test_a_time_is_a_time() -> None:
    hedging = Hedging(0.05)
    assert hedging.after_ns == 50 * MS
    hedging.learn(answered(MS))
    assert hedging.after_ns == 50 * MS


@pytest.mark.parametrize("percent", [50, 95, 99, 99.9])
def test_a_percentile_is_by_nearest_rank_of_enough_times(percent: float) -> None:
    hedging, times = Hedging(f"p{percent}"), []
    least = max(LEAST_TIMES, round(100 / (100 - percent)))
    rng = random.Random(1)
    for number in range(1, HEDGE_WINDOW + 201):
        times.append(rng.randrange(1, NS_PER_S))
        hedging.learn(answered(times[-1]))
        assert (hedging.after_ns is None) == (number < least)
    latest = sorted(times[-HEDGE_WINDOW:])
    rank = math.ceil(round(percent * len(latest) / 100, 6))
    assert hedging.after_ns == latest[rank - 1]


def test_what_was_given_up_counts_as_long_as_it_lasted_and_what_failed_not_at_all() -> None:
    hedging = Hedging("p50")
    for number in range(20):
        hedging.learn(answered(MS) if number % 2 else given_up(30 * MS))
        failed = answered(0)
        failed.outcome = ServerFault("failed by itself")
        hedging.learn(failed)
    assert hedging.after_ns == MS
    for _ in range(10):
        hedging.learn(given_up(30 * MS))
    assert hedging.after_ns == 30 * MS


def test_cutting_the_tail_does_not_lower_the_percentile_that_cuts_it() -> None:
    hedging, rng, hedged = Hedging("p90"), random.Random(7), 0
    for _ in range(20_000):
        took = round(rng.lognormvariate(0, 1) * MS)
        after = hedging.after_ns
        if after is None or took <= after:
            hedging.learn(answered(took))
        else:
            hedged += 1
            # The second answer came a moment later.
            hedging.learn(given_up(after + MS // 10))
    assert 0.09 < hedged / 20_000 < 0.11


def test_a_response_that_came_with_the_sending_took_no_time() -> None:
    hedging = Hedging("p50")
    for _ in range(20):
        meter = answered(0)
        meter.last_byte_sent_ns = None
        hedging.learn(meter)
    assert hedging.after_ns == 0
