"""Verdicts of reports agree with the known truth of rigs: 20 cells of docs/verdicts.md."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

import pytest

from docs.make_verdicts import ROWS, matrix
from serverless_bench.analysis.bottleneck.causes import CAUSES as NAMES
from tests.verdicts import namespace
from tests.verdicts.bench import Outcome, bench_in
from tests.verdicts.cells import CAUSES, FACTORS, IN_CI, cells, name_of, possible_here
from tests.verdicts.judging import Result, Truth, judge
from tests.verdicts.words import ALL, ANSWERS, FUNCTION, LATENCY, NOT_KNOWN, OWN_CODE

CELLS: Final = cells()
CONTRADICTING: Final[Mapping[str, str]] = {
    "pipe of all": "alike rates are taken for the function's own network",
    "pipe of two commands": "alike rates are taken for the function's own network",
    "limit per function": "where rates differ by 2 % or more: the store",
    "mixed halves": "a limit of two functions is not seen: the store",
    "limit per connection": "taken for the function's own network",
    "late answers": "equal times are taken for the function's own network",
    "queue": "equal turns are taken for the function's own network",
    "own code sleeps": "what is neither processor nor request counts as the store",
    "own code computes": "on a shared processor it may be the store",
    "slow collection": "an idle slot has no name",
}
"""Causes whose verdicts contradict the truth today. The list may only become shorter; where a
mended verdict takes the last of them away, the shares below have to be reached."""
MOST_NOT_KNOWN: Final = 1 / 4
LEAST_SPECIFIC: Final = 1 / 2


def test_verdicts_do_not_contradict_the_truth(tmp_path_factory: pytest.TempPathFactory) -> None:
    reason = namespace.missing()
    with bench_in(tmp_path_factory.mktemp("verdicts")) as bench:
        cases = possible_here(CELLS[:IN_CI], with_namespace=reason is None)
        outcomes = [bench.check(case) for case in cases]
    wrong = [
        f"{name_of(outcome.case)}: {outcome.words}"
        for outcome in outcomes
        if outcome.result is Result.CONTRADICTS and outcome.case["cause"] not in CONTRADICTING
    ]
    assert not wrong, "\n".join(wrong)
    if not CONTRADICTING:
        counts = Counter(outcome.result for outcome in outcomes)
        assert counts[Result.NOT_KNOWN] <= MOST_NOT_KNOWN * len(outcomes), matrix(outcomes)
        assert counts[Result.SPECIFIC] >= LEAST_SPECIFIC * len(outcomes), matrix(outcomes)
    if reason:
        pytest.skip(f"passed without the cells that need a namespace: {reason}")


def test_the_table_has_every_cell() -> None:
    lines = ROWS.read_text(encoding="utf-8").splitlines()[1:]
    assert [line.split(",")[: len(FACTORS)] for line in lines] == [
        [case[factor] for factor in FACTORS] for case in CELLS
    ], "make verdicts"


def test_cells_hold_every_cause_with_each_of_its_values() -> None:
    pairs = {(case["cause"], value) for case in CELLS for value in case.values()}
    for name, cause in CAUSES.items():
        for value in (*cause.executors, *cause.sizes, *cause.directions):
            assert (name, value) in pairs
    assert {case["cause"] for case in CELLS[:IN_CI]} == set(CAUSES)
    assert {case["executor"] for case in CELLS[:IN_CI]} == set(FACTORS["executor"])


def test_every_word_of_a_report_has_an_answer() -> None:
    assert set(ANSWERS) == set(NAMES)


def test_contradicting_causes_are_causes() -> None:
    assert set(CONTRADICTING) <= set(CAUSES)


LATE: Final = Truth(frozenset({LATENCY}), frozenset({LATENCY}))
SLEEPS: Final = Truth(frozenset({OWN_CODE}), frozenset({OWN_CODE}))
RIGHT, WIDE, WRONG = frozenset({LATENCY}), frozenset({LATENCY, ALL}), frozenset({FUNCTION})


@pytest.mark.parametrize(
    ("said", "result"),
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
def test_answers_are_compared_with_the_truth(said: list[frozenset[str]], result: Result) -> None:
    assert judge([LATE], said) is result


def test_halves_are_given_the_answers_that_fit_them() -> None:
    own = frozenset({OWN_CODE})
    assert judge([LATE, SLEEPS], [own, own, RIGHT, RIGHT]) is Result.SPECIFIC
    assert judge([LATE, SLEEPS], [RIGHT] * 4) is Result.CONTRADICTS


def test_the_matrix_counts_functions_and_cells() -> None:
    case = next(case for case in CELLS if case["cause"] == "queue")
    lines = matrix([Outcome(case, {"answers": 3, "client": 1}, Result.CONTRADICTS)]).splitlines()
    assert lines[0] == "| true | `client` | `answers` | specific | true | not known | contradicts |"
    assert "| queue | 1 | 3 |  |  |  | 1 |" in lines
    assert lines[-1] == "| all | 1 | 3 | 0 | 0 | 0 | 1 |"
