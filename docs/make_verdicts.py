"""Make docs/verdicts.csv, and the matrix of docs/verdicts.md, from rigs that are run now.

make verdicts
"""

import csv
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the rigs are a part of the tests

from tests.verdicts import namespace  # noqa: E402
from tests.verdicts.bench import Outcome, bench_in  # noqa: E402
from tests.verdicts.cells import CAUSES, FACTORS, cells, name_of, possible_here  # noqa: E402
from tests.verdicts.judging import Result  # noqa: E402
from tests.verdicts.words import ANSWERS  # noqa: E402

PAGE: Final = ROOT / "docs" / "verdicts.md"
ROWS: Final = ROOT / "docs" / "verdicts.csv"
BEGIN, END = "<!-- begin of the matrix: make verdicts -->\n", "<!-- end of the matrix -->\n"


def main() -> None:
    """Run every cell, and write the file and the matrix."""
    outcomes = list(run())
    with ROWS.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow((*FACTORS, "true", "most specific", "said", "result"))
        lines.writerows(row(outcome) for outcome in outcomes)
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    text = head + BEGIN + matrix(outcomes) + END + rest.partition(END)[2]
    PAGE.write_text(text, encoding="utf-8")


def run() -> Iterator[Outcome]:
    """Run every cell that this machine can run, and say how it ended."""
    reason = namespace.missing()
    if reason:
        sys.stdout.write(f"without the rigs that need a namespace: {reason}\n")
    with tempfile.TemporaryDirectory() as directory, bench_in(Path(directory)) as bench:
        for case in possible_here(cells(), with_namespace=reason is None):
            outcome = bench.check(case)
            sys.stdout.write(f"{name_of(case)}: {outcome.words}: {outcome.result}\n")
            sys.stdout.flush()
            yield outcome


def row(outcome: Outcome) -> tuple[str, ...]:
    """Return the line of the file for one cell."""
    truths = CAUSES[outcome.case["cause"]].truths
    true = " and ".join(" or ".join(sorted(truth.true)) for truth in truths)
    specific = " and ".join(" or ".join(sorted(truth.specific)) for truth in truths)
    case = (outcome.case[factor] for factor in FACTORS)
    return (*case, true, specific, outcome.words, outcome.result)


def matrix(outcomes: Sequence[Outcome]) -> str:
    """Return functions by cause and word, and cells by result, as Markdown."""
    words = [word for word in ANSWERS if any(word in outcome.said for outcome in outcomes)]
    rows = [
        ("true", *(f"`{word}`" for word in words), *Result),
        ("---",) * (1 + len(words) + len(Result)),
    ]
    totals = Counter[str]()
    for cause in CAUSES:
        mine = [outcome for outcome in outcomes if outcome.case["cause"] == cause]
        counts = Counter[str](outcome.result for outcome in mine)
        for outcome in mine:
            counts.update(outcome.said)
        totals += counts
        rows.append((cause, *(str(counts[name] or "") for name in (*words, *Result))))
    rows.append(("all", *(str(totals[name]) for name in (*words, *Result))))
    return "".join(f"| {' | '.join(cells_of_row)} |\n" for cells_of_row in rows)


if __name__ == "__main__":
    main()
