"""Totals of all functions, estimated from those of a sample."""

import math
import random
from statistics import fmean, stdev

import pytest
from scipy.stats import t as student

from serverless_bench.features.live import sampled
from serverless_bench.features.live.board import BoardTotals
from serverless_bench.features.live.layout import BYTES, KIND_NUMBER, OPERATIONS, SLOT_WORDS
from serverless_bench.features.live.sampled import SampledBoard
from tests.data.runs import S

DELAY_S = 10
PUT = BYTES + KIND_NUMBER["put"]


class Hands:
    """A clock that only moves when a test sets it."""

    ns = 0

    def __call__(self) -> int:
        return self.ns


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch) -> Hands:
    clock = Hands()
    monkeypatch.setattr(sampled, "monotonic_ns", clock)
    return clock


def moved(count: int) -> list[int]:
    return [count * (place == PUT) for place in range(SLOT_WORDS)]


def total(board: SampledBoard) -> int:
    totals = board.totals()
    assert isinstance(totals, BoardTotals)
    return totals.bytes["put"]


def test_totals_are_those_of_all_functions_a_while_ago(hands: Hands) -> None:
    board = SampledBoard(8, [1, 5], DELAY_S)
    assert board.totals() is None
    for second in (10, 15, 20, 25, 30):
        for index in (1, 5):
            board.add(index, second * S, moved(1000 * second), 0)
    hands.ns = 22 * S + DELAY_S * S
    # Eight functions of 22,000 bytes each, though objects are of 20 s and 25 s.
    assert total(board) == 8 * 22_000
    hands.ns = 60 * S
    assert total(board) == 8 * 30_000
    assert board.remark().endswith("2 of 8 functions sampled")


def test_few_operations_of_functions_in_step_are_not_rounded_away(hands: Hands) -> None:
    board = SampledBoard(80, range(8), DELAY_S)
    for index in range(8):
        for second in (10, 12, 14):
            board.add(index, second * S, moved(second // 2 - 4), 0)
    hands.ns = round(12.45 * S) + DELAY_S * S
    assert total(board) == 80 * 2 + 80 * 0.225


def test_only_counters_that_are_looked_at_are_kept(hands: Hands) -> None:
    board, kept = SampledBoard(2, [0], DELAY_S), []
    for second in range(10, 1000, 2):
        hands.ns = second * S
        board.add(0, hands.ns, moved(1000 * second), 0)
        kept.append(len(board._seen[0][0]))
        if second > 40:
            assert total(board) == 2 * 1000 * (second - DELAY_S)
    assert max(kept) < 12
    assert board.remark() == "1 of 2 functions sampled"


def test_an_estimate_counts_functions_that_have_not_started(hands: Hands) -> None:
    board = SampledBoard(100, range(10), DELAY_S)
    for index in range(5):
        board.add(index, 10 * S, moved(1000), 0)
    hands.ns = 30 * S
    assert total(board) == 100 * 500


def test_the_interval_covers_the_rate_in_most_samples(hands: Hands) -> None:
    draw, hits = random.Random(1), 0
    work = [draw.randint(1, 100) for _ in range(300)]
    for _ in range(100):
        indexes = draw.sample(range(300), 40)
        board = SampledBoard(300, indexes, DELAY_S)
        for index in indexes:
            board.add(index, 5 * S, moved(1000 * work[index]), 0)
        hands.ns = 5 * S + DELAY_S * S
        share = float(board.remark().partition(" %")[0].removeprefix("± ")) / 100
        hits += abs(total(board) / sum(work) / 1000 - 1) <= share
    assert 88 <= hits <= 100
    counts = [work[index] for index in indexes]
    error = stdev(counts) / math.sqrt(40) * math.sqrt(1 - 40 / 300) / fmean(counts)
    assert share == pytest.approx(student.ppf(0.975, 39) * error, rel=0.06)


def test_a_sample_of_all_functions_has_no_error(hands: Hands) -> None:
    board = SampledBoard(2, [0, 1], DELAY_S)
    board.add(0, 10 * S, moved(7), 0)
    hands.ns = 30 * S
    assert total(board) == 7
    assert board.remark() == "± 0 %, 2 of 2 functions sampled"


@pytest.mark.parametrize(("operations", "exact"), [(500, True), (5_000, False)])
def test_bytes_have_an_error_if_functions_draw_from_operations(
    hands: Hands, operations: int, *, exact: bool
) -> None:
    board, counts = SampledBoard(6, range(6), DELAY_S), [7_000, 8_000, 9_000, 7_000, 8_000, 9_000]
    for index, count in enumerate(counts):
        words = moved(count)
        words[OPERATIONS + KIND_NUMBER["put"]] = operations
        board.add(index, 5 * S, words, 0)
    hands.ns = 5 * S + DELAY_S * S
    half = student.ppf(0.975, 5) * stdev(counts) / math.sqrt(6) / fmean(counts)
    precision = "± 0 %" if exact else f"± {100 * half:.2g} %"
    assert board.remark() == f"{precision}, 6 of 6 functions sampled"
