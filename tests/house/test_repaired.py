"""docs/findings.csv names the tests that show the repairs, or says why none does."""

import ast
import csv
import re
from collections.abc import Iterator

from tests.house.measures import REPOSITORY
from tests.house.removed import whole


def rows() -> Iterator[dict[str, str]]:
    with (REPOSITORY / "docs" / "findings.csv").open(newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file)


@whole
def test_every_named_test_exists() -> None:
    missing = []
    for row in rows():
        if re.match("none: .", row["tests"]):
            continue
        assert row["tests"], row
        for node in row["tests"].split():
            file, _, name = node.partition("::")
            path = REPOSITORY / file
            tree = ast.parse(path.read_text("utf-8")) if path.is_file() else ast.Module([], [])
            names = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
            if name not in names:
                missing.append((row["finding"], node))
    assert missing == []


def test_a_finding_has_one_row() -> None:
    names = [row["finding"] for row in rows()]
    assert sorted(set(names)) == sorted(names)
