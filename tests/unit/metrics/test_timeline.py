import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.metrics.spreading import mean_in_flight, spread
from serverless_bench.metrics.timeline import timeline
from serverless_bench.rundir.record import Step
from serverless_bench.rundir.run import Run
from tests.data.runs import S, lost, operation, outcome, record, saved

steps = st.lists(st.tuples(st.integers(0, 10**10), st.integers(0, 10**12)), min_size=1, max_size=6)
operations = st.lists(st.tuples(st.integers(0, 10**10), steps), min_size=1, max_size=4)


def run_of(functions: list[list[tuple[int, list[tuple[int, int]]]]]) -> Run:
    """Return a run with operations that start at a given time and follow a curve of steps."""
    outcomes = []
    for index, ops in enumerate(functions):
        records = [
            operation(
                number,
                start_ns=start,
                end_ns=start + sum(length for length, _ in curve),
                size=sum(moved for _, moved in curve),
            )
            for number, (start, curve) in enumerate(ops)
        ]
        curves = [
            Step(operation=number, step_ns=length, step_bytes=moved)
            for number, (_, curve) in enumerate(ops)
            for length, moved in curve
        ]
        outcomes.append(outcome(record(index, records, steps=curves)))
    with tempfile.TemporaryDirectory() as scratch:
        return saved(Path(scratch) / "run", outcomes)


@given(st.lists(operations, min_size=1, max_size=4), st.integers(10**6, 3 * 10**9))
def test_no_byte_is_lost_or_invented(
    functions: list[list[tuple[int, list[tuple[int, int]]]]], segment_ns: int
) -> None:
    series = timeline(run_of(functions), segment_ns=segment_ns)
    total = sum(moved for ops in functions for _, curve in ops for _, moved in curve)
    assert int(series.segment_bytes.sum()) == total
    assert (series.segment_bytes >= 0).all()


@given(st.lists(operations, min_size=1, max_size=3), st.integers(10**8, 3 * 10**9))
def test_every_segment_has_its_exact_share_within_a_byte_per_step(
    functions: list[list[tuple[int, list[tuple[int, int]]]]], segment_ns: int
) -> None:
    series = timeline(run_of(functions), segment_ns=segment_ns)
    share = [Fraction(0)] * len(series.segment_bytes)
    pieces = 0
    for ops in functions:
        for start, curve in ops:
            at = start - series.start_ns
            for length, moved in curve:
                pieces += 1
                spread_exactly(share, at, length, moved, segment_ns)
                at += length
    for ours, exact in zip(series.segment_bytes, share, strict=True):
        # The share of a step across segments is a double: 2**-53 of a terabyte is 1e-4.
        assert abs(int(ours) - exact) <= pieces + 1


def spread_exactly(
    share: list[Fraction], at: int, length: int, moved: int, segment_ns: int
) -> None:
    if length == 0:
        share[min(at // segment_ns, len(share) - 1)] += moved
        return
    for cell in range(at // segment_ns, (at + length - 1) // segment_ns + 1):
        begin, end = max(at, cell * segment_ns), min(at + length, (cell + 1) * segment_ns)
        share[cell] += Fraction(moved * (end - begin), length)


def test_a_step_counts_in_each_segment_that_it_crosses() -> None:
    # 100 bytes from 0.5 s to 2.5 s: a quarter, a half and a quarter.
    run = run_of([[(0, [(1, 0)])], [(S // 2, [(2 * S, 100)])]])
    assert timeline(run).segment_bytes.tolist() == [25, 50, 25]


def test_the_burst_inside_an_object_stays_where_it_was() -> None:
    # A mean rate would put 50 bytes into each second.
    run = run_of([[(0, [(S, 90), (S, 10)])]])
    assert timeline(run).segment_bytes.tolist() == [90, 10]


def test_in_flight_is_a_mean_over_the_segment() -> None:
    run = run_of([[(0, [(2 * S, 1)])], [(S // 2, [(S // 4, 1)])]])
    assert timeline(run).in_flight.tolist() == pytest.approx([1.25, 1.0])


def test_instants_whose_sum_is_beyond_64_bits_are_added_up() -> None:
    # A million operations of 2 s each, five hours after the first one.
    late = np.full(1_000_000, 5 * 3600 * S)
    assert late.sum(dtype=np.float64) > 2**63
    in_flight = mean_in_flight(late, late + 2 * S, 3600 * S, 6)
    assert in_flight == pytest.approx([0, 0, 0, 0, 0, 1e6 * 2 / 3600], abs=1e-3)


def test_failed_operations_move_no_bytes(tmp_path: Path) -> None:
    good, bad = operation(0), operation(1, start_ns=S, end_ns=2 * S, error="throttled")
    run = saved(tmp_path / "run", [outcome(record(0, [good, bad]))])
    # They took their time, though.
    assert timeline(run).segment_bytes.tolist() == [1000, 0]


def test_a_run_without_bytes_has_no_timeline(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="successful operation"):
        timeline(saved(tmp_path / "run", [outcome(lost(0))]))


def test_a_segment_has_a_length(tmp_path: Path) -> None:
    run = saved(tmp_path / "run", [outcome(record(0, [operation()]))])
    with pytest.raises(ValueError, match="positive"):
        timeline(run, segment_ns=0)


def test_a_large_run_is_reduced_in_pieces_and_still_adds_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    functions = [[(i * S, [(S // 3, 7), (S, 11)])] * 3 for i in range(40)]
    whole = timeline(run_of(functions))
    monkeypatch.setattr("serverless_bench.rundir.tables._PART_ROWS", 5)
    assert np.array_equal(timeline(run_of(functions)).segment_bytes, whole.segment_bytes)


def test_long_stretches_are_summed_up_instead_of_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, count, each = np.random.default_rng(1), 500, 10**7
    begin = rng.integers(-each, count * each, 200)
    length, moved = rng.integers(1, count * each, 200), rng.integers(0, 10**12, 200)
    exact, summed = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    spread(exact, begin, length, moved, each)
    monkeypatch.setattr("serverless_bench.metrics.spreading._MOST_PIECES", 0)
    spread(summed, begin, length, moved, each)
    assert exact.sum() == summed.sum() == moved.sum()
    assert np.abs(exact - summed).max() <= 200
