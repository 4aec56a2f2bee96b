"""The fault matrix: ``--executor workers``; see docs/faults.md."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.matrix.suite import Results, a_hundred_kills, judge, suite
from tests.matrix.table import cells
from tests.stores.servers import Server

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="they are killed by group")


@pytest.fixture(scope="module")
def results(embedded: Server, request: pytest.FixtureRequest) -> Iterator[Results]:
    with suite("workers", embedded, request) as found:
        yield found


IN_CI = ("function exits", "driver interrupted, cleaned up at once", "driver's disk full")
"""Store and driver fail as for `lambda`, which is in CI: it is the same code."""


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, marks=() if fault in IN_CI else pytest.mark.full)
        for fault in cells("workers")
    ],
)
def test_a_cell(results: Results, fault: str) -> None:
    judge(results, fault)


@pytest.mark.full
def test_a_driver_that_is_killed_a_hundred_times(embedded: Server, tmp_path: Path) -> None:
    a_hundred_kills("workers", embedded, tmp_path)
