"""Limits of single functions, by hand."""

from dataclasses import replace

import numpy as np
import pytest

from serverless_bench.base.units import GIB, MIB
from serverless_bench.features.cost.limits import (
    CostConditions,
    FunctionLimits,
    limits_of,
    shared_bytes_per_s,
)
from serverless_bench.features.cost.model import AWS_LAMBDA, Model, Store
from serverless_bench.features.cost.tests.models import PLAIN, changed
from serverless_bench.job.operations import OperationKind

PUT, GET = OperationKind.PUT, OperationKind.GET
FREE = changed(PLAIN, function={"core_s_per_gib": 0.0})
"""Model in which no step takes time, not even the CPU's."""


def limits(
    model: Model,
    kind: OperationKind = PUT,
    deployed: CostConditions | None = None,
    *,
    functions: int = 4,
    client: str = "wire",
) -> FunctionLimits:
    return limits_of(
        model,
        kind,
        (functions,),
        deployed or CostConditions(),
        client=client,
        rng=np.random.default_rng(1),
    )


def test_without_limits_there_are_none() -> None:
    found = limits(FREE)
    assert found.line == found.bytes_per_s == float("inf")
    assert found.burst_bytes == 0
    assert np.isinf(found.connection).all()
    assert found.claim.tolist() == [1, 1, 1, 1]


def test_a_cpu_moves_so_many_bytes() -> None:
    assert limits(changed(FREE, function={"core_s_per_gib": 2.0})).line == GIB / 2
    # As measured for a client; clients without a value are treated like boto3.
    unsaid = {"core_s_per_gib": None}
    found = [
        limits(changed(AWS_LAMBDA, function=unsaid), kind, client=client).core_s_per_gib
        for kind in (PUT, GET)
        for client in ("wire", "another")
    ]
    assert found == [1.19, 2.61, 1.42, 1.48]
    # On Lambda memory decides, up to a whole CPU.
    there = changed(FREE, function={"core_s_per_gib": 2.0, "on_lambda": True})
    lines = [
        limits(there, PUT, CostConditions(memory_mib=mib)).line for mib in (1769 * 2, 1769, 884)
    ]
    assert lines == pytest.approx([GIB / 2, GIB / 2, GIB / 2 * 884 / 1769])
    assert limits(changed(there, function={"line_put_bytes_per_s": 1e6})).line == 1e6


def test_each_direction_has_its_own_limits() -> None:
    model = changed(
        FREE,
        function={
            "line_put_bytes_per_s": 3e6,
            "line_get_bytes_per_s": 4e6,
            "connection_put_bytes_per_s": 1e6,
            "connection_get_bytes_per_s": 2e6,
            "connection_get_sigma": 0.5,
        },
        store={"share_sigma": 0.25},
    )
    put, get = limits(model), limits(model, GET, functions=2000)
    assert (put.line, put.connection.tolist()) == (3e6, [1e6] * 4)
    assert get.line == 4e6
    assert np.median(get.connection) == pytest.approx(2e6, rel=0.05)
    assert np.log(get.connection).std() == pytest.approx(0.5, abs=0.03)
    assert np.log(get.claim).std() == pytest.approx(0.25, abs=0.02)
    assert np.median(get.claim) == pytest.approx(1, rel=0.03)


def test_the_network_is_a_files_or_lambdas() -> None:
    def network(deployed: CostConditions | None = None, **function: object) -> tuple[float, float]:
        found = limits(changed(FREE, function=dict(function)), PUT, deployed)
        return found.burst_bytes, found.bytes_per_s

    assert network(bytes_per_s=5e6) == (0, 5e6)
    assert network(bytes_per_s=5e6, burst_bytes=7.0, on_lambda=True) == (7, 5e6)
    assert network(on_lambda=True) == (300 * MIB, 625e6 / 8)
    raised = CostConditions(memory_mib=10240, network_mbps=2000.0)
    assert network(raised, on_lambda=True) == (300 * MIB, 2000e6 / 8)


def test_a_vpc_has_a_ceiling_and_no_raised_quota() -> None:
    there = changed(FREE, function={"on_lambda": True, "vpc_bytes_per_s": 5e9})
    inside = CostConditions(memory_mib=10240, network_mbps=2000.0, in_vpc=True)
    assert limits(there, PUT, inside).bytes_per_s == 625e6 / 8
    found = [
        shared_bytes_per_s(replace(there, store=Store(bytes_per_s=limit)), "b", conditions)
        for limit in (None, 1e9)
        for conditions in (CostConditions(), inside)
    ]
    assert found == [float("inf"), 5e9, 1e9, 1e9]


def test_some_connections_are_slower_by_a_pareto_law() -> None:
    function = {"connection_get_bytes_per_s": 1e6, "slow_get_share": 0.2, "slow_slope": 2.0}
    found = limits(changed(FREE, function=function), GET, functions=100_000).connection
    # A fifth of them, by more than twice a quarter of these.
    assert (found < 1e6).mean() == pytest.approx(0.2, rel=0.03)
    assert (found < 0.5e6).mean() == pytest.approx(0.2 / 4, rel=0.05)
    capped = limits(changed(FREE, function={**function, "slow_most": 3.0}), GET, functions=1000)
    assert capped.connection.min() == pytest.approx(1e6 / 3)
