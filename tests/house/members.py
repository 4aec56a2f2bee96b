"""Members of families, and features, that tests use as examples."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import pytest

from serverless_bench.base.errors import PluginError
from serverless_bench.base.plugins import Registry
from serverless_bench.clients import CLIENTS
from serverless_bench.executors import EXECUTORS
from serverless_bench.job.workload import WORKLOADS
from tests.house.features import features
from tests.house.removed import SCRATCH

_FAMILIES: Final[Mapping[str, Registry[Any] | set[str]]] = {
    "client": CLIENTS,
    "executor": EXECUTORS,
    "feature": {*features()},
    "workload": WORKLOADS,
}
EVERY_CLIENT: Final = tuple(
    f"client {name}"
    for name in ("awscrt", "boto3", "minio", "obstore", "s3dlio", "s3torchconnector", "wire")
)
EVERY_WORKLOAD: Final = tuple(
    f"workload {name}"
    for name in (
        *("array", "parquet", "conditional", "custom", "list", "mixed", "noop", "read", "replay"),
        *("shuffle", "write"),
    )
)
RIGS: Final = tuple(
    f"feature {name}" for name in ("lambda_host", "localstack", "loopback", "simulation")
)
"""For tests of pages and tables that name all members, such as the clients."""


def uses(*members: str) -> pytest.MarkDecorator:
    """Skip a test if a member that it uses as an example, as ``workload read``, was removed.

    Raises
    ------
    LookupError
        If it is missing from the repository itself: the test would be skipped for ever.
    """
    absent = [member for member in members if not _is_here(*member.split())]
    if absent and SCRATCH not in os.environ:
        raise LookupError(f"there is no {absent[0]}")
    return pytest.mark.skipif(bool(absent), reason=f"without {', '.join(absent)}")


def _is_here(family: str, name: str) -> bool:
    return name in _FAMILIES[family]


@contextmanager
def skipped_without() -> Iterator[None]:
    """Skip a test if its data name a member that was removed."""
    try:
        yield
    except PluginError as exc:
        if SCRATCH not in os.environ:
            raise
        pytest.skip(str(exc), allow_module_level=True)
