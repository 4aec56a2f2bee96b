"""The fault matrix: ``--executor lambda``; see docs/faults.md."""

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
        "serverless_bench/features/aws_lambda",
        "serverless_bench/features/lambda_host",
    ),
]


@pytest.fixture(scope="module")
def results(embedded: Server, request: pytest.FixtureRequest) -> Iterator[Results]:
    with suite("lambda", embedded, request) as found:
        yield found


NOT_IN_CI = (
    "connection cut after accept",
    "credentials expire for ever",
    "function is OOM-killed",
    "record put fails for a while",
    "record put fails for ever",
)
"""Most of these wait half a minute for a missing function; other cells in CI use the same code."""


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, marks=pytest.mark.full if fault in NOT_IN_CI else ())
        for fault in cells("lambda")
    ],
)
def test_a_cell(results: Results, fault: str) -> None:
    judge(results, fault)


@pytest.mark.full
def test_a_driver_that_is_killed_a_hundred_times(embedded: Server, tmp_path: Path) -> None:
    a_hundred_kills("lambda", embedded, tmp_path)
