"""Fixtures of tests of functions on a host here: a store, and the host."""

from collections.abc import Iterator

import pytest

from serverless_bench.features.loopback.server import serving
from tests.clouds.lambda_hosts import LambdaHost, running_host


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    """The URL of a loopback store."""
    with serving() as server:
        yield server.endpoint_url


@pytest.fixture(scope="module")
def host() -> Iterator[LambdaHost]:
    with running_host() as running:
        yield running
