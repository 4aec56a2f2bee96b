"""The time that the rate of ``--until-stable`` covers."""

from random import Random

import pytest

from serverless_bench.executors.base import RunProgress
from serverless_bench.features.compare import stability
from serverless_bench.features.compare.stability import SAMPLE_S, StoppingRule
from serverless_bench.features.live.board import LiveBoard
from serverless_bench.features.until_stable import watch as until_stable
from tests.data.runs import S, operation, record

PER_SAMPLE = 10


class Watched:
    """A run under a clock that is moved by hand, with so many operations in each sample."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, duration_s: float) -> None:
        live, self.now_ns = RunProgress(), 0
        self.board = live.begin(LiveBoard.here()).writer()
        self.watch = until_stable._StabilityWatch(StoppingRule(0.02), live, duration_s)
        monkeypatch.setattr(until_stable, "monotonic_ns", lambda: self.now_ns)
        self.watch.sample()

    def work(self, seconds: float, operations: int = PER_SAMPLE) -> None:
        rows = [operation(n) for n in range(operations)]
        for _ in range(round(seconds / SAMPLE_S)):
            self.now_ns += round(SAMPLE_S * S)
            self.board.add_record(record(0, rows))
            self.watch.sample()


@pytest.mark.parametrize(("to_work_s", "known"), [(20, False), (16, True)])
def test_a_stall_while_functions_are_to_work_counts(
    to_work_s: int,
    known: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, uneven = Watched(monkeypatch, duration_s=to_work_s), Random(0)
    for _ in range(round(16 / SAMPLE_S)):
        run.work(SAMPLE_S, operations=uneven.randrange(2 * PER_SAMPLE + 1))
    run.work(4, operations=0)
    found = run.watch.report()
    # With a quarter of the window idle, the rate cannot be determined.
    assert not found["reached"]
    assert (found["mean_per_s"] is not None) is known


def test_the_time_to_end_functions_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Watched(monkeypatch, duration_s=8)
    run.work(8)
    run.work(4, operations=0)
    assert run.watch.report()["mean_per_s"] == pytest.approx(PER_SAMPLE / SAMPLE_S, rel=0.02)


def test_a_stalled_run_is_not_stable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stability, "MIN_S", 0.0)

    def reached_s(stalled_s: float) -> float | None:
        run = Watched(monkeypatch, duration_s=600)
        # Check before the rate was stable for long enough, then not until it was.
        run.work(4)
        run.work(stalled_s, operations=0)
        run.work(4)
        found: float | None = run.watch.report()["after_s"]
        return found

    assert reached_s(0) is not None
    assert reached_s(2) is None
