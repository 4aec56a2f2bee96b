"""Warnings about functions that took longer than others, and about repeated reads."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from serverless_bench.features.check.checked_run import OUTLIER_SCORE, check, scores, variability
from serverless_bench.job.operations import OperationKind
from serverless_bench.metrics.summary import summarize
from tests.data.runs import S, job, operation, outcome, record, saved
from tests.unit.metrics.test_elapsed import interrupted, slept


def test_stragglers_are_named_and_kept(tmp_path: Path) -> None:
    took = [10 * S + i * S // 100 for i in range(19)] + [60 * S]
    outcomes = [outcome(record(i, [operation(end_ns=t, size=10**8)])) for i, t in enumerate(took)]
    run = saved(tmp_path / "run", outcomes)
    found = variability(run, summarize(run))
    assert found.outliers == (19,)
    assert found.stragglers[0].index == 19
    assert found.stragglers[0].request_ids == ("id",)
    assert found.max_over_p50 == pytest.approx(60 / 10.09)
    assert found.tail_tax == pytest.approx((60 - 10.18) / 60)
    assert any("standard deviation" in warning for warning in found.warnings)
    assert any("the slowest function" in warning for warning in found.warnings)
    assert len(found.stragglers) == 1


@pytest.mark.parametrize(("slowest_s", "count"), [(10, 0), (15, 0), (16, 1)])
def test_no_function_at_the_median_is_a_straggler(
    tmp_path: Path, slowest_s: int, count: int
) -> None:
    took = [10 * S] * 9 + [slowest_s * S]
    outcomes = [outcome(record(i, [operation(end_ns=t, size=10**8)])) for i, t in enumerate(took)]
    run = saved(tmp_path / "run", outcomes)
    found = variability(run, summarize(run))
    assert len(found.stragglers) == count
    (line,) = (line for line in str(check(run)).splitlines() if "slowest function" in line)
    assert line.startswith("no straggler") == (count == 0)


def test_objects_that_are_read_again_are_compared_with_their_first_reads(tmp_path: Path) -> None:
    """The first read of each of two objects takes 600 ms, the others 10 ms."""
    reads = [
        replace(
            operation(n % 2, kind=OperationKind.GET, start_ns=n * S, end_ns=n * S + took), index=n
        )
        for n, took in enumerate([600_000_000] * 2 + [10_000_000] * 8)
    ]
    run = saved(tmp_path / "again", [outcome(record(0, reads))])
    (line,) = (w for w in variability(run, summarize(run)).warnings if "read" in w)
    assert line.startswith("2 objects read 5 times each: the first time in 600 ms, later in 10 ms")
    once = saved(tmp_path / "once", [outcome(record(0, reads[:3]))])
    assert not [w for w in variability(once, summarize(once)).warnings if "first" in w]


def test_a_calm_run_has_no_warning(tmp_path: Path) -> None:
    outcomes = [outcome(record(i, [operation(end_ns=10 * S, size=10**8)])) for i in range(10)]
    run = saved(tmp_path / "run", outcomes, of=job(number=10, concurrency=10))
    assert variability(run, summarize(run)).warnings == ()


def test_among_equal_values_the_other_one_is_an_outlier() -> None:
    assert np.flatnonzero(scores(np.array([*[1.0] * 6, 100.0])) > OUTLIER_SCORE).tolist() == [6]
    assert (scores(np.array([1.0, 1.0, 1.0, 1.1])) < OUTLIER_SCORE).all()
    assert not scores(np.array([1.0, 1.0, 1.0])).any()
    assert not scores(np.array([0.0, 0.0, 0.0, 1.0])).any()
    assert len(scores(np.array([]))) == 0


def test_pauses_are_named(tmp_path: Path) -> None:
    of = job(number=4, concurrency=2)
    paused = interrupted(tmp_path / "interrupted", of, ended_s=12)
    for run, words in ((paused, "interrupted"), (slept(tmp_path / "slept"), "suspended for 100 s")):
        assert any(words in warning for warning in variability(run, summarize(run)).warnings)
