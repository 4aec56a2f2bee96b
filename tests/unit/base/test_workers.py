"""Distribution of the tests over workers."""

import pytest


def test_tests_of_one_file_stay_on_one_worker(request: pytest.FixtureRequest) -> None:
    # Else each worker starts the servers of every file: xdist reads the group from the id.
    grouped = request.config.getoption("loadgroup", default=False)
    assert request.node.nodeid.endswith("@tests/unit/base/test_workers.py") == grouped
