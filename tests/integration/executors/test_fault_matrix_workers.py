"""The fault matrix: ``--executor workers``; see docs/faults.md."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.matrix.suite import Results, a_hundred_kills, judge, suite
from tests.matrix.table import cells
from tests.stores.servers import Server

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self").exists(), reason="they are killed by group"),
    pytest.mark.timeout(3600),
    pytest.mark.on_change("launching functions", "serverless_bench/features/workers"),
]


@pytest.fixture(scope="module")
def results(embedded: Server, request: pytest.FixtureRequest) -> Iterator[Results]:
    with suite("workers", embedded, request) as found:
        yield found


OWN_CODE = ("driver interrupted, cleaned up at once",)
"""Events are withdrawn by code of this executor. The other cells only run code that `lambda` runs,
too; ``test_workers.py`` kills workers.
"""


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, marks=() if fault in OWN_CODE else pytest.mark.full)
        for fault in cells("workers")
    ],
)
def test_a_cell(results: Results, fault: str) -> None:
    judge(results, fault)


@pytest.mark.full
def test_a_driver_that_is_killed_a_hundred_times(embedded: Server, tmp_path: Path) -> None:
    a_hundred_kills("workers", embedded, tmp_path)
