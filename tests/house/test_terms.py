"""No word of ``terms.toml`` that the field's own term replaced is left where users read it.

Nor the path of a page: who installed the wheel has the documentation, but no repository.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands.command import Call
from tests.unit.cli.test_help import LEAVES

ROOT = Path(__file__).parents[2]
TABLE = tomllib.loads(Path(__file__).with_name("terms.toml").read_text())
OLD = {re.compile(row["old"]): row["new"] for row in TABLE["term"]}
OTHERS = re.compile("|".join(row["line"] for row in TABLE["except"]))
PAGES = (
    *("*.md", "docs/*.md", "docs/*.txt", "docs/*.toml", "serverless_bench/features/*/README.md"),
    *("serverless_bench/**/figures.toml", "serverless_bench/features/page/*.toml"),
    *("tests/golden/*.txt", "tests/recorded/*/report.json"),
)
"""Where a reader meets terms: pages, fields of JSON with their definitions, and reports."""

PATH = re.compile(r"[\w/]+/[\w-]+\.md\b")
NAMED = re.compile(r'"([^"\n]+)"\s+in\s+the\s+documentation')
SOURCES = [
    path
    for path in sorted((ROOT / "serverless_bench").rglob("*.py"))
    if "tests" not in path.relative_to(ROOT).parts
]


def texts(source: str) -> Iterator[str]:
    """Yield the strings of a module that are not docstrings."""
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docstrings
        ):
            yield node.value


def wrong(text: str) -> Iterator[str]:
    """Yield the lines that have an old word, each with the term that replaced it."""
    for line in text.splitlines():
        kept = OTHERS.sub("", line)
        yield from (f"{line.strip()}: {new}" for old, new in OLD.items() if old.search(kept))


@pytest.mark.parametrize("pattern", PAGES)
def test_pages_and_fields_have_the_terms_of_the_field(pattern: str) -> None:
    files = sorted(ROOT.glob(pattern))
    assert files
    found = [
        f"{path.relative_to(ROOT)}: {row}" for path in files for row in wrong(path.read_text())
    ]
    assert found == []


def test_help_has_the_terms_of_the_field(call: Call) -> None:
    for command in LEAVES:
        code, text, _ = call(*command.split(), "--help")
        assert (code, [*wrong(text)]) == (0, []), command


def test_no_help_names_a_path_of_the_repository(call: Call) -> None:
    groups = {command.rpartition(" ")[0] for command in LEAVES}
    for command in (*LEAVES, *sorted(groups)):
        code, text, _ = call(*command.split(), "--help")
        assert (code, PATH.findall(text)) == (0, []), command


def test_no_message_names_a_path_of_the_repository() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {text}"
        for path in SOURCES
        for text in texts(path.read_text())
        if PATH.search(text)
    ]
    assert found == []


def test_pages_that_texts_name_exist() -> None:
    pages = (*ROOT.glob("docs/*.md"), *ROOT.glob("serverless_bench/features/*/*.md"))
    lines = [page.read_text().partition("\n")[0] for page in pages]
    titles = {line.removeprefix("# ").partition(":")[0] for line in lines}
    named = {title for path in SOURCES for title in NAMED.findall(path.read_text())}
    assert named
    assert named <= titles
