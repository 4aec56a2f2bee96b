"""The fault matrix: ``--executor dask``; see docs/faults.md."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.matrix.suite import Results, a_hundred_kills, judge, suite
from tests.matrix.table import cells
from tests.stores.servers import Server

pytestmark = pytest.mark.skipif(
    not Path("/proc/self").exists(), reason="processes are found by /proc"
)


@pytest.fixture(scope="module")
def results(embedded: Server, request: pytest.FixtureRequest) -> Iterator[Results]:
    with suite("dask", embedded, request) as found:
        yield found


IN_CI = (
    "function exits",
    "Dask worker killed with -9",
    "Dask worker hangs",
    "hosts' clocks 3 s ahead and behind",
    "Dask scheduler killed with -9",
)
"""Store and driver fail as for `lambda`, which is in CI: it is the same code."""


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, marks=() if fault in IN_CI else pytest.mark.full)
        for fault in cells("dask")
    ],
)
def test_a_cell(results: Results, fault: str) -> None:
    judge(results, fault)


@pytest.mark.full
def test_a_driver_that_is_killed_a_hundred_times(embedded: Server, tmp_path: Path) -> None:
    a_hundred_kills("dask", embedded, tmp_path)
