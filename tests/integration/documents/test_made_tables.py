"""Tables of pages are those that the code and the data make today."""

from pathlib import Path

import pytest

from docs.make_commands import made
from docs.make_tables import MADE, PAGES, ROOT, TABLE, with_tables
from serverless_bench.cli.main import command_names
from tests.documents.quoted import PAGES as QUOTED
from tests.house.removed import whole

WITH_TABLES = [page for page in PAGES if TABLE.search(page.read_text("utf-8"))]


@whole
@pytest.mark.parametrize("page", WITH_TABLES, ids=lambda page: str(page.relative_to(ROOT)))
def test_tables_are_as_made(page: Path) -> None:
    text = page.read_text("utf-8")
    assert text == with_tables(text, page.parent), "make tables"


@whole
def test_every_table_is_on_a_page() -> None:
    shown = {
        table["name"] for page in WITH_TABLES for table in TABLE.finditer(page.read_text("utf-8"))
    }
    assert MADE.keys() <= shown


def test_no_page_has_a_placeholder() -> None:
    assert [page for page in QUOTED if "[Table" in page.read_text("utf-8")] == []


def test_every_command_and_flag_is_described() -> None:
    page = made()
    missing = [name for name in command_names() if f"\n### sbench {name}" not in page]
    assert missing == []
    assert page.count("\n| `--number` |") > 5


def test_a_table_of_a_removed_feature_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "there.csv").write_text("a,b\n1,2\n")
    text = "<!-- table {0}: {0}.csv -->\nold\n<!-- end -->\n"
    made = with_tables(text.format("there") + text.format("gone"), tmp_path)
    table = "| a | b |\n| ---: | ---: |\n| 1 | 2 |\n"
    assert made == f"<!-- table there: there.csv -->\n\n{table}\n<!-- end -->\n\n"
