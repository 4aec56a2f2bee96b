"""No word of ``terms.toml`` that the field's own term replaced is left where users read it."""

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
