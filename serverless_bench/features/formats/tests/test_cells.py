"""Foreign text is shown without effects in a spreadsheet."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.features.formats.exporters.csv import for_cell
from tests.tables import each_row
from tests.unit.base.test_escaping import OBEYED


@each_row("text", OBEYED)
def test_text_has_no_effect(text: str) -> None:
    assert for_cell(f"a{text}b").isprintable()


@each_row("text", ["=1+1", "+1", "-1", "@SUM(A1)", "  =1", "\uff1d1", "-"])
def test_a_text_is_no_formula(text: str) -> None:
    assert for_cell(text) == f"'{text}"


@pytest.mark.parametrize("text", ["\t=1", "\r=1"])
def test_prefixes_of_formulas_are_shown(text: str) -> None:
    assert for_cell(text).startswith("\\")


@each_row("value", [-1, -1.5, 0, None, True, "a-b", "1=2", ""])
def test_numbers_and_plain_texts_stay(value: object) -> None:
    assert for_cell(value) == value


@given(st.lists(st.text(), min_size=1, max_size=4))
def test_a_table_has_as_many_cells(cells: list[str]) -> None:
    out = io.StringIO()
    csv.writer(out).writerow(map(for_cell, cells))
    (row,) = csv.reader(io.StringIO(out.getvalue()))
    assert len(row) == len(cells)
    assert not any(cell.lstrip().startswith(("=", "+", "-", "@", "\t", "\r")) for cell in row)
