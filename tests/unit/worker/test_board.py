"""A board without counters: the driver's signal to stop reaches the functions."""

import pytest

from serverless_bench.base.errors import DeadlineExceeded
from serverless_bench.executors.base import RunProgress
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.worker import board as boards
from serverless_bench.worker import runner
from serverless_bench.worker.board import ABORT, RUN_OVER, Board, BoardSlot
from serverless_bench.worker.invocation import forget_clients, run_invocation
from tests.unit.flaky import FlakyClient
from tests.unit.worker.test_runner import writes


def test_each_level_ends_more() -> None:
    board = Board.here()
    moved = board.writer().on_moved["put"]
    moved(1, 1)
    board.stop(RUN_OVER)
    moved(1, 1)
    with pytest.raises(DeadlineExceeded):
        moved(0, 0)
    board.stop(ABORT)
    with pytest.raises(DeadlineExceeded):
        moved(1, 1)
    board.stop(RUN_OVER)
    assert board.level == ABORT


def test_a_run_over_ends_functions_without_counters() -> None:
    live = RunProgress(stop_level=RUN_OVER)
    board = live.begin(Board.here())
    forget_clients()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "open_client", lambda *_: FlakyClient())
        (spec, *_) = invocation_specs(writes(8), run_id="r", created_ns=1 << 62)
        found = run_invocation(spec, board=board.writer())
        forget_clients()
    assert (found.operations, found.error) == ((), runner._RUN_OVER)
    assert live.totals() is None


def test_a_function_without_a_board_is_not_stopped() -> None:
    slot = BoardSlot()
    slot.on_moved["put"](1, 0)
    assert slot.level == 0


def test_a_package_without_features_has_the_plain_board(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boards.BOARDS, "builtin", {})
    assert boards.board_type() is Board
