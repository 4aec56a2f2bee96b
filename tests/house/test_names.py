"""The core asks an executor what it is, and never for its name."""

import ast
from collections import Counter

from serverless_bench.executors import EXECUTORS
from tests.house.measures import PACKAGE

HOMONYMS = {
    "dask": 1,  # a distribution
    "lambda": 3,  # the service, as AWS calls it
    "lithops": 4,  # a distribution, and an importer
    "local": 1,  # the default
    "workers": 2,  # a figure of the report
}
"""Constants that equal the name of an executor and mean something else: how many there are."""


def test_no_executor_is_known_by_its_name() -> None:
    constants = Counter(
        node.value
        for path in PACKAGE.rglob("*.py")
        if not path.is_relative_to(PACKAGE / "executors")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    assert {name: constants[name] for name in EXECUTORS if constants[name]} == {
        name: count for name, count in HOMONYMS.items() if name in EXECUTORS
    }
