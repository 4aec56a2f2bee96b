"""docs/faults.csv has the result of every cell of the fault matrix."""

import pytest

from docs.make_faults import COLUMNS, FILE, REASONS, marks, read, rows, table
from docs.tables import read_rows
from tests.matrix.table import MATRIX


@pytest.fixture
def kept() -> dict[str, list[str]]:
    return {fault: cells for fault, *cells in read_rows(FILE)}


def test_every_fault_and_every_executor_is_in_the_table(kept: dict[str, list[str]]) -> None:
    assert kept["fault"] == [f"`{column}`" for column in COLUMNS]
    assert list(kept)[1:] == list(MATRIX)
    for fault, cells in MATRIX.items():
        for executor, text in zip(COLUMNS, kept[fault], strict=True):
            cell = cells[executor]
            if isinstance(cell, str):
                assert text == marks()[cell]
            else:
                assert text
                assert "orphans" not in text
                assert "records missing" not in text


def test_the_table_says_why_a_cell_does_not_apply() -> None:
    assert {reason: mark for mark, reason in read_rows(REASONS)[1:]} == marks(), "make faults"
    assert all(f"\n- {mark}: {reason}\n" in table() for reason, mark in marks().items())


def test_results_become_a_table() -> None:
    lines = [
        f'{{"fault": "{fault}", "executor": "{executor}", "outcome": "8 ok", "recovered": 8,'
        f' "requested": 8, "detect_s": 1.25, "orphans": 0}}'
        for fault, cells in MATRIX.items()
        for executor, cell in cells.items()
        if not isinstance(cell, str)
    ]
    made = list(rows(read(lines)))
    assert len(made) == 1 + len(MATRIX)
    assert "8 ok; known after 1.2 s" in made[1]
    lines[0] = lines[0].replace('"recovered": 8', '"recovered": 5').replace(": 0}", ": 2}")
    (row,) = [row for row in rows(read(lines)) if "orphans" in str(row)]
    assert "8 ok; known after 1.2 s; 3 records missing; 2 orphans" in row
