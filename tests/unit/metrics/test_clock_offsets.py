"""The interval of a worker's clock holds the truth, and a shifted clock moves no peak."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serverless_bench.metrics.clock_offsets import store_offset, worker_offsets
from serverless_bench.metrics.summary import summarize
from serverless_bench.metrics.timeline import timeline
from serverless_bench.report.base import problems
from serverless_bench.rundir.record import InvocationRecord, Outcome, Step
from serverless_bench.rundir.run import Run
from tests.data.runs import TARGET, S, attempt, job, operation, record, saved

BASE = 1_700_000_000 * S


def shifted(of: InvocationRecord, by_ns: int) -> InvocationRecord:
    """Return the record that the same worker makes with another clock."""
    return replace(
        of,
        start_ns=of.start_ns + by_ns,
        end_ns=of.end_ns + by_ns,
        operations=tuple(
            replace(
                op,
                start_ns=op.start_ns + by_ns,
                end_ns=op.end_ns + by_ns,
                first_byte_ns=None if op.first_byte_ns is None else op.first_byte_ns + by_ns,
                last_byte_sent_ns=None
                if op.last_byte_sent_ns is None
                else op.last_byte_sent_ns + by_ns,
            )
            for op in of.operations
        ),
        attempts=tuple(
            replace(
                a,
                start_ns=a.start_ns + by_ns,
                end_ns=a.end_ns + by_ns,
                answered_ns=None if a.answered_ns is None else a.answered_ns + by_ns,
            )
            for a in of.attempts
        ),
    )


def true_record(index: int, start_ns: int, took_ns: int, store_ahead_ns: int) -> InvocationRecord:
    """Return a record by a clock that is right; the store's is ahead."""
    end_ns = start_ns + took_ns
    tried = replace(
        attempt(size=1000),
        start_ns=start_ns,
        end_ns=end_ns,
        answered_ns=end_ns,
        date_s=(end_ns + store_ahead_ns) // S,
    )
    return record(index, [operation(start_ns=start_ns, end_ns=end_ns, size=1000)], attempts=[tried])


@settings(max_examples=60, deadline=None)
@given(
    shifts=st.lists(st.integers(-3 * S, 3 * S), min_size=1, max_size=6),
    launch_ns=st.integers(0, S),
    collect_ns=st.integers(0, S),
    store_ahead_ns=st.integers(-5 * S, 5 * S),
    probes_at=st.lists(st.integers(0, 3 * S), max_size=5),
)
def test_the_interval_contains_the_offset(
    tmp_path_factory: pytest.TempPathFactory,
    shifts: list[int],
    launch_ns: int,
    collect_ns: int,
    store_ahead_ns: int,
    probes_at: list[int],
) -> None:
    outcomes = []
    for index, shift in enumerate(shifts):
        start = BASE + index * 100_000_000
        true = true_record(index, start, S, store_ahead_ns)
        outcomes.append(
            Outcome(
                submitted_ns=start - launch_ns,
                collected_ns=true.end_ns + collect_ns,
                result=shifted(true, shift),
            )
        )
    probes = tuple(
        (BASE + at, BASE + at + 1000, (BASE + at + 500 + store_ahead_ns) // S) for at in probes_at
    )
    run = replace(saved(tmp_path_factory.mktemp("o") / "run", outcomes), probes=probes)
    found = worker_offsets(run)
    assert not found.suspect.any()
    assert (found.low_ns <= np.array(shifts)).all()
    assert (found.high_ns >= np.array(shifts)).all()


def waves(shifts: list[int]) -> list[Outcome]:
    """Return functions that each move 1 GB, a GB/s in the middle, within 3 s."""
    outcomes = []
    for index, shift in enumerate(shifts):
        start = BASE + index * 50_000_000
        steps = [
            Step(operation=0, step_ns=S, step_bytes=part) for part in (100_000, 800_000, 100_000)
        ]
        op = operation(start_ns=start, end_ns=start + 3 * S, size=1_000_000)
        one = replace(attempt(size=op.bytes), start_ns=start, end_ns=op.end_ns)
        true = record(index, [op], steps=steps, attempts=[one])
        outcomes.append(
            Outcome(
                submitted_ns=start - 20_000_000,
                collected_ns=start + 3 * S + 20_000_000,
                result=shifted(true, shift),
            )
        )
    return outcomes


def test_shifted_clocks_move_the_peak_by_less_than_a_percent(tmp_path: Path) -> None:
    right = saved(tmp_path / "right", waves([0] * 40))
    wrong = saved(tmp_path / "wrong", waves([0, 2 * S, 0, -2 * S] * 10))
    expected = summarize(right)
    found = summarize(wrong)
    assert found.clocks.corrected == 20
    assert found.peak_1s_bytes_per_s == pytest.approx(expected.peak_1s_bytes_per_s, rel=0.01)
    assert found.elapsed_s == pytest.approx(expected.elapsed_s, rel=0.01)
    # Without the correction the peak is far off.
    table = dict(wrong.functions)
    table["submitted_ns"] = np.full_like(table["submitted_ns"], -1)
    blind = summarize(replace(wrong, functions=table))
    assert blind.peak_1s_bytes_per_s != pytest.approx(expected.peak_1s_bytes_per_s, rel=0.2)


def test_a_clock_that_may_be_right_is_left_alone(tmp_path: Path) -> None:
    run = saved(tmp_path / "run", waves([0, 5_000_000]))
    assert not worker_offsets(run).best_ns.any()


FAR = replace(job(number=1), executor="lambda", control=TARGET)


@pytest.mark.parametrize("executor", ["inline", "local", "lambda"])
def test_contradictions_mark_the_record_of_another_machine(tmp_path: Path, executor: str) -> None:
    op = operation(start_ns=BASE, end_ns=BASE + 5 * S)
    too_long = Outcome(submitted_ns=BASE, collected_ns=BASE + S, result=record(0, [op]))
    is_far = executor == "lambda"
    of = replace(job(number=2), executor=executor, control=TARGET if is_far else None)
    run = saved(tmp_path / "run", [too_long, *waves([0, 0])[1:]], of=of)
    assert list(worker_offsets(run).suspect) == [is_far, False]
    summary = summarize(run)
    assert summary.clocks.suspect == is_far
    assert any("contradict" in line for line in problems(summary)) == is_far
    assert worker_offsets(run).best_ns[0] == 0


def test_a_clock_that_stepped_is_suspect(tmp_path: Path) -> None:
    (one,) = waves([0])
    assert isinstance(one.result, InvocationRecord)
    stepped = replace(one.result, wall_start_ns=BASE, wall_end_ns=BASE + 60 * S)
    run = saved(tmp_path / "run", [replace(one, result=stepped)], of=FAR)
    assert list(worker_offsets(run).suspect) == [True]


def test_answers_next_to_the_border_of_a_second_bound_the_store_closely() -> None:
    just_before = (BASE + S - 2_000, BASE + S - 1_000, BASE // S)
    just_after = (BASE + S + 1_000, BASE + S + 2_000, BASE // S + 1)
    found = store_offset([just_before, just_after])
    assert found == (-2_000, 2_000)
    assert store_offset([]) is None
    assert store_offset([just_before, (BASE, BASE + 1, BASE // S + 90)]) is None


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-S, S), min_size=1, max_size=8), st.sampled_from([S // 10, S, 3 * S]))
def test_the_band_contains_the_timeline(
    tmp_path_factory: pytest.TempPathFactory, shifts: list[int], segment_ns: int
) -> None:
    run: Run = saved(tmp_path_factory.mktemp("band") / "run", waves(shifts))
    found = timeline(run, segment_ns=segment_ns)
    total = int(found.segment_bytes.sum())
    assert total == 1_000_000 * len(shifts)
    assert found.earliest[-1] == found.latest[-1] == total
    assert (found.at_least <= found.segment_bytes).all()
    assert (found.segment_bytes <= found.at_most).all()
