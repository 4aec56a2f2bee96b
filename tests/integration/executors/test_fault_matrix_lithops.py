"""The fault matrix: ``--executor lithops``; see docs/faults.md."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.matrix.suite import (
    Results,
    a_hundred_kills,
    a_kill_in_each_phase,
    judge,
    suite,
)
from tests.matrix.table import cells
from tests.stores.servers import Server

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self").exists(), reason="functions need Linux"),
    pytest.mark.timeout(3600),
    pytest.mark.on_change("launching functions", "serverless_bench/features/lithops"),
]


@pytest.fixture(scope="module")
def results(embedded: Server, request: pytest.FixtureRequest) -> Iterator[Results]:
    with suite("lithops", embedded, request) as found:
        yield found


@pytest.mark.full
@pytest.mark.parametrize("fault", cells("lithops"))
def test_a_cell(results: Results, fault: str) -> None:
    judge(results, fault)


@pytest.mark.parametrize(
    "phases",
    [
        pytest.param(("launching", "running"), id="own code"),
        pytest.param(("delivered", "collecting"), id="that of lambda", marks=pytest.mark.full),
    ],
)
def test_a_driver_that_is_killed_in_each_phase(
    embedded: Server, tmp_path: Path, phases: tuple[str, ...]
) -> None:
    """Lithops' own process has to end with its driver; records are collected as for `lambda`."""
    a_kill_in_each_phase("lithops", embedded, tmp_path, phases)


@pytest.mark.full
def test_a_driver_that_is_killed_a_hundred_times(embedded: Server, tmp_path: Path) -> None:
    a_hundred_kills("lithops", embedded, tmp_path)
