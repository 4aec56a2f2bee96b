"""Verdicts agree with the known truth of rigs, in some of the cells of docs/verdicts.md."""

from collections.abc import Callable, Iterator, Sequence
from csv import DictReader
from typing import Final

import pytest

from docs.make_verdicts import ROWS, matrix, row, saved, tables
from serverless_bench.features.bottleneck.causes import CAUSES as NAMES
from tests.combinations.covering import Case
from tests.twice import two_of_three
from tests.verdicts import namespace
from tests.verdicts.bench import BOTTLENECK, Bench, Outcome, bench_in
from tests.verdicts.cells import CAUSES, FACTORS, IN_CI, SHUFFLE, cells, name_of
from tests.verdicts.judging import Result, Truth, judge
from tests.verdicts.series import HEDGING, SERIES, SeriesCell
from tests.verdicts.words import (
    A_FIFTH,
    ALL,
    ANOTHER,
    ANSWERS,
    ELSEWHERE,
    FUNCTION,
    LATENCY,
    MADE_WORSE,
    NO_DIFFERENCE,
    NO_LEVEL,
    NOT_KNOWN,
    OWN_CODE,
    difference_answer,
    limit_answer,
)

CELLS: Final = cells()
MOST_NOT_KNOWN: Final = 1 / 4
LEAST_SPECIFIC: Final = 1 / 2


def check_promise(results: Sequence[Result]) -> None:
    assert Result.CONTRADICTS not in results
    assert results.count(Result.NOT_KNOWN) <= MOST_NOT_KNOWN * len(results), results
    assert results.count(Result.SPECIFIC) >= LEAST_SPECIFIC * len(results), results


QUICK: Final = {
    ("schedule", "local", "64KiB", "read"),
    ("limit per connection", "inline", "4MiB", "read"),
    ("late answers", "inline", "1MiB", "read"),
    ("own function sleeps", "local", "64KiB", "write"),
    ("slow mapper", "local", "64KiB", SHUFFLE),
}
"""Cells of ``make test``: one for each word that a busy machine does not change."""
QUICK_SERIES: Final = {("limit", NO_LEVEL), (HEDGING, MADE_WORSE)}
"""The same for other verdicts. `ab`, `compare` and `history check` make a dozen runs: in
``make test`` they judge given figures (unit tests of ``history``, ``test_python.py``).
"""


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with bench_in(tmp_path_factory.mktemp("verdicts")) as made:
        yield made


Agrees = Callable[[str, Case, Callable[[Bench], Outcome]], None]


@pytest.fixture
def agrees(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Agrees:
    """Check that a verdict is true, and that it is known where that of docs/verdicts.csv is.

    Other programs may take the CPUs from two of four functions for a second. The truth of the
    cell is then another one, but hardly twice. `make verdicts` runs each cell only once.
    """

    def agree(verdict: str, case: Case, run: Callable[[Bench], Outcome]) -> None:
        published = saved(verdict, case).result

        def check() -> None:
            # Runs of an earlier try are not judged again.
            bench.directory = tmp_path_factory.mktemp("try")
            outcome = run(bench)
            text = f"{outcome.name}: {outcome.words}"
            assert outcome.result is not Result.CONTRADICTS, text
            assert published is Result.NOT_KNOWN or outcome.result is not Result.NOT_KNOWN, text

        two_of_three(check)

    return agree


@pytest.mark.timing
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case,
            id=name_of(case),
            marks=() if tuple(case[factor] for factor in FACTORS) in QUICK else pytest.mark.full,
        )
        for case in CELLS[:IN_CI]
    ],
)
def test_a_report_agrees_with_the_truth(agrees: Agrees, case: Case) -> None:
    if CAUSES[case["cause"]].namespace and (reason := namespace.missing()):
        pytest.skip(f"the cell needs a namespace: {reason}")
    agrees(BOTTLENECK, case, lambda bench: bench.check(case))


@pytest.mark.timing
@pytest.mark.on_change(
    "serverless_bench/features/hedging",
    "serverless_bench/features/limit",
    "serverless_bench/features/loopback",
    "serverless_bench/metrics",
    "serverless_bench/worker",
    "tests/verdicts",
)
@pytest.mark.parametrize(
    "cell",
    [
        pytest.param(
            cell,
            id=f"{cell.command}, {cell.rig}",
            marks=() if (cell.command, *cell.truth.true) in QUICK_SERIES else pytest.mark.full,
        )
        for cell in SERIES
        if cell.in_ci or cell.command == HEDGING
    ],
)
def test_a_verdict_on_runs_agrees_with_the_truth(agrees: Agrees, cell: SeriesCell) -> None:
    agrees(cell.command, cell.case, cell.check)


def test_the_table_has_every_cell_and_keeps_its_promises() -> None:
    with ROWS.open(encoding="utf-8", newline="") as file:
        lines = list(DictReader(file))
    rows = [(line["verdict"], *(line[name] for name in FACTORS)) for line in lines]
    named = [(BOTTLENECK, case) for case in CELLS]
    named += [(cell.command, cell.case) for cell in SERIES]
    assert rows == [(verdict, *(case[factor] for factor in FACTORS)) for verdict, case in named], (
        "make verdicts"
    )
    check_promise([Result(line["result"]) for line in lines])


def test_cells_hold_every_cause_with_each_of_its_values() -> None:
    pairs = {(case["cause"], value) for case in CELLS for value in case.values()}
    for name, cause in CAUSES.items():
        for value in (*cause.executors, *cause.sizes, *cause.commands, *cause.others):
            assert (name, value) in pairs
    assert {case["cause"] for case in CELLS[:IN_CI]} == set(CAUSES)
    assert {case["executor"] for case in CELLS[:IN_CI]} == set(FACTORS["executor"])


def test_every_word_of_a_report_has_an_answer() -> None:
    assert set(ANSWERS) == set(NAMES)


LATE: Final = Truth(frozenset({LATENCY}), frozenset({LATENCY}))
SLEEPS: Final = Truth(frozenset({OWN_CODE}), frozenset({OWN_CODE}))
RIGHT, WIDE, WRONG = frozenset({LATENCY}), frozenset({LATENCY, ALL}), frozenset({FUNCTION})


@pytest.mark.parametrize(
    ("fields", "result"),
    [
        ([RIGHT] * 4, Result.SPECIFIC),
        ([RIGHT, RIGHT, WIDE, WIDE], Result.TRUE),
        ([WIDE, WIDE, WIDE, NOT_KNOWN], Result.TRUE),
        ([WIDE, WIDE, NOT_KNOWN, NOT_KNOWN], Result.NOT_KNOWN),
        ([], Result.NOT_KNOWN),
        ([RIGHT, RIGHT, WRONG, WRONG], Result.CONTRADICTS),
        ([RIGHT, RIGHT, RIGHT, WRONG], Result.SPECIFIC),
    ],
)
def test_answers_are_compared_with_the_truth(fields: list[frozenset[str]], result: Result) -> None:
    assert judge([LATE], fields) is result


@pytest.mark.parametrize(
    ("fields", "result"), [(NOT_KNOWN, Result.SPECIFIC), (RIGHT, Result.CONTRADICTS)]
)
def test_undecidable_runs_get_no_answer(fields: frozenset[str], result: Result) -> None:
    assert judge([Truth(frozenset(), frozenset())], [fields]) is result


@pytest.mark.parametrize(
    ("ended", "low", "high", "by_load", "answer"),
    [
        ("precision", 190, 195, False, {"limit at 200/s"}),
        ("budget", 104, 182, False, {"limit at 100/s", "limit at 200/s"}),
        ("precision", 100, 104, True, {"limit at 100/s of the load"}),
        ("precision", 130, 140, False, {ELSEWHERE}),
        ("highest", 400, None, False, {"limit at 400/s", "limit at 800/s"}),
        ("none", None, 30, False, {NO_LEVEL}),
        ("undecided", None, 30, False, NOT_KNOWN),
        ("lowest", None, 100, False, {NO_LEVEL}),
    ],
)
def test_an_interval_leaves_the_limits_open_that_it_has_in_it(
    ended: str, low: int | None, high: int | None, by_load: object, answer: set[str]
) -> None:
    report = {"ended": ended, "low": low, "high": high, "load_limited": by_load}
    assert limit_answer(report) == answer


@pytest.mark.parametrize(
    ("verdict", "interval", "answer"),
    [
        ("same", (0.98, 1.02), {NO_DIFFERENCE}),
        ("slower", (0.79, 0.81), {A_FIFTH}),
        ("regressed", (0.6, 0.7), {ANOTHER}),
        ("slower", (0.86, 0.9), {ANOTHER}),
        ("faster", (0.79, 0.81), {ANOTHER}),
        ("undecided", (0.5, 2.0), NOT_KNOWN),
        ("not enough runs", None, NOT_KNOWN),
    ],
)
def test_a_difference_has_its_known_size(
    verdict: str, interval: tuple[float, float] | None, answer: set[str]
) -> None:
    assert difference_answer(verdict, interval) == answer


def test_halves_are_given_the_answers_that_fit_them() -> None:
    own = frozenset({OWN_CODE})
    assert judge([LATE, SLEEPS], [own, own, RIGHT, RIGHT]) is Result.SPECIFIC
    assert judge([LATE, SLEEPS], [RIGHT] * 4) is Result.CONTRADICTS


def test_the_matrix_counts_functions_and_cells() -> None:
    case = next(case for case in CELLS if case["cause"] == "queue")
    fields = {"answers": 3, "client": 1}
    lines = [",".join(row) for row in matrix([Outcome(case, [LATE], fields, Result.CONTRADICTS)])]
    assert lines[0] == "true,`client`,`answers`,specific,true,not known,contradicts"
    assert "queue,1,3,,,,1" in lines
    assert lines[-1] == "all,1,3,0,0,0,1"


def test_a_series_has_a_row_of_its_own() -> None:
    cell = next(cell for cell in SERIES if cell.command == "compare")
    outcome = Outcome(cell.case, [cell.truth], {"same": 1}, Result.SPECIFIC, "compare", "x0.99")
    single, series = tables([outcome])
    assert single[-1] == ("all", "0", "0", "0", "0")
    assert ("compare: two stores that are alike", "1", "1", "", "", "") in series
    assert row(outcome) == (
        *("compare", "two stores that are alike", "local", "2MiB", "write"),
        *("no difference", "no difference", "same, x0.99", "specific"),
    )
