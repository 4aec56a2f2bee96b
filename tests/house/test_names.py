"""The core checks properties of members of families, and never their names."""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from serverless_bench.base.plugins import Registry
from serverless_bench.clients import CLIENTS
from serverless_bench.executors import EXECUTORS
from serverless_bench.features import PLUGINS
from serverless_bench.job.workload import WORKLOADS
from tests.house.features import TABLE, feature_of
from tests.house.measures import PACKAGE, trees
from tests.house.removed import whole

FAMILIES: Mapping[str, Registry[Any]] = {
    "clients": CLIENTS,
    "executors": EXECUTORS,
    "workloads": WORKLOADS,
}
TABLES = {
    "clients": {"job/target.py"},
    "executors": set[str](),
    "workloads": {
        *("job/workload.py", "cli/main.py", "features/audit/job_check.py"),
        *(f"cli/commands/{name}.py" for name in WORKLOADS),
    },
}
"""Places of names outside of the folder of the family."""
HOMONYMS = {
    "clients": {
        # Distributions and their modules, and an extra.
        "awscrt": 1,
        "boto3": 4,
        "minio": 1,
        "obstore": 3,
        "s3dlio": 1,
        "wire": 2,  # where a client sees progress
    },
    "executors": {
        "dask": 1,  # a distribution
        "lambda": 4,  # the service, as AWS calls it, and the executor that `sbench aws try` tries
        "lithops": 3,  # a distribution, and an importer
        "local": 1,  # the default
        "workers": 6,  # a figure of the report, and a field of Dask's scheduler
    },
    "workloads": {
        "array": 1,  # a field of a load
        "mixed": 2,  # results of other tools
        "noop": 5,  # run by the contract of executors
        "parquet": 1,  # an extra
        "shuffle": 2,  # a filter of Blosc
    },
}
"""Constants that equal a name but mean something else, with their number."""
WORDS = {"list", "read", "write"}
"""Names of workloads that are columns, settings and verbs, too: see the second test."""

PHASES = {"imported.workload != 'write'", "workload == 'read'"}
"""Comparisons with values that the importers themselves made from a phase of another tool."""


def outside(family: str) -> Iterator[tuple[frozenset[str], ast.Module]]:
    """Yield the modules outside of a family and its tables, with the members of their features."""
    for path, tree in trees().items():
        inside = path.relative_to(PACKAGE)
        if inside.parts[0] != family and inside.as_posix() not in TABLES[family] and path != TABLE:
            places = PLUGINS[family].items()
            own = (name for name, place in places if place.split(".")[0] == feature_of(path))
            yield frozenset(own), tree


@whole
@pytest.mark.parametrize("family", FAMILIES)
def test_no_member_is_known_by_its_name(family: str) -> None:
    constants = Counter(
        node.value
        for own, tree in outside(family)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in own
    )
    names = set(FAMILIES[family]) - (WORDS if family == "workloads" else set())
    assert {name: constants[name] for name in sorted(names) if constants[name]} == {
        name: count for name, count in HOMONYMS[family].items() if name in names
    }


@whole
def test_no_workload_is_compared_with_a_name() -> None:
    compared = {
        ast.unparse(node)
        for _, tree in outside("workloads")
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare | ast.Match)
        and "workload" in ast.unparse(node.left if isinstance(node, ast.Compare) else node.subject)
        and any(isinstance(n, ast.Constant) and n.value in WORKLOADS for n in ast.walk(node))
    }
    assert compared == PHASES
