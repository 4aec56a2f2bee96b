"""docs/faults.md says what became of every cell of the fault matrix."""

from pathlib import Path

import pytest

from docs.make_faults import BEGIN, COLUMNS, END, PAGE, marks, read, replaced, table
from tests.matrix.table import MATRIX


@pytest.fixture
def rows() -> dict[str, list[str]]:
    text = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]
    matrix, _, reasons = text.partition("\n\n")
    assert reasons == "".join(f"- {mark}: {reason}\n" for reason, mark in marks().items())
    lines = [line.strip("| ").split(" | ") for line in matrix.splitlines()]
    return {fault: cells for fault, *cells in lines}


def test_every_fault_and_every_executor_stands_in_the_table(rows: dict[str, list[str]]) -> None:
    assert rows["fault"] == [f"`{column}`" for column in COLUMNS]
    assert list(rows)[2:] == list(MATRIX)
    for fault, cells in MATRIX.items():
        for executor, text in zip(COLUMNS, rows[fault], strict=True):
            cell = cells[executor]
            if isinstance(cell, str):
                assert text == marks()[cell]
            else:
                assert text
                assert "orphans" not in text
                assert "records missing" not in text


def test_results_become_a_table(tmp_path: Path) -> None:
    lines = [
        f'{{"fault": "{fault}", "executor": "{executor}", "outcome": "8 ok", "recovered": 8,'
        f' "requested": 8, "detect_s": 1.25, "orphans": 0}}'
        for fault, cells in MATRIX.items()
        for executor, cell in cells.items()
        if not isinstance(cell, str)
    ]
    text = table(read(lines))
    assert text.count("\n") == len(MATRIX) + 3 + len(marks())
    assert "| 8 ok; known after 1.2 s |" in text
    lines[0] = lines[0].replace('"recovered": 8', '"recovered": 5').replace(": 0}", ": 2}")
    assert "| 8 ok; known after 1.2 s; 3 records missing; 2 orphans |" in table(read(lines))
    assert replaced(f"a\n{BEGIN}old\n{END}b\n", text) == f"a\n{BEGIN}{text}{END}b\n"
