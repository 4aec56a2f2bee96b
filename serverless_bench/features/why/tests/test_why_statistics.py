"""Elasticities and causes: by hand, by properties, and on simulated runs with known causes."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from math import exp, inf, isinf, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from serverless_bench.features.compare.verdict import holm
from serverless_bench.features.why.cause import BoundBy, Cause, decide
from serverless_bench.features.why.elasticity import (
    MIN_BLOCKS,
    Elasticity,
    elasticities,
    log_ratios,
)
from serverless_bench.features.why.tests.why_model import (
    CHANGES,
    EXPECTED,
    TRUTHS,
    Noise,
    simulated,
)
from tests.chance import least, most
from tests.tables import each_row

A_FEW, CI, FULL = 25, 100, 1000
NOISES = {
    "2 %, no memory": Noise(sd=0.02),
    "5 %, 2 s": Noise(sd=0.05, memory_s=2),
    "10 %, 2 s": Noise(sd=0.1, memory_s=2),
    "5 %, 2 s, drift 40 %": Noise(sd=0.05, memory_s=2, drift=0.4),
}
FINITE = st.floats(-3, 3, allow_nan=False)
LOGS = st.lists(FINITE, min_size=1, max_size=30)


def row(value: float, half_width: float = 0.1, blocks: int = 20) -> Elasticity:
    """Return a row with about this elasticity and interval."""
    spread = np.linspace(-1, 1, blocks) * half_width * 1.6
    return Elasticity(expected=log(1.25), logs=(value + spread) * log(1.25), confidence=0.99)


def rows(truth: Mapping[str, float], **changed: Elasticity) -> dict[str, Elasticity]:
    return {name: row(truth.get(name, 0)) for name in CHANGES} | changed


def test_a_changed_block_is_held_against_its_base_in_between() -> None:
    changes = ["", "bytes", "others", "", "bytes"]
    rates = np.exp(np.array([[0.0], [1.0], [2.0], [3.0], [9.0]]))
    logs = log_ratios(changes, rates, np.ones_like(rates, dtype=bool))
    # Base is interpolated: 1 and 2. The last block has no base after it.
    assert {name: values.round(9).tolist() for name, values in logs.items()} == {
        "bytes": [0.0],
        "others": [0.0],
    }


def test_only_functions_that_count_are_added_up_also_in_the_base() -> None:
    rates = np.array([[1.0, 7.0], [2.0, 0.0], [1.0, 9.0]])
    counted = np.array([[True, True], [True, False], [True, True]])
    assert log_ratios(["", "others", ""], rates, counted)["others"].tolist() == [log(2)]


def test_a_block_without_any_byte_has_no_ratio() -> None:
    rates = np.array([[1.0], [0.0], [1.0]])
    assert log_ratios(["", "lock", ""], rates, rates >= 0) == {}


@given(logs=LOGS)
def test_the_elasticity_is_in_its_interval_and_signs_mirror(logs: list[float]) -> None:
    own = Elasticity(expected=0.5, logs=np.array(logs))
    mirrored = replace(own, logs=-np.array(logs))
    low, high = own.interval
    assert low <= own.value <= high
    assert mirrored.interval == pytest.approx((-high, -low))
    assert mirrored.value == pytest.approx(-own.value)
    assert mirrored.p == pytest.approx(own.p)
    assert 0 <= own.p <= 1


@given(logs=LOGS, factor=st.floats(0.1, 10))
def test_an_elasticity_is_relative_to_the_expected_change(logs: list[float], factor: float) -> None:
    own = Elasticity(expected=0.5, logs=np.array(logs))
    other = replace(own, expected=0.5 * factor)
    assert other.value * factor == pytest.approx(own.value)
    assert other.p == own.p


@given(logs=st.lists(FINITE, min_size=6, max_size=25, unique_by=abs).filter(lambda v: 0 not in v))
def test_p_is_that_of_wilcoxons_exact_test(logs: list[float]) -> None:
    own = Elasticity(expected=1.0, logs=np.array(logs))
    assert own.p == pytest.approx(stats.wilcoxon(logs, method="exact").pvalue)


@given(logs=st.lists(FINITE, min_size=6, max_size=25))
def test_the_interval_contains_the_shifts_not_rejected(logs: list[float]) -> None:
    values = np.array(logs) + np.linspace(0, 1e-3, len(logs)) ** 2
    own = Elasticity(expected=1.0, logs=values)
    low, high = own.interval
    for shift, is_inside in ((low - 1e-6, False), (high + 1e-6, False), (own.value, True)):
        p = replace(own, logs=values - shift).p
        assert (p > 0.05) == is_inside or isinf(shift)


def test_too_few_blocks_do_not_decide() -> None:
    few = Elasticity(expected=1.0, logs=np.ones(5))
    assert few.interval == (-inf, inf)
    assert (few.bounds, few.is_partial, few.blocks_needed) == (None, False, MIN_BLOCKS)


def test_intervals_hold_together_and_p_are_adjusted() -> None:
    logs = {name: np.linspace(0.1, 0.2, 12) for name in ("thread", "lock")}
    both = elasticities(logs, EXPECTED)
    assert both["lock"].confidence == pytest.approx(0.975)
    assert holm({name: row.p for name, row in both.items()})["lock"] == 2 * both["lock"].p
    assert both["lock"].effect == pytest.approx(exp(0.15) - 1)


@each_row(("cause", "truth"), TRUTHS.items())
def test_each_cause_has_its_signature(cause: BoundBy, truth: Mapping[str, float]) -> None:
    assert decide(rows(truth), own_share=0.1) == Cause(names=(cause,))


def test_time_outside_of_requests_is_the_functions_own() -> None:
    assert decide(rows({"thread": 1}), own_share=0.6).names == (BoundBy.OWN_CODE,)


def test_a_pause_replaces_a_thread_and_missing_changes_leave_several() -> None:
    few = {name: row(float(name == "pause")) for name in ("pause", "cpu", "lock", "others")}
    assert decide(few, own_share=0).names == (BoundBy.LATENCY, BoundBy.CONNECTION)
    shared = few | {"pause": row(0), "others": row(1)}
    assert decide(shared, own_share=0).names == (BoundBy.QUEUE, BoundBy.PIPE)


@pytest.mark.parametrize(
    ("change", "cause"), [("prefixes", BoundBy.PREFIX), ("endpoints", BoundBy.ENDPOINT)]
)
def test_what_an_idle_half_leaves_to_the_other_is_a_limit_of_all(
    change: str, cause: BoundBy
) -> None:
    truth = {"others": 1, "bytes": 1}
    assert decide(rows(truth, **{change: row(1)}), own_share=0).names == (BoundBy.QUEUE,)
    assert decide(rows(truth, **{change: row(0)}), own_share=0).names == (cause,)


def test_an_undecided_step_is_named_with_the_blocks_that_would_tell() -> None:
    cause = decide(rows({}, lock=row(0.3, half_width=0.5)), own_share=0)
    assert (cause.names, cause.undecided, cause.shares) == ((), ("lock",), {})
    assert cause.blocks > 0
    halves = decide(
        rows({}, lock=row(0.49, half_width=0.25), cpu=row(0.4, half_width=0.05)), own_share=0
    )
    assert list(halves.shares) == ["cpu", "lock"]
    assert decide({}, own_share=0) == Cause(undecided=("cpu",))


def test_a_cpu_is_named_even_without_its_owner() -> None:
    cause = decide(rows({"cpu": 1}, others=row(0.5)), own_share=0)
    assert cause.names == (BoundBy.MACHINE, BoundBy.CPU)


def test_a_cause_that_is_shown_needs_no_other_to_be_excluded() -> None:
    cause = decide(rows({"thread": 1, "bytes": 1}, cpu=row(0.4, half_width=0.5)), own_share=0)
    assert cause.names == (BoundBy.LATENCY,)


def test_cpus_shared_with_the_store_are_those_of_the_machine() -> None:
    """A tax then takes less than its share from the run, because the store computes, too."""
    half = row(0.55, half_width=0.2)
    both = decide(rows({"others": 1}, cpu=half), own_share=0)
    assert both.names == (BoundBy.MACHINE,)
    # Two resources near each other add up to 1.
    apart = decide(rows({}, cpu=half, others=row(0.45, half_width=0.2)), own_share=0)
    assert (apart.names, apart.undecided) == ((), ("cpu",))
    # A CPU that hardly matters leaves the limit to the store.
    queue = decide(rows({"others": 1, "bytes": 1}, cpu=row(0.2)), own_share=0)
    assert queue.names == (BoundBy.QUEUE,)


def test_failed_changes_name_no_cause() -> None:
    assert decide(rows({}), own_share=0, failed=["bytes"]).without_effect == ("bytes",)
    assert decide(rows({}), own_share=0, failed=["nothing"]).names == ()
    # A proven cause remains.
    assert decide(rows({"lock": 1}), own_share=0, failed=["bytes"]).names == (BoundBy.LOCK,)


def judged(noise: Noise, number: int) -> Counter[str]:
    """Count the results of simulated runs, and whether their intervals cover the truth."""
    document: Counter[str] = Counter()
    for seed in range(number):
        name = list(TRUTHS)[seed % len(TRUTHS)]
        document += _one(simulated(TRUTHS[name], noise, seed), name)
    return document


def _one(own: Mapping[str, Elasticity], name: BoundBy) -> Counter[str]:
    truth = TRUTHS[name]
    names = decide(own, own_share=0).names
    result = "undecided" if not names else "right" if name in names else "wrong"
    covered = single = false = 0
    p = holm({change: one.p for change, one in own.items()})
    for change, one in own.items():
        low, high = one.interval
        covered += low <= truth.get(change, 0) <= high
        low, high = replace(one, confidence=0.95).interval
        single += low <= truth.get(change, 0) <= high
        false += p[change] <= 0.05 and not truth.get(change, 0)
    return Counter(
        {
            result: 1,
            "runs": 1,
            "rows": len(own),
            "row covered": single,
            "all covered": int(covered == len(own)),
            "false": int(false > 0),
        }
    )


def hold(document: Counter[str], slack: float) -> None:
    runs = document["runs"]
    assert document["row covered"] / document["rows"] >= 0.93 - slack
    assert document["all covered"] / runs >= 0.92 - slack
    assert document["false"] / runs <= 0.07 + slack
    assert document["wrong"] / runs <= 0.01


@pytest.mark.parametrize("name", NOISES)
def test_a_few_simulated_runs_are_covered_and_not_named_wrongly(name: str) -> None:
    document = judged(NOISES[name], A_FEW)
    # The rows of one run are not independent of each other: as if they were one.
    assert document["row covered"] / document["rows"] >= least(A_FEW, 0.93) / A_FEW
    assert document["all covered"] >= least(A_FEW, 0.92)
    assert document["false"] <= most(A_FEW, 0.07)
    assert document["wrong"] <= most(A_FEW, 0.01)


@pytest.mark.full
@pytest.mark.parametrize("name", NOISES)
def test_simulated_runs_are_covered_and_not_named_wrongly(name: str) -> None:
    # Two standard errors of a share of 5 % in this many runs.
    hold(judged(NOISES[name], CI), slack=0.044)


@pytest.mark.full
@pytest.mark.parametrize("name", NOISES)
def test_the_same_in_a_thousand_runs(name: str) -> None:
    hold(judged(NOISES[name], FULL), slack=0)


def test_carry_over_is_not_covered_but_names_stay_right() -> None:
    document = judged(Noise(sd=0.05, memory_s=2, carried=0.1), CI)
    assert document["row covered"] / document["rows"] < 0.93
    assert document["wrong"] == 0
