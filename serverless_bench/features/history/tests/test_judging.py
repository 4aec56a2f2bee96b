"""Verdicts over recorded runs and blocks: known answers, and the promised error rates."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp, log

import msgspec
import numpy as np
import pytest

from benchmarks import history as simulated
from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.compare.ratio import RatioEstimate, found_share, rounds_needed
from serverless_bench.features.compare.verdict import Verdict
from serverless_bench.features.history.judging import (
    MIN_SESSIONS,
    MOST_SESSIONS,
    SessionSpread,
    by_block,
    judge,
    of_recorded,
    of_the_same_work,
    overall,
    ratio_of,
    serial_correlation,
    sessions,
)
from serverless_bench.features.history.recorded import RecordedRun
from tests.chance import least, most

HOUR_NS = 3600 * NS_PER_S
SERIES = 200
SIZES = [SERIES // 4, pytest.param(SERIES, marks=pytest.mark.full)]


def run(
    rate: float, *, at_ns: int = 0, time_s: float | None = None, restart: bool = False
) -> RecordedRun:
    figures = {
        "throughput_bytes_per_s": rate,
        "completion_s.p99": 1 / rate if time_s is None else time_s,
    }
    return RecordedRun(
        schema=1,
        run_id=f"{at_ns}",
        created_ns=at_ns,
        key="k",
        job={},
        machine={},
        versions={},
        bytes=1000,
        figures=figures,
        restart=restart,
    )


def series(rates: Sequence[float], *, every_ns: int = 24 * HOUR_NS) -> list[RecordedRun]:
    return [run(rate, at_ns=number * every_ns) for number, rate in enumerate(rates)]


EQUAL = (1.0, 1.01, 0.99, 1.0, 1.01, 0.99, 1.0, 1.01)


def as_promised(found: Mapping[str, float], count: int) -> None:
    """Hold the shares of so many series against the promised ones."""
    few = count < SERIES
    alarms = most(count, 0.05) / count if few else 0.05
    assert found["false alarms"] <= alarms
    assert found["passed wrongly"] <= alarms
    # Two standard errors of a share of 200 are up to 7 points.
    stated = found["stated"]
    assert found["found"] >= (least(count, stated) / count if few else stated - 0.07)


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("kind", simulated.SERIES, ids=str)
def test_equal_runs_raise_few_alarms_and_a_loss_is_found_as_often_as_stated(
    kind: simulated.Series, count: int
) -> None:
    as_promised(
        simulated.shares(lambda rng, loss: simulated.recorded(kind, rng, loss), count), count
    )


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize(("blocks", "spread"), simulated.BLOCKS)
def test_so_do_runs_interleaved(blocks: int, spread: float, count: int) -> None:
    as_promised(
        simulated.shares(lambda rng, loss: simulated.turns(blocks, spread, rng, loss), count), count
    )


@pytest.mark.parametrize(
    ("rate", "verdict"),
    [
        (1.0, Verdict.PASSED),
        (1.3, Verdict.PASSED),
        (0.85, Verdict.REGRESSED),
        # Beyond chance, and below the tolerance.
        (0.96, Verdict.UNDECIDED),
    ],
)
def test_one_more_session_is_held_against_the_recorded_ones(rate: float, verdict: Verdict) -> None:
    found = judge(
        of_recorded(("throughput_bytes_per_s", "completion_s.p99"), series(EQUAL), [run(rate)])
    )
    assert [one.verdict for one in found] == [verdict, verdict]
    assert overall(found) is verdict
    # The rate and the time change in opposite directions.
    assert [ratio_of(one) for one in found] == pytest.approx([rate, 1 / rate], rel=0.01)


def test_the_standard_error_of_one_more_is_that_of_a_prediction() -> None:
    """Without correlation: s times the root of 1 + 1/n, with n - 1 degrees of freedom."""
    rates = [1.05, 0.93, 1.08, 0.9, 1.1, 0.95, 1.0]
    logs = np.log(rates)
    assert serial_correlation(logs) == 0
    (one,) = of_recorded(["throughput_bytes_per_s"], series(rates), [run(0.9)])
    assert one.gain is not None
    assert one.gain.rounds == 7
    expected = logs.std(ddof=1) * (1 + 1 / 7) ** 0.5
    assert one.gain.error == pytest.approx(expected)
    assert one.gain.mean == pytest.approx(log(0.9) - logs.mean())
    assert one.recorded is not None
    assert one.recorded.between == pytest.approx(logs.std(ddof=1))


@pytest.mark.parametrize(
    ("levels", "correlation"),
    [
        # 0.75 of 2, and (1 + 4 x 0.375) / 8 more.
        ([0, 0, 1, 1, 1, 1, 0, 0], 0.69),
        # -0.25 of 2 stays negative when (1 - 0.5) / 8 is added.
        ([0, 1, 1, 0, 0, 1, 1, 0], 0.0),
        ([1, 2, 3, 4, 5, 6], 0.8),
        ([3, 3, 3, 3, 3, 3], 0.0),
    ],
)
def test_the_correlation_of_neighbours_by_hand(levels: list[float], correlation: float) -> None:
    assert serial_correlation(np.array(levels, float)) == correlation


@pytest.mark.parametrize("number", [6, 13])
def test_one_more_of_a_correlated_series_agrees_with_its_covariances(number: int) -> None:
    rates = [1.0, 1.0, *([1.1] * (number - 4)), 1.0, 1.0]
    (one,) = of_recorded(["throughput_bytes_per_s"], series(rates), [run(0.9)])
    assert one.gain is not None
    assert one.recorded is not None
    assert one.recorded.correlation > 0.3
    places = np.arange(number + 1)
    covariance = one.recorded.correlation ** np.abs(places[:, None] - places)
    known, ahead = covariance[:-1, :-1], covariance[:-1, -1]
    variance = 1 + known.mean() - 2 * ahead.mean()
    expected_sample = (np.trace(known) - known.sum() / number) / (number - 1)
    error = one.recorded.between * (variance / expected_sample) ** 0.5
    assert one.gain.error == pytest.approx(error)
    # The equivalent number of independent values with the same variance of the sample variance
    # (Bartlett).
    assert one.gain.rounds == max(2, int(number**2 / (known**2).sum()))


def test_the_power_is_that_of_a_spread_that_is_as_likely_too_large_as_too_small() -> None:
    name = "throughput_bytes_per_s"
    rates = np.exp(0.07 * np.array([1, -1, 0.5, -0.5, 0.2, -0.2, 0.0]))
    (found,) = judge(by_block([name], {name: [1.0] * 7}, {name: rates.tolist()}), loss=0.2)
    # The median of chi squared with six degrees of freedom is 5.348.
    sd = np.log(rates).std(ddof=1) * (6 / 5.348) ** 0.5
    about = {"ratio": 1 / 0.8, "threshold": 0.05}
    assert found.power == pytest.approx(found_share(sd / 7**0.5, 6, 1, **about))
    assert found.needed == max(6, rounds_needed(sd, 1, **about) or 0)


def test_correlated_days_count_for_less() -> None:
    rates = [1.0, 1.01, 1.02, 1.03, 1.03, 1.02, 1.01, 1.0, 0.99, 0.98, 0.98, 0.99]
    (slow,) = of_recorded(["throughput_bytes_per_s"], series(rates), [run(0.9)])
    shuffled = [rates[place] for place in (0, 6, 2, 9, 4, 11, 7, 3, 10, 1, 8, 5)]
    (mixed,) = of_recorded(["throughput_bytes_per_s"], series(shuffled), [run(0.9)])
    assert slow.gain is not None
    assert mixed.gain is not None
    assert slow.recorded is not None
    assert mixed.recorded is not None
    assert slow.recorded.correlation > 0.5 > mixed.recorded.correlation
    assert slow.gain.rounds < mixed.gain.rounds
    assert slow.gain.error > mixed.gain.error


def test_unlike_numbers_of_runs_are_two_variances_by_hand() -> None:
    # Means 0, 6, 2, 2; within: (1 + 1) + (1 + 1) with two degrees of freedom.
    known = [np.array([-1.0, 1.0]), np.array([5.0, 7.0]), np.array([2.0]), np.array([2.0])]
    spread = SessionSpread.from_levels(known)
    assert (spread.within, spread.within_freedom, spread.share) == (2, 2, 0.75)
    assert spread.between == pytest.approx((19 / 3) ** 0.5)
    assert spread.correlation == 0
    recorded, unlike = 19 / 3 * (1 + 1 / 4), 2 * (1 - 0.75)
    one = spread.one_more(4.5, 1, 4)
    assert one.mean == 2
    assert one.error == pytest.approx((recorded + unlike) ** 0.5)
    # Satterthwaite: three degrees of freedom of the levels, two of the runs.
    expected = (recorded + unlike) ** 2 / (recorded**2 / 3 + unlike**2 / 2)
    assert one.freedom == pytest.approx(expected)
    # A session is never more precise than its own runs allow.
    still = SessionSpread.from_levels([np.array([-1.0, 1.0])] * 6)
    assert still.one_more(0.0, 8, 6) == RatioEstimate(mean=0.0, error=0.5, freedom=6)


def test_a_session_as_slow_as_a_recorded_one_has_not_regressed() -> None:
    """One in ten machines is 20 % slower: normal levels alone would report a regression."""
    rates = [*([1.0, 1.01, 0.99] * 9), 0.8, 1.0, 1.01]
    (found,) = judge(of_recorded(["throughput_bytes_per_s"], series(rates), [run(0.81)]))
    assert found.p <= 0.05
    assert found.verdict is Verdict.UNDECIDED
    (found,) = judge(of_recorded(["throughput_bytes_per_s"], series(rates), [run(0.79)]))
    assert found.verdict is Verdict.REGRESSED


@pytest.mark.parametrize("sessions_", [8, 20, 30])
def test_a_drift_is_no_step(sessions_: int) -> None:
    noise = np.random.default_rng(3).standard_normal(sessions_ + 1)
    rates = np.exp(-0.01 * np.arange(sessions_ + 1) + 0.01 * noise).tolist()
    found = judge(of_recorded(["throughput_bytes_per_s"], series(rates[:-1]), [run(rates[-1])]))
    assert overall(found) is Verdict.UNDECIDED


@pytest.mark.parametrize("high", [1, 3, 5])
def test_no_figure_that_a_file_may_have_is_too_much(high: int) -> None:
    known = series([*([0.9e15] * high), *([1.1e-9] * (6 - high))])
    for now in (0.9e15, 1.1e-9):
        found = judge(
            of_recorded(
                ("throughput_bytes_per_s", "completion_s.p99"), known, [run(now, time_s=now)]
            )
        )
        assert all(one.interval is not None for one in found)


def test_runs_of_one_hour_are_one_session() -> None:
    runs = series([1.0] * 30, every_ns=HOUR_NS // 10)
    assert [len(one) for one in sessions(runs)] == [11, 11, 8]
    found = judge(of_recorded(["throughput_bytes_per_s"], runs, [run(0.5)]))
    assert overall(found) is Verdict.UNDECIDED
    assert found[0].evidence.gain is None
    assert ratio_of(found[0]) == 0.5
    # However many runs these sessions have.
    assert len(sessions(series([1.0] * MIN_SESSIONS))) == MIN_SESSIONS


def test_old_runs_are_not_compared() -> None:
    rates = [*([0.5, 0.51] * 10), *([1.0, 1.01] * (MOST_SESSIONS // 2))]
    (one,) = of_recorded(["throughput_bytes_per_s"], series(rates), [run(1.0)])
    assert one.old == pytest.approx(1.01**0.5)


def test_runs_of_other_work_and_from_before_a_restart_are_left_out() -> None:
    old = series(EQUAL)
    other = msgspec.structs.replace(old[1], bytes=2000)
    timed = msgspec.structs.replace(old[2], bytes=None)
    known = [old[0], other, timed, run(1.0, at_ns=HOUR_NS, restart=True), old[3]]
    assert of_the_same_work(known[:3], [run(1.0)]) == [old[0]]
    assert of_the_same_work(known, [run(1.0)]) == known[3:]
    assert of_the_same_work(known[:3], [timed]) == known[:3]


def test_one_figure_that_regressed_is_enough_and_one_that_is_open_forbids_a_pass() -> None:
    figures = ("throughput_bytes_per_s", "completion_s.p99")
    slow = judge(of_recorded(figures, series(EQUAL), [run(1.0, time_s=1.3)]))
    assert [one.verdict for one in slow] == [Verdict.PASSED, Verdict.REGRESSED]
    assert overall(slow) is Verdict.REGRESSED
    open_ = judge(of_recorded(figures, series(EQUAL), [run(1.0, time_s=1.04)]))
    assert overall(open_) is Verdict.UNDECIDED


def test_more_figures_need_stronger_evidence() -> None:
    old, new = [1.0] * 6, [0.9, 0.8, 0.97, 0.93, 0.85, 0.93]
    names = ["throughput_bytes_per_s", "peak_1s_bytes_per_s", "steady_bytes_per_s"]
    alone = judge(by_block(names[:1], {names[0]: old}, {names[0]: new}))
    equal = {each: [1.0, 1.02, 0.99, 1.0, 1.0, 1.0] for each in names}
    among = judge(by_block(names, equal, {**equal, names[0]: new}))
    assert among[0].p > alone[0].p
    assert alone[0].verdict is Verdict.REGRESSED


def test_blocks_remove_common_slowdowns() -> None:
    hours = np.exp([0.0, -0.5, 0.3, -0.2, 0.6, -0.4])
    noise = np.exp([0.01, -0.01, 0.005, -0.005, 0.01, -0.01])
    name = "throughput_bytes_per_s"
    (found,) = judge(
        by_block([name], {name: hours.tolist()}, {name: (0.88 * hours * noise).tolist()})
    )
    assert found.verdict is Verdict.REGRESSED
    assert ratio_of(found) == pytest.approx(0.88, rel=0.01)
    assert found.interval is not None
    assert found.interval.low < 0.88 < found.interval.high


def test_it_says_how_many_blocks_find_the_loss() -> None:
    name = "throughput_bytes_per_s"
    rng = np.random.default_rng(1)
    rates = np.exp(0.08 * rng.standard_normal(6)).tolist()
    (found,) = judge(by_block([name], {name: [1.0] * 6}, {name: rates}))
    assert found.power < 0.9
    assert found.needed is not None
    assert found.needed > 6
    gain = found.evidence.gain
    assert gain is not None
    error = gain.error * (6 / found.needed) ** 0.5
    more = msgspec.structs.replace(gain, error=error, freedom=found.needed - 1)
    assert judge([replace(found.evidence, gain=more)])[0].power >= 0.9


def test_a_spread_beyond_the_loss_is_found_by_no_number_of_sessions() -> None:
    rates = [exp(0.2 * one) for one in (1, -1, 0.5, -0.7, 1.1, -1.2, 0.3)]
    (found,) = judge(of_recorded(["throughput_bytes_per_s"], series(rates), [run(0.9)]))
    assert (found.verdict, found.needed) == (Verdict.UNDECIDED, None)
