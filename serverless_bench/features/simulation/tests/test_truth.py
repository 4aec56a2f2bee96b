"""Verdicts and laws against simulations with a known truth."""

from collections.abc import Iterable
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from serverless_bench.base.units import MIB
from serverless_bench.features.cost.limits import CostConditions
from serverless_bench.features.cost.model import AWS_LAMBDA, LOOPBACK, Model
from serverless_bench.features.cost.tests.models import changed
from serverless_bench.features.simulation.tests.models import simulated
from serverless_bench.metrics.summary import Summary, summarize
from tests.house.members import uses

if TYPE_CHECKING:
    from serverless_bench.features.scale.scaling import Scaling

FUNCTIONS = 40


def one_cause(summary: Summary) -> str:
    ((cause, count),) = summary.parts["bottleneck"].functions.items()
    assert count == summary.requested
    return str(cause)


@pytest.mark.parametrize(
    ("truth", "model"),
    [
        # Burst and rate of a bucket, and the rate alone.
        (
            "rate_limit",
            changed(LOOPBACK, function={"burst_bytes": 10e6, "bytes_per_s": 20e6}),
        ),
        ("rate_limit", changed(LOOPBACK, function={"burst_bytes": 0.0, "bytes_per_s": 20e6})),
        # A connection's own limit is a limit that each function has for itself.
        ("rate_limit", changed(LOOPBACK, function={"connection_put_bytes_per_s": 30e6})),
        ("launch", changed(LOOPBACK, launch={"cold_s": 5.0, "cold_sigma": 0.2})),
        ("rate_limit", changed(LOOPBACK, store={"bytes_per_s": 400e6})),
        ("client", changed(LOOPBACK, function={"core_s_per_gib": 20.0})),
    ],
)
def test_the_bottleneck_is_the_one_of_the_model(tmp_path: Path, truth: str, model: Model) -> None:
    summary = summarize(simulated(tmp_path / "run", model, FUNCTIONS, mib=64))
    assert one_cause(summary) == truth
    found = summary.parts["bottleneck"].sustained_bytes_per_s
    if truth == "rate_limit":
        rate = model.function.bytes_per_s or model.function.connection_put_bytes_per_s
        assert found == pytest.approx(rate, rel=0.01)
    else:
        assert found is None


def test_a_function_bound_by_its_launch_rate_waits_for_it(tmp_path: Path) -> None:
    model = changed(LOOPBACK, launch={"burst": 1, "per_s": 2.0, "cold_s": 30.0})
    summary = summarize(simulated(tmp_path / "run", model, 20, mib=64))
    assert one_cause(summary) == "launch"


@pytest.mark.parametrize(("mib", "objects"), [(1, 4), (8, 4)])
def test_refused_requests_are_the_stores(tmp_path: Path, mib: int, objects: int) -> None:
    model = changed(LOOPBACK, store={"put_per_s": 20.0})
    summary = summarize(simulated(tmp_path / "run", model, FUNCTIONS, mib=mib, objects=objects))
    assert summary.attempt_stats.throttled > 0
    assert one_cause(summary) == "retries"


def test_the_network_of_a_lambda_function_is_known_by_its_figures(tmp_path: Path) -> None:
    function = replace(AWS_LAMBDA.function, connection_put_bytes_per_s=None)
    model = replace(AWS_LAMBDA, function=function)
    summary = summarize(simulated(tmp_path / "run", model, 8, mib=2000))
    assert one_cause(summary) == "function_network"
    assert summary.parts["bottleneck"].sustained_bytes_per_s == pytest.approx(78.125e6, rel=0.001)
    assert summary.parts["bottleneck"].burst_bytes == pytest.approx(300 * MIB, rel=0.1)


def test_a_small_lambda_function_is_bound_by_its_cpu(tmp_path: Path) -> None:
    # Without connections that are slower than the CPU.
    model = changed(AWS_LAMBDA, function={"slow_put_share": 0.0})
    deployed = CostConditions(memory_mib=128)
    run = simulated(tmp_path / "run", model, 8, deployed=deployed, mib=512)
    assert one_cause(summarize(run)) == "client"


@uses("feature scale")
@pytest.mark.on_change("serverless_bench/features/simulation")
def test_an_even_share_in_lockstep_is_named_beside_a_limit_of_each(tmp_path: Path) -> None:
    # All start and end together with the same rate, so one run cannot decide. `scale` can.
    model = changed(LOOPBACK, store={"bytes_per_s": 400e6, "share_sigma": 0.0})
    summary = summarize(simulated(tmp_path / "run", model, FUNCTIONS, mib=64))
    assert one_cause(summary) == "rate_limit"
    assert summary.parts["bottleneck"].rate_limit_of == ("connection", "function", "all")
    found = scaled(tmp_path / "scale", model, (10, 20, FUNCTIONS))
    assert found.capped.law.cap == pytest.approx(400e6, rel=0.01)


def scaled(where: Path, model: Model, numbers: Iterable[int], *, runs_each: int = 4) -> "Scaling":
    from serverless_bench.features.scale.scaling import fit_scaling

    runs = {
        number: [
            summarize(
                simulated(where / f"{number}-{seed}", model, number, mib=64, seed=seed)
            ).throughput_bytes_per_s
            or 0.0
            for seed in range(runs_each)
        ]
        for number in numbers
    }
    return fit_scaling(runs)


@uses("feature scale")
@pytest.mark.on_change("serverless_bench/features/simulation")
def test_a_ceiling_comes_back_as_the_cap_of_the_law(tmp_path: Path) -> None:
    model = changed(
        function={"connection_put_bytes_per_s": 30e6, "connection_put_sigma": 0.03},
        store={"bytes_per_s": 500e6, "put_s": 0.01, "put_sigma": 0.5},
    )
    found = scaled(tmp_path, model, (1, 3, 8, 30, 60, 100))
    assert found.better is found.capped
    alone = 64 * MIB / (64 * MIB / 30e6 + 0.01)
    assert found.capped.law.cap == pytest.approx(500e6, rel=0.01)
    assert found.capped.law.per_function == pytest.approx(alone, rel=0.05)


@uses("feature scale")
@pytest.mark.on_change("serverless_bench/features/simulation")
def test_a_driver_that_sends_one_after_the_other_is_the_contention_of_the_law(
    tmp_path: Path,
) -> None:
    per_s, rate = 20.0, 60e6
    model = changed(
        launch={"submit_per_s": per_s, "cold_s": 0.02, "cold_sigma": 0.3},
        function={"connection_put_bytes_per_s": rate, "connection_put_sigma": 0.02},
    )
    found = scaled(tmp_path, model, (1, 3, 10, 30), runs_each=8)
    assert found.better is found.usl
    # N functions take w + (N - 1) / p: that is N gamma / (1 + alpha (N - 1)).
    alone_s = 64 * MIB / rate
    for name, truth in (("per_function", rate), ("contention", 1 / (per_s * alone_s))):
        low, high = found.usl.interval(attrgetter(name)) or (0, 0)
        assert low <= truth <= high, (name, low, truth, high)
    assert found.usl.law.coherency == pytest.approx(0, abs=1e-4)
