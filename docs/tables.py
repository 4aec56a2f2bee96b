"""Tables of the documentation: rows in committed CSV files, and the Markdown made from them."""

import csv
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
LINK: Final = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
"""A link to a file or an address, without its heading."""
_NUMBER: Final = re.compile(r"[-+]?[\d.,]+[%x]?( (ms|s|µs|MB/s))?( \([\d.,]+\))?|")
"""A cell of a column that is aligned on the right; any column may have empty cells."""


def read_rows(path: Path) -> list[list[str]]:
    """Return the rows of a file, the heading first."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def write_rows(path: Path, rows: Iterable[Sequence[str]]) -> None:
    """Write the rows of a table, the heading first."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Return a table as Markdown; the first row is its heading."""
    heading, *body = rows
    marks = (
        "---:" if body and all(map(_NUMBER.fullmatch, column)) else "---"
        for column in (zip(*body, strict=True) if body else heading)
    )
    return "".join(map(_line, (heading, list(marks), *body)))


def _line(cells: Sequence[str]) -> str:
    escaped = (cell.replace("|", r"\|") for cell in cells)
    return f"| {' | '.join(escaped)} |\n"
