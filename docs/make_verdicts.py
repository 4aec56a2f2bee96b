"""Make docs/verdicts.csv, and the two tables of docs/verdicts.md, from rigs that are run now.

make verdicts
python docs/make_verdicts.py parquet replay    runs these commands or verdicts, and keeps other rows
"""

import csv
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the rigs are a part of the tests

from docs.tables import write_rows  # noqa: E402
from tests.combinations.covering import Case  # noqa: E402
from tests.verdicts import namespace  # noqa: E402
from tests.verdicts.bench import BOTTLENECK, Outcome, bench_in  # noqa: E402
from tests.verdicts.cells import CAUSES, FACTORS, cells, possible_here  # noqa: E402
from tests.verdicts.judging import Result  # noqa: E402
from tests.verdicts.series import SERIES  # noqa: E402
from tests.verdicts.words import ANSWERS  # noqa: E402

ROWS: Final = ROOT / "docs" / "verdicts.csv"
TABLES: Final = (ROWS.with_name("verdict-causes.csv"), ROWS.with_name("verdict-series.csv"))

Rows = Sequence[Sequence[str]]


def main() -> None:
    """Run every cell, or those of some commands, and write the files."""
    outcomes = list(run(sys.argv[1:]))
    heading = ("verdict", *FACTORS, "true", "most specific", "said", "result")
    write_rows(ROWS, [heading, *map(row, outcomes)])
    for path, rows in zip(TABLES, tables(outcomes), strict=True):
        write_rows(path, rows)


def run(commands: Sequence[str] = ()) -> Iterator[Outcome]:
    """Run every cell that this machine can run, and print its result.

    With ``commands``, rows of the file stand for the cells of other commands.
    """
    reason = namespace.missing()
    if reason:
        sys.stdout.write(f"without the rigs that need a namespace: {reason}\n")
    with tempfile.TemporaryDirectory() as directory, bench_in(Path(directory)) as bench:
        cases = possible_here(cells(), with_namespace=reason is None)
        checks = [(BOTTLENECK, case, partial(bench.check, case)) for case in cases]
        checks += [(cell.command, cell.case, partial(cell.check, bench)) for cell in SERIES]
        for verdict, case, check in checks:
            if commands and not {verdict, case["command"]} & {*commands}:
                yield saved(verdict, case)
                continue
            outcome = check()
            sys.stdout.write(f"{outcome.name}: {outcome.words}: {outcome.result}\n")
            sys.stdout.flush()
            yield outcome


def saved(verdict: str, case: Case) -> Outcome:
    """Return the outcome of a cell from the file."""
    with ROWS.open(encoding="utf-8", newline="") as file:
        wanted = (verdict, *(case[factor] for factor in FACTORS))
        line = next(
            line
            for line in csv.DictReader(file)
            if (line["verdict"], *(line[factor] for factor in FACTORS)) == wanted
        )
    result, parts = Result(line["result"]), line["said"].split(", ")
    if verdict == BOTTLENECK:
        counts = {name: int(number) for name, number in (part.split() for part in parts)}
        return Outcome(case, CAUSES[case["cause"]].truths, counts, result)
    truth = next(cell.truth for cell in SERIES if (cell.command, cell.case) == (verdict, case))
    return Outcome(case, [truth], {parts[0]: 1}, result, verdict, ", ".join(parts[1:]))


def row(outcome: Outcome) -> tuple[str, ...]:
    """Return the line of the file for one cell."""
    answers = (
        " and ".join(" or ".join(sorted(answer)) or "nothing" for answer in part)
        for part in zip(*((truth.true, truth.specific) for truth in outcome.truths), strict=True)
    )
    case = (outcome.case[factor] for factor in FACTORS)
    return (outcome.verdict, *case, *answers, outcome.words, outcome.result)


def tables(outcomes: Sequence[Outcome]) -> tuple[Rows, Rows]:
    """Return a matrix of single runs, and one of series of runs."""
    single = [outcome for outcome in outcomes if outcome.verdict == BOTTLENECK]
    series = [outcome for outcome in outcomes if outcome.verdict != BOTTLENECK]
    return matrix(single), matrix(series)


def matrix(outcomes: Sequence[Outcome]) -> Rows:
    """Return verdicts by cause, and cells by result, as rows of a table.

    A verdict counts once for each function; for a series of runs, once.
    """
    words = sorted({word for outcome in outcomes for word in outcome.said}, key=_place)
    rows = [("true", *(f"`{word}`" for word in words), *map(str, Result))]
    totals = Counter[str]()
    for name, group in groupby(sorted(outcomes, key=_order), key=_row_name):
        mine = list(group)
        counts = Counter[str](outcome.result for outcome in mine)
        for outcome in mine:
            counts.update(outcome.said)
        totals += counts
        rows.append((name, *(str(counts[column] or "") for column in (*words, *Result))))
    rows.append(("all", *(str(totals[column]) for column in (*words, *Result))))
    return rows


def _order(outcome: Outcome) -> int:
    """Return the place of a cell's cause; those of series are already in order."""
    causes = [*CAUSES]
    return causes.index(outcome.case["cause"]) if outcome.case["cause"] in CAUSES else len(causes)


def _row_name(outcome: Outcome) -> str:
    cause = outcome.case["cause"]
    return cause if outcome.verdict == BOTTLENECK else f"{outcome.verdict}: {cause}"


def _place(word: str) -> tuple[int, str]:
    """Return the place of a word among the columns."""
    words = [*ANSWERS]
    return (words.index(word) if word in words else len(words)), word


if __name__ == "__main__":
    main()
