"""Progress of running functions: counters that add up, and a word that stops them."""

import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.base import clock
from serverless_bench.base.errors import (
    ConnectionLost,
    NotFound,
    OperationError,
    ServerFault,
    TimedOut,
)
from serverless_bench.base.units import NS_PER_S
from serverless_bench.clients.base import Exchange, Source
from serverless_bench.executors.base import RunProgress
from serverless_bench.features.live.board import BoardTotals, LiveBoard, OwnBoard
from serverless_bench.features.live.layout import (
    BUCKETS,
    FAILURES,
    SLOT_WORDS,
    bucket_bounds_ns,
    bucket_of,
    percentile_ns,
)
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.spec import JobSpec
from serverless_bench.rundir.record import InvocationRecord
from serverless_bench.worker import runner
from serverless_bench.worker.board import KINDS, WARM_UP
from serverless_bench.worker.invocation import forget_clients, run_invocation
from serverless_bench.worker.operation import MeasuredOperation
from tests.data.runs import attempt, operation, record
from tests.stores.virtual_time import SlowClient, virtual_time
from tests.unit.flaky import FlakyClient
from tests.unit.worker.test_open_loop import loop
from tests.unit.worker.test_runner import writes

LATENCIES = st.integers(1 << 12, (1 << 40) - 1)


def of_record(found: InvocationRecord) -> dict[str, dict[str, int]]:
    """Return the board's expected counters for a record, counted in another way."""
    kind = {op.index: WARM_UP if op.warmup else str(op.kind) for op in found.operations}
    moved = Counter[str]()
    for one in found.attempts:
        moved[kind[one.operation]] += one.bytes
    return {
        "bytes": dict(+moved),
        "operations": dict(Counter(kind.values())),
        "failed": dict(Counter(kind[op.index] for op in found.operations if op.error)),
        "attempts": {
            "all": len(found.attempts),
            "failed": sum(one.error is not None for one in found.attempts),
            "retries": sum(one.number > 0 for one in found.attempts),
            "in_flight_ns": sum(one.end_ns - one.start_ns for one in found.attempts),
        },
    }


def row_of(found: Any) -> Any:
    return astuple(found)[1:]


def of_board(totals: BoardTotals) -> dict[str, dict[str, int]]:
    return {
        "bytes": {kind: n for kind, n in totals.bytes.items() if n},
        "operations": {kind: n for kind, n in totals.operations.items() if n},
        "failed": {kind: n for kind, n in totals.failed.items() if n},
        "attempts": {
            "all": totals.attempts,
            "failed": sum(totals.failures.values()) - totals.failures["corrupt"],
            "retries": totals.retries,
            "in_flight_ns": totals.in_flight_ns,
        },
    }


def run(job: JobSpec, client: FlakyClient) -> tuple[InvocationRecord, BoardTotals]:
    board = LiveBoard.here()
    forget_clients()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "open_client", lambda *_: client)
        patch.setattr(clock, "sleep", lambda _: None)
        (spec, *_) = invocation_specs(job, run_id="r", created_ns=1 << 62)
        found = run_invocation(spec, board=board.writer())
        forget_clients()
    return found, board.totals()


@given(latency_ns=LATENCIES)
def test_a_latency_is_in_its_bucket(latency_ns: int) -> None:
    low, high = bucket_bounds_ns(bucket_of(latency_ns))
    assert low <= latency_ns < high


def test_buckets_follow_one_another_and_the_ends_take_the_rest() -> None:
    bounds = [bucket_bounds_ns(bucket) for bucket in range(BUCKETS)]
    assert [low for low, _ in bounds[1:]] == [high for _, high in bounds[:-1]]
    assert (bounds[0][0], bounds[-1][1]) == (1 << 12, 1 << 40)
    assert [bucket_of(ns) for ns in (0, 1, 1 << 40, 1 << 62)] == [0, 0, BUCKETS - 1, BUCKETS - 1]


@given(latencies=st.lists(LATENCIES, min_size=1, max_size=300), share=st.sampled_from([0.5, 0.99]))
def test_percentiles_are_within_six_percent(latencies: list[int], share: float) -> None:
    histogram = [0] * BUCKETS
    for latency_ns in latencies:
        histogram[bucket_of(latency_ns)] += 1
    rank = -(-share * len(latencies) // 1)
    exact = sorted(latencies)[int(rank) - 1]
    assert percentile_ns(histogram, share) == pytest.approx(exact, rel=0.0626)


def test_empty_histograms_have_no_percentile() -> None:
    assert percentile_ns([0] * BUCKETS, 0.5) is None


@given(slots=st.lists(st.lists(st.integers(0, 1 << 50), min_size=3, max_size=3), max_size=9))
def test_totals_are_the_sum_over_slots(slots: list[list[int]]) -> None:
    board = LiveBoard(bytearray(LiveBoard.size_of(len(slots))))
    for number, counts in enumerate(slots):
        writer = board.writer(number)
        for kind, count in zip(KINDS[-3:], counts, strict=True):
            writer.on_moved[kind](count, 1)
    totals = board.totals()
    expected = [sum(column) for column in zip(*slots, strict=True)] or [0] * 3
    assert [totals.bytes[kind] for kind in KINDS[-3:]] == expected
    assert totals.moved == sum(expected)
    assert not board.level


def test_slots_are_whole_cache_lines() -> None:
    assert SLOT_WORDS % 8 == 0


def test_the_board_of_a_failing_run_agrees_with_its_record() -> None:
    errors: list[OperationError | None] = [
        ServerFault("no", status=500),
        None,
        TimedOut("no"),
        ConnectionLost("no"),
        None,
        NotFound("no", status=404),
    ]
    job = writes(12, threads=3)
    job = replace(job, transfer=replace(job.transfer, retries=1), warm_up=1)
    found, totals = run(job, FlakyClient({"put": list(errors)}))
    assert of_board(totals) == of_record(found)
    assert {name: n for name, n in totals.failures.items() if n} == {
        "5xx": 1,
        "timeout": 1,
        "reset": 1,
        "4xx": 1,
    }
    good = [op for op in found.operations if op.error is None and not op.warmup]
    assert sum(totals.histogram) == len(good)
    assert totals.puts == len(found.attempts) - 1
    assert totals.measured == 12


def test_a_record_counts_like_the_boards_counters() -> None:
    found, totals = run(writes(6), FlakyClient({"put": [None, NotFound("no", status=404)]}))
    board = LiveBoard.here()
    board.writer().add_record(found)
    again = board.totals()
    assert of_board(again) == of_board(totals)
    assert (again.histogram, again.failures) == (totals.histogram, totals.failures)
    assert again.awake_ns == round((found.cpu_user_s + found.cpu_sys_s) * 1e9) + (
        found.run_wait_ns or 0
    )


def test_spans_of_a_user_function_count_with_the_bytes_that_it_says() -> None:
    board = LiveBoard.here()
    rows = [operation(n, kind=OperationKind.CALL, size=700) for n in range(2)]
    board.writer().add_record(record(0, rows, attempts=[]))
    totals = board.totals()
    assert (totals.operations["call"], totals.bytes["call"], totals.attempts) == (2, 1400, 0)


def test_corrupt_bytes_and_unknown_errors_have_classes() -> None:
    rows = [operation(0, error="corrupt"), operation(1, error="bug"), operation(2)]
    tried = [attempt(0), attempt(1, error="error"), attempt(2, error="throttled")]
    board = LiveBoard.here()
    board.writer().add_record(record(0, rows, attempts=tried))
    failures = board.totals().failures
    assert set(failures) == set(FAILURES)
    assert {name: n for name, n in failures.items() if n} == {
        "corrupt": 1,
        "other": 1,
        "throttled": 1,
    }


@given(latencies=st.lists(st.integers(0, 1 << 62), max_size=50))
def test_latencies_are_counted_in_their_buckets(latencies: list[int]) -> None:
    board = LiveBoard.here()
    board.writer().add_record(record(0, [operation(end_ns=ns) for ns in latencies], attempts=[]))
    found = {n: count for n, count in enumerate(board.totals().histogram) if count}
    assert found == Counter(map(bucket_of, latencies))


def test_an_open_loop_counts_from_when_it_was_due() -> None:
    board = LiveBoard.here()
    late = replace(operation(0, start_ns=5 * NS_PER_S, end_ns=6 * NS_PER_S), intended_ns=0)
    board.writer().add_record(record(0, [late]))
    assert percentile_ns(board.totals().histogram, 0.5) == pytest.approx(6e9, rel=0.06)


def test_threads_of_a_function_lose_no_counts() -> None:
    board = LiveBoard.here()
    writer, threads, each = board.writer(), 4, 20_000
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def move() -> None:
        for _ in range(each):
            writer.on_moved["put"](1, 3)

    started = [threading.Thread(target=move) for _ in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    sys.setswitchinterval(before_s)
    totals = board.totals()
    assert (totals.bytes["put"], totals.in_flight_ns) == (threads * each, 3 * threads * each)


def test_threads_that_measure_at_once_are_all_counted() -> None:
    """A function that ends has the operations of all threads counted; new threads continue."""
    board = LiveBoard.here()
    writer, threads, each = board.writer(), 4, 2_000
    done = MeasuredOperation(row_of(operation()), [row_of(attempt(0, size=7))], ())
    measured: list[MeasuredOperation] = [done]
    writer.follow(measured)
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def measure() -> None:
        for now_ns in range(each):
            measured.append(done)
            writer.count(now_ns)

    with ThreadPoolExecutor(threads) as pool:
        for future in [pool.submit(measure) for _ in range(threads)]:
            future.result()
    sys.setswitchinterval(before_s)
    writer.count(0)
    totals = board.totals()
    # Earlier values had been counted before it started to follow.
    assert (totals.operations["put"], totals.bytes["put"]) == (threads * each, 7 * threads * each)


def test_a_function_counts_some_of_many_operations_for_all() -> None:
    done = [
        MeasuredOperation(row_of(operation(kind=kind)), [row_of(attempt(0, size=size))], ())
        for kind, size in ((OperationKind.PUT, 7), (OperationKind.GET, 3))
    ]
    board = OwnBoard.here()
    writer, measured = board.writer(), list[MeasuredOperation]()
    writer.follow(measured)
    # The second kind is a third of the operations, always at the end of a batch.
    for batch in (1, 127, 128, 129, 255, 257, *[5_000] * 40):
        measured += [done[number > 2 * batch // 3] for number in range(batch)]
        writer.count(0)
        totals = board.totals()
        assert totals.measured == totals.attempts == sum(totals.histogram) == len(measured)
    operations, gets = totals.operations, measured.count(done[1])
    # Ten standard deviations of 40 batches of 128 operations.
    assert operations["get"] == pytest.approx(gets, rel=0.2)
    assert (totals.bytes["put"], totals.bytes["get"]) == (
        7 * operations["put"],
        3 * operations["get"],
    )


def test_an_attempt_that_takes_long_is_shown_while_it_runs_and_counted_once() -> None:
    board = LiveBoard.here()

    class Slow(SlowClient):
        def put(self, key: str, source: Source, exchange: Exchange) -> None:
            for count in (40, 30, 20):
                clock.sleep(0.15)
                exchange.moved(count)
                seen.append((board.totals().bytes["put"], board.totals().in_flight_ns))

    seen: list[tuple[int, int]] = []
    with virtual_time() as time, pytest.MonkeyPatch.context() as patch:
        forget_clients()
        patch.setattr(runner, "open_client", lambda *_: Slow(time, 0.0))
        (spec, *_) = invocation_specs(writes(1), run_id="r", created_ns=1 << 62)
        found = run_invocation(spec, board=board.writer())
        forget_clients()
    assert seen == [(0, 0), (70, 300_000_000), (70, 300_000_000)]
    assert of_board(board.totals()) == of_record(found)
    assert (found.attempts[0].bytes, found.operations[0].error) == (90, None)


def test_a_difference_is_what_happened_in_between() -> None:
    live = RunProgress()
    assert live.totals() is None
    first = live.begin(LiveBoard.here()).writer()
    first.on_moved["get"](3, 0)
    before = live.totals()
    assert before is not None
    live.begin(LiveBoard.here()).writer().on_moved["get"](5, 0)
    now = live.totals()
    assert now is not None
    assert (now.bytes["get"], now.since(before).bytes["get"]) == (8, 5)


@pytest.mark.parametrize("rate_per_s", [None, 100.0, 0.5])
def test_the_stop_word_ends_a_duration(rate_per_s: float | None) -> None:
    """Operations due after the word do not count as dropped."""
    live, job = RunProgress(), loop(duration=60.0, rate=rate_per_s)
    board = live.begin(LiveBoard.here())

    class Stopping(SlowClient):
        def put(self, *arguments: object) -> None:
            super().put(*arguments)  # type: ignore[arg-type]
            if self.calls.count("put") == 5:
                assert live.stop()

    with virtual_time() as time, pytest.MonkeyPatch.context() as patch:
        forget_clients()
        patch.setattr(runner, "open_client", lambda *_: Stopping(time, 0.001))
        (spec, *_) = invocation_specs(job, run_id="r", created_ns=1 << 62)
        found = run_invocation(spec, board=board.writer())
        forget_clients()
    assert found.ok
    assert len(found.operations) == 5
    assert found.dropped == ()
    # In an open loop the word is noticed before the next operation, which may be far off.
    assert found.end_ns - found.operations[-1].end_ns <= NS_PER_S // 4


def test_a_stop_before_the_start_is_effective() -> None:
    live = RunProgress()
    assert not live.stop()
    assert live.begin(LiveBoard.here()).level


def test_functions_without_a_duration_go_on() -> None:
    live = RunProgress(stop_level=1)
    board = live.begin(LiveBoard.here())
    forget_clients()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "open_client", lambda *_: FlakyClient())
        (spec, *_) = invocation_specs(writes(8), run_id="r", created_ns=1 << 62)
        assert len(run_invocation(spec, board=board.writer()).operations) == 8
        forget_clients()
