"""False alarms, power and lengths of studies, on which the verdicts' promises are based."""

from math import exp, log
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs.experiment_figures import from_data, to_data
from docs.experiment_simulation import Noise, noise_of, simulate
from serverless_bench.base.errors import ArchiveError
from serverless_bench.features.compare.ratio import (
    found_share,
    paired_ratio,
    ratio_of_logs,
    rounds_needed,
)
from serverless_bench.features.compare.verdict import holm
from serverless_bench.features.studies import pilot
from serverless_bench.features.studies.definition import Settings
from serverless_bench.features.studies.loading import load_study
from serverless_bench.features.studies.observations import CellRun, CellRuns
from serverless_bench.features.studies.pilot import RunLength, length_of, rounds_within, spread_of
from serverless_bench.features.studies.plan import Plan
from serverless_bench.rundir.run import Run
from tests.data.runs import S, operation, outcome, record, saved
from tests.house.members import uses

PS = st.dictionaries(st.integers(), st.floats(0, 1), min_size=1, max_size=12)


def plan_of(name: str, repeats: int = 6) -> Plan:
    """Return a plan for a machine that no cell overloads."""
    return Plan(study=load_study(name), scale="small", repeats=repeats, processors=64)


# Many comparisons.


@given(PS)
def test_holm_is_between_each_alone_and_bonferroni(p: dict[int, float]) -> None:
    found = holm(p)
    order = sorted(p, key=lambda key: p[key])
    assert [found[key] for key in order] == sorted(found.values())
    for key, alone in p.items():
        assert alone <= found[key] <= min(1.0, len(p) * alone) + 1e-12
    assert found[order[0]] == min(1.0, len(p) * p[order[0]])


def test_holm_by_hand() -> None:
    # Holm 1979: 3 x 0.01, 2 x 0.02, 1 x 0.9, and never below the previous one.
    assert holm({"a": 0.01, "b": 0.9, "c": 0.02}) == pytest.approx({"a": 0.03, "c": 0.04, "b": 0.9})
    assert holm({"a": 0.04, "b": 0.03}) == pytest.approx({"a": 0.06, "b": 0.06})


def test_a_contrast_is_students_t_of_logarithms_within_rounds() -> None:
    first, second = {1: 10.0, 2: 20.0, 3: 40.0, 4: 5.0}, {1: 11.0, 2: 26.0, 4: 6.0, 5: 9.0}
    found = paired_ratio(first, second)
    assert found is not None
    logs = [log(1.1), log(1.3), log(1.2)]
    assert found.rounds == 3
    assert found.ratio == pytest.approx(exp(np.mean(logs)))
    # With two degrees of freedom Student's t has a closed form.
    t = np.mean(logs) / (np.std(logs, ddof=1) / 3**0.5)
    assert found.p_different() == pytest.approx(1 - t / (2 + t**2) ** 0.5)
    within = found.interval()
    assert within is not None
    reach = 4.302653 * np.std(logs, ddof=1) / 3**0.5
    assert within.high == pytest.approx(exp(np.mean(logs) + reach))
    assert found.p_same(0.05) == pytest.approx(found.p_below(0.05))
    assert found.inverse().p_above() == pytest.approx(found.p_below())
    assert paired_ratio({1: 1.0}, {2: 1.0}) is None


def test_without_spread_there_is_no_doubt() -> None:
    found = ratio_of_logs(np.full(4, 0.5))
    assert (found.p_different(), found.p_same(0.05)) == (0, 1)
    assert ratio_of_logs(np.array([0.5])).p_different() == 1


# Simulations. CI uses few draws; serverless_bench/features/studies/method.md has the
# results of many.


@pytest.mark.on_change("serverless_bench/features/studies")
@pytest.mark.parametrize("name", ["s3-client-libraries", "pywren-scaling"])
def test_false_alarms_are_held_at_five_percent_per_study(name: str) -> None:
    found = simulate(plan_of(name), studies=120, seed=3)
    assert found.among > 5
    # Three standard errors of a share of 5 % among 120.
    assert found.false_alarms <= 0.05 + 0.06
    assert found.false_among_true <= 0.05 + 0.06


@pytest.mark.on_change("serverless_bench/features/studies")
def test_a_difference_is_found_where_the_noise_allows_it() -> None:
    plan = plan_of("sai3-prestat", repeats=6)
    cells = [cell.slug for cell in plan.cells()]
    shares = []
    for own in (0.01, 0.05, 0.5):
        noise = {
            figure: Noise(rounds=0.3, cells=dict.fromkeys(cells, own))
            for figure in ("ops_per_s", "latency_s.p50")
        }
        found = simulate(plan, noise=noise, studies=40)
        assert found.measured
        assert found.noise == pytest.approx(own * 2**0.5)
        shares.append(found.power)
    assert shares[0] == 1
    assert shares[0] > shares[1] > shares[2]
    assert shares[2] < 0.1


def test_the_estimated_noise_equals_the_simulated_one() -> None:
    plan = plan_of("sai3-prestat", repeats=400)
    rng = np.random.default_rng(5)
    shared = 0.2 * rng.standard_normal(400)
    cells = plan.cells()
    own = {cell.slug: 0.02 * (1 + n) for n, cell in enumerate(cells)}
    observed = [
        CellRuns(
            cell=cell,
            planned=400,
            results=tuple(
                CellRun(path=Path(), figures={"ops_per_s": exp(x), "bytes": 1.0, "elapsed_s": 5.0})
                for x in (3 + n + shared + own[cell.slug] * rng.standard_normal(400)).tolist()
            ),
        )
        for n, cell in enumerate(cells)
    ]
    found = noise_of(plan.study, observed)
    assert set(found) == {"ops_per_s"}
    assert found["ops_per_s"].rounds == pytest.approx(0.2, rel=0.15)
    for slug, sd in own.items():
        assert found["ops_per_s"].cells[slug] == pytest.approx(sd, rel=0.15, abs=0.01)
    # The file beside a page has the same values.
    back = from_data(plan.study, to_data(plan, observed))
    assert noise_of(plan.study, back[1])["ops_per_s"].rounds == pytest.approx(
        found["ops_per_s"].rounds, rel=1e-3
    )
    with pytest.raises(ArchiveError, match="other cells"):
        from_data(load_study("pywren-2016"), to_data(plan, observed))


def test_power_grows_with_rounds_and_falls_with_noise_and_company() -> None:
    about = {"ratio": 1.25, "threshold": 0.05}

    def share(rounds: int, tests: int) -> float:
        return found_share(0.1 / rounds**0.5, rounds - 1, tests, **about)

    shares = [share(rounds, 10) for rounds in (1, 3, 5, 8, 20)]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == pytest.approx((0, 1), abs=1e-4)
    assert share(8, 1) > share(8, 50)
    needed = rounds_needed(0.1, 10, **about)
    assert needed is not None
    assert share(needed, 10) >= 0.9
    assert share(needed - 1, 10) < 0.9
    assert rounds_needed(10.0, 10, **about) is None


# Lengths.


def uneven(path: Path, *, bursts: int) -> Run:
    """A run of 2 s in operations of 0.1 s; the first ``bursts`` are twice as large."""
    step = S // 10
    operations = [
        operation(n, start_ns=n * step, end_ns=(n + 1) * step, size=1000 * (1 + (n < bursts)))
        for n in range(20)
    ]
    return saved(path, [outcome(record(0, operations))])


def test_a_steady_cell_takes_less_time_than_one_that_is_not(tmp_path: Path) -> None:
    steady, uneasy = uneven(tmp_path / "a", bursts=0), uneven(tmp_path / "b", bursts=10)
    assert spread_of(steady) == (2, 0)
    took, spread = spread_of(uneasy)
    # Five parts at 2 and five at 1.
    assert took == 2
    assert spread == pytest.approx(np.std([2] * 5 + [1] * 5, ddof=1) / 10**0.5 / 1.5)
    short = length_of(spread_of(steady), {}, 5, 0.03)
    assert (short.seconds, short.settings) == (pilot.LEAST_S, {"duration": 1.0})
    long = length_of(spread_of(uneasy), {}, 5, 0.03)
    assert (long.seconds, long.settings) == (5, {"duration": 5})
    assert long.standard_error == pytest.approx(spread * (2 / 5) ** 0.5)
    between = length_of(spread_of(uneasy), {}, 60, 0.06)
    assert between.standard_error == pytest.approx(0.06)
    assert length_of((None, None), {}, 5, 0.03).seconds == 5


@uses("workload conditional")
def test_a_number_of_operations_is_not_replaced_by_a_duration() -> None:
    settings: Settings = {"workload": "conditional", "operations": 1}
    assert pilot.pilot_settings(settings, 5) == {}
    assert length_of((2, 0.5), settings, 5, 0.03).settings == {}


@uses("workload array")
def test_more_time_for_appends_is_more_appends(tmp_path: Path) -> None:
    settings: Settings = {"workload": "array", "operation": "append", "objects": 20}
    assert pilot.pilot_settings(settings, 5) == {}
    assert pilot.pilot_settings({}, 5) == {"duration": pilot.PILOT_S}
    assert pilot.pilot_settings({}, 0.5) == {"duration": 0.5}
    found = length_of(spread_of(uneven(tmp_path / "r", bursts=10)), settings, 5, 0.03)
    assert found.settings == {"objects": 50}


def test_as_many_rounds_as_fit_but_for_the_least_and_the_most() -> None:
    def known(seconds: float) -> list[RunLength]:
        one = RunLength(seconds=seconds, settings={}, around_s=1.0, standard_error=None)
        return [one] * 10

    # 10 pilots of 3 s, then 60 s a round.
    assert rounds_within(6.5, known(5), least=5) == 6
    assert rounds_within(1, known(5), least=5) == 5
    assert rounds_within(60, known(1), least=5) == pilot.MOST_ROUNDS
    assert rounds_within(1, [], least=5) == 5


def test_lengths_are_kept(tmp_path: Path) -> None:
    assert pilot.load_lengths(tmp_path) == {}
    known = {"01-a": RunLength(seconds=2, settings={"duration": 2.0}, standard_error=0.01)}
    pilot.replace_json(tmp_path / pilot.LENGTHS, known)
    assert pilot.load_lengths(tmp_path) == known
    assert pilot.is_fixed({"duration": 3})
    assert not pilot.is_fixed({"threads": 3})


@uses("workload read")
def test_all_studies_fit_into_an_hour_at_their_least() -> None:
    """With 5 s for every run, and the overhead of an idle machine with two cores."""
    around_s, total_s = 0.9, 0.0
    for name in ("lithops-object-storage", "pywren-2016", "pywren-scaling", "s3-client-libraries",
                 "s3-client-processes", "s3-client-threads", "s3-client-threads-by-size",
                 "sai3-prestat", "sai3-range-engine", "tensorstore-s3-tuning",
                 "zarr-writers-append", "zarr-writers-write"):  # fmt: skip
        scale = load_study(name).scales["small"]
        cells = sum(not cell.skipped for cell in plan_of(name).cells())
        one = RunLength(seconds=scale.seconds, settings={}, around_s=around_s, standard_error=None)
        rounds = rounds_within(scale.minutes, [one] * cells, scale.repeats)
        total_s += cells * (pilot.PILOT_S + around_s + rounds * (scale.seconds + around_s))
        assert scale.minutes * 60 <= 12 * 60
    assert total_s <= 3600
