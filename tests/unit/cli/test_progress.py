"""What a terminal shows while a run is under way."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from serverless_bench.driver.progress_bar import RunView, progress_bar
from serverless_bench.executors.base import RunProgress
from serverless_bench.job.load import Load
from serverless_bench.job.spec import JobSpec
from serverless_bench.worker.live_board import LiveBoard
from tests.runs import S, job, lost, operation, outcome, record

MB = 10**6
OK = outcome(record(0, [operation()]))


class Hands:
    """A clock that stands where it is put."""

    def __init__(self) -> None:
        self.ns = 0

    def __call__(self) -> int:
        return self.ns


def view(of: JobSpec, live: RunProgress, hands: Hands) -> RunView:
    return RunView(of, of.invocations, live, now_ns=hands)


def moved(live: RunProgress, until_now: int) -> None:
    """Have functions move so many bytes in all."""
    (board,) = live.boards
    board.writer().on_moved["put"](until_now - board.totals().moved)


def test_functions_that_run_are_counted_before_they_end() -> None:
    live, hands = RunProgress(), Hands()
    seen = view(job(invocations=4), live, hands)
    assert (seen.phase, seen.text()) == ("starting", "0/4 done")
    live.started = 3
    assert (seen.phase, seen.text()) == ("write", "0/4 done, 3 running")
    seen.add(OK)
    seen.add(outcome(lost(1)))
    assert seen.text() == "2/4 done, 1 running, 1 failed"
    seen.add(OK)
    seen.add(OK)
    assert (seen.phase, seen.text()) == ("finishing", "4/4 done, 1 failed")


def test_rate_operations_and_time_left_come_from_the_bytes() -> None:
    live, hands = RunProgress(boards=[LiveBoard.here()]), Hands()
    of = replace(job(invocations=4, object_bytes=10 * MB), objects=10)
    seen = view(of, live, hands)
    live.started = 4
    assert seen.text() == "0/4 done, 0.0 kB/s, 0 operations, 0/s"
    # 100 of 400 MB in 2 s: three times as long is left, and no function has ended.
    moved(live, 100 * MB)
    hands.ns = 2 * S
    assert seen.text() == "0/4 done, 6 s left, 50.0 MB/s, 10 operations, 5/s"
    assert seen.share == pytest.approx(0.25)
    # The rate is that of the last two seconds.
    moved(live, 120 * MB)
    hands.ns = 4 * S
    assert "10.0 MB/s, 12 operations, 1/s" in seen.text()


def test_preparing_is_a_phase_of_its_own() -> None:
    live, hands = RunProgress(boards=[LiveBoard.here()], started=2), Hands()
    of = replace(
        job(invocations=2, workload="mixed", object_bytes=MB),
        objects=10,
        duration_s=10.0,
        load=Load(mix=(("get", 1.0),)),
    )
    seen = view(of, live, hands)
    moved(live, 15 * MB)
    assert (seen.phase, seen.share, seen.left_s) == ("preparing", 0, None)
    moved(live, 20 * MB)
    hands.ns = 5 * S
    assert (seen.phase, seen.share) == ("mixed", 0)
    # From here on its duration counts, and what was prepared is no operation.
    moved(live, 23 * MB)
    hands.ns = 9 * S
    assert seen.share == pytest.approx(0.4)
    assert seen.text().startswith("0/2 done, 6 s left")
    assert "3 operations" in seen.text()


def test_an_open_loop_has_what_was_wanted_beside_it() -> None:
    live, hands = RunProgress(boards=[LiveBoard.here()], started=1), Hands()
    of = replace(job(invocations=1, object_bytes=MB), duration_s=10.0, load=Load(rate_per_s=20.0))
    seen = view(of, live, hands)
    seen.text()
    moved(live, 10 * MB)
    hands.ns = S
    assert "10 operations, 10/s of 20/s" in seen.text()


def test_functions_in_turns_are_measured_by_those_that_have_ended() -> None:
    live, hands = RunProgress(started=2), Hands()
    of = replace(job(invocations=4, concurrency=2), duration_s=10.0)
    seen = view(of, live, hands)
    assert "left" not in seen.text()
    seen.add(OK)
    hands.ns = 10 * S
    assert seen.share == 0.25
    assert seen.text().endswith("30 s left")
    hands.ns = 100 * S
    assert seen.text().endswith("5 min left")


def test_only_a_terminal_sees_it() -> None:
    for terminal in (True, False):
        out = io.StringIO()
        console = Console(file=out, force_terminal=terminal, width=120)
        live = RunProgress(started=1)
        seen = view(job(invocations=2), live, Hands())
        with progress_bar(seen, console):
            seen.add(OK)
        assert ("1/2 done" in out.getvalue()) == terminal
        assert ("write" in out.getvalue()) == terminal
