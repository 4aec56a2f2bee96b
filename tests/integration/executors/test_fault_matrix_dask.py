"""The fault matrix: ``--executor dask``; see docs/faults.md."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.matrix.suite import Results, a_hundred_kills, judge, suite
from tests.matrix.table import cells
from tests.stores.servers import Server

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self").exists(), reason="processes are found by /proc"),
    pytest.mark.timeout(3600),
    pytest.mark.on_change("launching functions", "serverless_bench/features/dask"),
]


@pytest.fixture(scope="module")
def results(embedded: Server, request: pytest.FixtureRequest) -> Iterator[Results]:
    with suite("dask", embedded, request) as found:
        yield found


OWN_CODE = ("Dask worker killed with -9", "Dask worker hangs", "Dask scheduler killed with -9")
"""The other cells only run code that `lambda` runs, too. ``tests/contract/test_executors.py`` has
functions that exit, ``tests/unit/metrics/test_clock_offsets.py`` clocks that are off.
"""


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, marks=() if fault in OWN_CODE else pytest.mark.full)
        for fault in cells("dask")
    ],
)
def test_a_cell(results: Results, fault: str) -> None:
    judge(results, fault)


@pytest.mark.full
def test_a_driver_that_is_killed_a_hundred_times(embedded: Server, tmp_path: Path) -> None:
    a_hundred_kills("dask", embedded, tmp_path)
