"""The fault matrix: ``--executor local``; see docs/faults.md."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.matrix.suite import Results, a_hundred_kills, judge, suite
from tests.matrix.table import cells
from tests.stores.servers import Server

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self").exists(), reason="functions need Linux"),
    pytest.mark.timeout(3600),
    pytest.mark.on_change(
        "launching functions",
        "serverless_bench/clients",
        "serverless_bench/rundir",
        "serverless_bench/worker",
    ),
]


@pytest.fixture(scope="module")
def results(embedded: Server, request: pytest.FixtureRequest) -> Iterator[Results]:
    with suite("local", embedded, request) as found:
        yield found


@pytest.mark.parametrize("fault", cells("local"))
def test_a_cell(results: Results, fault: str) -> None:
    judge(results, fault)


@pytest.mark.full
def test_a_driver_that_is_killed_a_hundred_times(embedded: Server, tmp_path: Path) -> None:
    a_hundred_kills("local", embedded, tmp_path)
