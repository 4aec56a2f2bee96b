"""The data of a run's charts add up to its report."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from serverless_bench.features.bottleneck.causes import bounded_functions
from serverless_bench.features.page.activity import activity, functions_at_work, status_counts
from serverless_bench.metrics.clock_offsets import aligned, worker_offsets
from serverless_bench.metrics.summary import summarize
from serverless_bench.metrics.timeline import good_operations
from serverless_bench.rundir.record import Outcome
from serverless_bench.rundir.run import load_run
from tests.data.runs import TARGET, S, attempt, job, lost, operation, outcome, record, saved
from tests.tables import each_row

RECORDED = sorted((Path(__file__).parents[4] / "tests" / "recorded").iterdir())


@each_row("path", RECORDED, ids=lambda path: path.name)
def test_it_adds_up_to_the_report(path: Path) -> None:
    run = load_run(path, detail=False)
    summary, found = summarize(run), activity(run)
    assert found is not None
    # A run with inconsistent records has no headline, and the page gives the reason.
    adds_up = bool(found.timeline.segment_bytes.sum() == summary.bytes)
    assert adds_up != any("the timeline adds up" in why for why in summary.withheld)
    stats = summary.attempt_stats
    errors = {word: int(counts.sum()) for word, counts in found.failed_attempts.items()}
    assert errors == stats.errors_of_attempts
    assert sum(status_counts(run).values()) == stats.attempts
    assert found.bounded_of == sum(summary.parts["bottleneck"].functions.values())
    on_one_clock = aligned(run, worker_offsets(run))
    _, causes = bounded_functions(on_one_clock, good_operations(on_one_clock))
    assert Counter(causes.tolist()) == summary.parts["bottleneck"].functions


def test_functions_at_work_and_their_rates_by_hand(tmp_path: Path) -> None:
    first = record(0, [operation(end_ns=2 * S, size=2000)])
    second = record(1, [operation(start_ns=S, end_ns=4 * S, size=3000)])
    run = saved(tmp_path / "run", [outcome(first), outcome(second), outcome(lost(2))])
    group = np.array([0, 1, -1])
    at_work = functions_at_work(run, group, 2, segment_ns=S)
    assert at_work.tolist() == [[1, 1, 0, 0], [0, 1, 1, 1]]
    found = activity(run)
    assert found is not None
    rates = found.functions.bytes_per_s
    assert rates.shape[0] == 2
    assert set(rates[~np.isnan(rates)].round().tolist()) == {1000.0}
    assert [one.index for one in found.slowest] == [1, 0]
    assert found.rates.tolist() == [1000, 1000]


def test_a_run_without_operations_has_no_activity(tmp_path: Path) -> None:
    assert activity(saved(tmp_path / "run", [outcome(lost(0))])) is None


def function(
    index: int, begin_s: int, end_s: int, *, size: int, error: str | None = None, ahead_s: int = 0
) -> Outcome:
    """Return a function with one operation; its clock may be ahead of the driver's."""
    begin, end = (begin_s + ahead_s) * S, (end_s + ahead_s) * S
    one = operation(start_ns=begin, end_ns=end, size=size, error=error)
    tried = [replace(attempt(error=error), start_ns=begin, end_ns=end)]
    made = outcome(record(index, [one], attempts=tried, error=error))
    return replace(made, submitted_ns=begin_s * S, collected_ns=end_s * S)


def test_a_run_with_a_failed_and_a_lost_function_by_hand(tmp_path: Path) -> None:
    run = saved(
        tmp_path / "run",
        [
            function(0, 10, 12, size=2000),
            function(1, 11, 14, size=9000),
            function(2, 10, 14, size=4000, error="throttled"),
            outcome(lost(3)),
        ],
    )
    found = activity(run)
    assert found is not None
    # The run lasts 4 s: lines have at most 240 segments, the map has 120.
    assert found.timeline.segment_ns == S // 50
    assert found.functions.segment_ns == S // 20
    # Mean functions at work, times the length of a segment: 2 + 3 + 4 s.
    assert found.at_work.sum() / 50 == pytest.approx(9)
    (cause,) = found.bounded
    # Only the two successful functions are counted.
    assert (cause, found.bounded_of) == ("unknown", 2)
    assert found.bounded[cause].sum() / 50 == pytest.approx(5)
    # Functions are ordered by start: 0 and 2 at 10 s, then 1.
    assert found.functions.first.tolist() == [0, 1, 2, 3]
    rates = found.functions.bytes_per_s
    assert np.isnan(rates[1]).all()
    assert np.nanmean(rates[0]) == pytest.approx(1000)
    assert np.nanmean(rates[2]) == pytest.approx(3000)
    # An event at the end of the run belongs to the last segment.
    ((word, counts),) = found.failed_attempts.items()
    assert (word, np.flatnonzero(counts).tolist(), counts[-1]) == ("throttled", [199], 1)
    assert status_counts(run) == {"200": 2, "503": 1}
    slow = [(one.index, one.began_s, one.took_s, one.bytes_per_s) for one in found.slowest]
    assert slow == [(1, 1.0, 3.0, 3000.0), (0, 0.0, 2.0, 1000.0)]


def test_clock_bands_are_in_the_order_of_the_clocks(tmp_path: Path) -> None:
    ahead = (5, 0, -3, 1)
    run = saved(
        tmp_path / "run",
        [function(n, 10, 12, size=1000, ahead_s=one) for n, one in enumerate(ahead)],
    )
    found = activity(run)
    assert found is not None
    # The functions took all of the time from submission to collection, so each clock is known
    # exactly.
    assert found.clocks_s.tolist() == [[one, one, one] for one in sorted(ahead)]
    assert found.clocks_of == 4


def test_without_evidence_there_is_no_clock_band(tmp_path: Path) -> None:
    # Collected before it began: it contradicts itself.
    one = replace(function(0, 10, 12, size=1000), submitted_ns=20 * S, collected_ns=20 * S)
    elsewhere = replace(job(number=1), control=TARGET)
    found = activity(saved(tmp_path / "run", [one], of=elsewhere))
    assert found is not None
    assert (found.clocks_of, found.clocks_s.tolist()) == (0, [])


def test_functions_without_bytes_and_answers_are_shown(tmp_path: Path) -> None:
    tried = [replace(attempt(error="timeout"), status=None, start_ns=0, end_ns=S)]
    one = operation(size=0, start_ns=2 * S, end_ns=3 * S)
    run = saved(tmp_path / "run", [outcome(record(0, [one], attempts=tried))])
    found = activity(run)
    assert found is not None
    assert (found.slowest, found.bounded_of) == ((), 0)
    # An attempt with a clock that went back belongs to the first segment.
    assert np.flatnonzero(found.failed_attempts["timeout"]).tolist() == [0]
    assert status_counts(run) == {"no answer": 1}
