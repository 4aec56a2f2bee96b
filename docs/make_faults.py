"""Make docs/faults.csv, the table of docs/faults.md, from a new run of the fault matrix.

make faults

With FAULT_MATRIX=FILE results are kept, and those of earlier runs count, too: then
``python docs/make_faults.py -k 429`` runs a few cells again.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the matrix is a part of the tests

from docs.tables import markdown, read_rows, write_rows  # noqa: E402
from serverless_bench.executors import EXECUTORS  # noqa: E402

FILE = ROOT / "docs" / "faults.csv"
REASONS = ROOT / "docs" / "faults-not-applicable.csv"
RESULTS = "FAULT_MATRIX"
CELLS = (sys.executable, "-m", "pytest", "-q", "-m", "", "-k", "test_a_cell")
COLUMNS = ("local", "lithops", "lambda", "workers", "dask")

Cells = Mapping[tuple[str, str], Mapping[str, Any]]


def main() -> None:
    """Run the matrix, and write its table."""
    with tempfile.TemporaryDirectory() as scratch:
        results = Path(os.environ.get(RESULTS, f"{scratch}/results.jsonl")).absolute()
        tests = [f"tests/integration/executors/test_fault_matrix_{column}.py" for column in COLUMNS]
        subprocess.run(
            [*CELLS, *tests, *sys.argv[1:]],
            cwd=ROOT,
            env={**os.environ, RESULTS: str(results)},
            check=True,
        )
        write_rows(FILE, rows(read(results.read_text(encoding="utf-8").splitlines())))
        write_rows(REASONS, [("mark", "reason"), *((m, why) for why, m in marks().items())])


def read(lines: Sequence[str]) -> Cells:
    """Return results by fault and executor; the last one of each counts."""
    results = map(json.loads, lines)
    return {(result["fault"], result["executor"]): result for result in results}


def table() -> str:
    """Return the matrix of today's executors as Markdown, and why cells do not apply."""
    kept = [at for at, column in enumerate(COLUMNS, 1) if column in EXECUTORS]
    cells = [[row[at] for at in (0, *kept)] for row in read_rows(FILE)]
    named = {text for row in cells for text in row}
    reasons = (f"- {mark}: {reason}\n" for mark, reason in read_rows(REASONS) if mark in named)
    return f"{markdown(cells)}\n{''.join(reasons)}"


def marks() -> Mapping[str, str]:
    """Return the mark of each reason why a cell does not apply."""
    from tests.matrix.table import MATRIX

    reasons = (row[column] for row in MATRIX.values() for column in COLUMNS)
    texts = dict.fromkeys(reason for reason in reasons if isinstance(reason, str))
    return {reason: f"n/a ({number})" for number, reason in enumerate(texts, 1)}


def rows(cells: Cells) -> Iterator[tuple[str, ...]]:
    """Yield the heading, and a row for every fault."""
    from tests.matrix.table import MATRIX

    yield ("fault", *(f"`{column}`" for column in COLUMNS))
    for fault, row in MATRIX.items():
        reasons = ((column, row[column]) for column in COLUMNS)
        yield (
            fault,
            *(
                marks()[reason] if isinstance(reason, str) else cell(cells[fault, column])
                for column, reason in reasons
            ),
        )


def cell(result: Mapping[str, Any]) -> str:
    """Return the text of one cell, which names expected properties only if they are missing."""
    after_s, missing = result["detect_s"], result["requested"] - result["recovered"]
    known = [] if after_s is None else [f"known after {after_s:.1f} s"]
    wrong = {"records missing": missing, "orphans": result["orphans"]}
    return "; ".join(
        [result["outcome"], *known, *(f"{count} {name}" for name, count in wrong.items() if count)]
    )


if __name__ == "__main__":
    main()
