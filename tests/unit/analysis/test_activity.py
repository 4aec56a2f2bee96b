"""What pictures of a run are drawn from adds up to what its report says."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from serverless_bench.analysis.activity import activity, status_counts
from serverless_bench.analysis.bottleneck import bounded_functions
from serverless_bench.analysis.clock_offsets import aligned, worker_offsets
from serverless_bench.analysis.summary import summarize
from serverless_bench.analysis.timeline import functions_at_work, good_operations
from serverless_bench.rundir.run import load_run
from tests.runs import S, lost, operation, outcome, record, saved

RECORDED = sorted((Path(__file__).parents[2] / "recorded").iterdir())


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_it_adds_up_to_the_report(path: Path) -> None:
    run = load_run(path, detail=False)
    summary, found = summarize(run), activity(run)
    assert found is not None
    # What does not add up in the records has no headline, and the page says why.
    adds_up = bool(found.timeline.segment_bytes.sum() == summary.bytes)
    assert adds_up != any("the timeline adds up" in why for why in summary.withheld)
    stats = summary.attempt_stats
    errors = {word: int(counts.sum()) for word, counts in found.failed_attempts.items()}
    assert errors == stats.errors_of_attempts
    assert sum(status_counts(run).values()) == stats.attempts
    assert found.bounded_of == sum(summary.bottleneck.functions.values())
    on_one_clock = aligned(run, worker_offsets(run))
    _, causes = bounded_functions(on_one_clock, good_operations(on_one_clock))
    assert Counter(causes.tolist()) == summary.bottleneck.functions


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
    assert found.rates[0].sum() == 2


def test_a_run_without_operations_has_none(tmp_path: Path) -> None:
    assert activity(saved(tmp_path / "run", [outcome(lost(0))])) is None
