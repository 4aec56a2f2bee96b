"""The core checks properties of members of families, and never their names."""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from serverless_bench.base.plugins import Registry
from serverless_bench.clients import CLIENTS
from serverless_bench.executors import EXECUTORS
from serverless_bench.job.workload import WORKLOADS
from tests.house.measures import PACKAGE, trees

FAMILIES: Mapping[str, Registry[Any]] = {
    "clients": CLIENTS,
    "executors": EXECUTORS,
    "workloads": WORKLOADS,
}
TABLES = {
    "clients": {"job/target.py"},
    "executors": set[str](),
    "workloads": {
        *("job/workload.py", "cli/main.py"),
        *(f"cli/commands/{name}.py" for name in WORKLOADS),
    },
}
"""Places of names outside of the folder of the family."""
HOMONYMS = {
    "clients": {
        # Distributions.
        "awscrt": 1,
        "boto3": 1,
        "minio": 1,
        "obstore": 1,
        "s3dlio": 1,
    },
    "executors": {
        "dask": 1,  # a distribution
        "lithops": 1,  # a distribution
        "local": 1,  # the default
        "workers": 2,  # a figure of the report
    },
    "workloads": {
        "array": 1,  # a field of a load
        "columns": 3,  # a field of a load, and of tables and legends
    },
}
"""Constants that equal a name but mean something else, with their number."""
WORDS = {"function", "read", "write"}
"""Names of workloads that are columns, settings and verbs, too: see the second test."""


def outside(family: str) -> Iterator[ast.Module]:
    """Yield the modules outside of a family and its tables."""
    for path, tree in trees().items():
        inside = path.relative_to(PACKAGE)
        of_the_family = inside.parts[0] in {family, "features"}
        if not of_the_family and inside.as_posix() not in TABLES[family]:
            yield tree


@pytest.mark.parametrize("family", FAMILIES)
def test_no_member_is_known_by_its_name(family: str) -> None:
    constants = Counter(
        node.value
        for tree in outside(family)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    names = set(FAMILIES[family]) - (WORDS if family == "workloads" else set())
    assert {name: constants[name] for name in sorted(names) if constants[name]} == {
        name: count for name, count in HOMONYMS[family].items() if name in names
    }


def test_no_workload_is_compared_with_a_name() -> None:
    compared = {
        ast.unparse(node)
        for tree in outside("workloads")
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare | ast.Match)
        and "workload" in ast.unparse(node.left if isinstance(node, ast.Compare) else node.subject)
        and any(isinstance(n, ast.Constant) and n.value in WORKLOADS for n in ast.walk(node))
    }
    assert compared == set()
