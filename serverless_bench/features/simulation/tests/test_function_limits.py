"""Limits of single functions of a simulation, and lengths of steps, by hand."""

from dataclasses import replace

import numpy as np
import pytest

from serverless_bench.base.units import GIB, MIB
from serverless_bench.features.simulation.demand import Demand
from serverless_bench.features.simulation.limits import Deployed, FunctionLimits, limits_of
from serverless_bench.features.simulation.model import FunctionModel, Model, Store
from serverless_bench.features.simulation.store import short_step_s, usual_step_s
from serverless_bench.features.simulation.tests.models import PLAIN, changed
from serverless_bench.job.operations import OperationKind

PUT, GET = OperationKind.PUT, OperationKind.GET
FREE = changed(PLAIN, function={"core_s_per_gib": 0.0})
"""Model in which no step takes time, not even the CPU's."""


def demand(kind: OperationKind = PUT, *, functions: int = 4, lanes: int = 1) -> Demand:
    """Return two threads each, with an object of 10 MB each, in two parts."""
    count = functions * 2
    return Demand(
        kind=kind,
        functions=functions,
        threads=2,
        lanes=lanes,
        keys=[f"{n}" for n in range(count)],
        size=np.full(count, 10**7),
        part_bytes=np.full(count, 5 * 10**6),
        parts=np.full(count, 2),
        first=np.arange(count + 1),
    )


def limits(
    model: Model,
    of: Demand | None = None,
    deployed: Deployed | None = None,
    *,
    concurrency: int = 100,
    client: str = "wire",
) -> FunctionLimits:
    return limits_of(
        model,
        of or demand(),
        deployed or Deployed(),
        concurrency=concurrency,
        client=client,
        rng=np.random.default_rng(1),
    )


def test_without_limits_there_are_none() -> None:
    found = limits(FREE)
    assert found.line == found.bytes_per_s == float("inf")
    assert (found.burst_bytes, found.function_s) == (0, 0)
    assert np.isinf(found.connection).all()
    assert found.claim.tolist() == [1, 1, 1, 1]


def test_a_cpu_moves_so_many_bytes() -> None:
    assert limits(changed(FREE, function={"core_s_per_gib": 2.0})).line == GIB / 2
    # As measured for a client; clients without a value are treated like boto3.
    unsaid = {"core_s_per_gib": None}
    found = [
        limits(changed(FREE, function=unsaid), demand(kind), client=client).core_s_per_gib
        for kind in (PUT, GET)
        for client in ("wire", "another")
    ]
    assert found == [1.19, 2.61, 1.42, 1.48]
    # On Lambda memory decides, up to a whole CPU.
    there = changed(FREE, function={"core_s_per_gib": 2.0, "on_lambda": True})
    lines = [limits(there, None, Deployed(memory_mib=mib)).line for mib in (1769 * 2, 1769, 884)]
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
    put, get = limits(model), limits(model, demand(GET, functions=2000))
    assert (put.line, put.connection.tolist()) == (3e6, [1e6] * 4)
    assert get.line == 4e6
    assert np.median(get.connection) == pytest.approx(2e6, rel=0.05)
    assert np.log(get.connection).std() == pytest.approx(0.5, abs=0.03)
    assert np.log(get.claim).std() == pytest.approx(0.25, abs=0.02)
    assert np.median(get.claim) == pytest.approx(1, rel=0.03)


def test_the_network_is_a_files_or_lambdas() -> None:
    def network(deployed: Deployed | None = None, **function: object) -> tuple[float, float]:
        found = limits(changed(FREE, function=dict(function)), None, deployed)
        return found.burst_bytes, found.bytes_per_s

    assert network(bytes_per_s=5e6) == (0, 5e6)
    assert network(bytes_per_s=5e6, burst_bytes=7.0, on_lambda=True) == (7, 5e6)
    assert network(on_lambda=True) == (300 * MIB, 625e6 / 8)
    raised = Deployed(memory_mib=10240, network_mbps=2000.0)
    assert network(raised, on_lambda=True) == (300 * MIB, 2000e6 / 8)


def test_a_step_is_a_share_of_a_functions_time() -> None:
    # 20 MB each, by two threads.
    function = {"connection_put_bytes_per_s": 1e6}
    assert limits(changed(FREE, function=function)).function_s == 10
    assert limits(changed(FREE, function=function), demand(lanes=2)).function_s == 5
    slower = {**function, "line_put_bytes_per_s": 5e5}
    assert limits(changed(FREE, function=slower)).function_s == 40
    bucket = {"bytes_per_s": 1e6, "burst_bytes": 5e6}
    assert limits(changed(FREE, function=bucket)).function_s == 15
    assert limits(changed(FREE, function={**bucket, **function})).function_s == 15
    assert limits(changed(FREE, function={**slower, **bucket})).function_s == 40


@pytest.mark.parametrize(
    ("store", "seconds"),
    [
        # Four requests of two threads.
        (Store(put_s=0.5), 1.0),
        (Store(get_s=0.5), 0.0),
        # 4 functions, 80 MB; 16 requests.
        (Store(put_s=0.5, bytes_per_s=1e7), 8.0),
        (Store(put_s=0.5, bytes_per_s=1e9), 1.0),
        (Store(put_per_s=2.0), 8.0),
        (Store(put_per_s=2.0, partitions=2, most_partitions=2), 4.0),
        (Store(put_per_s=2.0, bytes_per_s=1e7, put_s=9.0), 18.0),
        (Store(get_per_s=2.0), 0.0),
    ],
)
def test_a_store_keeps_functions_waiting(store: Store, seconds: float) -> None:
    model = replace(FREE, store=store)
    assert limits(model).function_s == seconds
    if store.bytes_per_s == 1e7 and not store.put_per_s:
        # Two concurrent functions share the store, each with half.
        assert limits(model, concurrency=2).function_s == 4.0


def test_reads_wait_for_reads() -> None:
    model = replace(
        FREE, store=Store(get_s=0.5, get_per_s=1.0), function=FunctionModel(core_s_per_gib=0)
    )
    assert limits(model, demand(GET)).function_s == 16
    assert limits(model, demand(GET), concurrency=1).function_s == 4


def test_steps_are_a_twentieth_of_a_function_within_bounds() -> None:
    found = [usual_step_s(seconds) for seconds in (0, 0.001, 1, 2, 100, 200, 1000)]
    assert found == [0.001, 0.001, 0.05, 0.1, 0.1, 0.1, 0.5]
    assert [short_step_s(0.08, usual) for usual in (0.1, 0.005)] == [0.01, 0.005]
    assert short_step_s(0.0001, 0.1) == 0.001
