"""Bottlenecks of runs with a known cause are found."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serverless_bench.features.bottleneck.causes import bottleneck
from serverless_bench.features.bottleneck.part import bottleneck_text
from serverless_bench.features.bottleneck.rate_limit import fit_bucket
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.target import Target
from serverless_bench.job.workload import Load
from serverless_bench.metrics.summary import summarize
from serverless_bench.metrics.timeline import good_operations
from serverless_bench.rundir.record import Outcome, Step
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.schema import Neighbours
from tests.data.runs import S, attempt, job, operation, record, saved
from tests.house.members import uses
from tests.tables import each_row

MIB = 1 << 20


def bucket_curve(
    *, burst: float, rate: float, line: float, total: float, step_s: float = 0.2
) -> tuple[np.ndarray, np.ndarray]:
    """Return seconds and bytes of a transfer through a token bucket."""
    knee = burst / (line - rate)
    end = knee + max(0.0, total - line * knee) / rate
    at = np.append(np.arange(0, end, step_s), end)
    moved = np.minimum(line * at, np.where(at > knee, line * knee + rate * (at - knee), np.inf))
    return at, np.minimum(moved, total)


def functions(  # noqa: PLR0913 - every one of them is what a test is about
    path: Path,
    curves: list[tuple[np.ndarray, np.ndarray]],
    *,
    cpu_share: float = 0.2,
    launch_s: float = 0.1,
    flow: float = 0.9,
    delivery_s: float = 1.0,
    begin_s: Sequence[float] = (),
    load: Load | None = None,
    **used: float | None,
) -> Run:
    """Return a run of functions that moved bytes along curves."""
    outcomes = []
    for index, (at, moved) in enumerate(curves):
        took = round(at[-1] * S)
        edges = np.round(at * S).astype(int)
        sizes = np.diff(np.round(moved)).astype(int)
        steps = [
            Step(operation=0, step_ns=int(b - a), step_bytes=int(size))
            for a, b, size in zip(edges[:-1], edges[1:], sizes, strict=True)
        ]
        op = operation(
            start_ns=round(launch_s * S), end_ns=round(launch_s * S) + took, size=int(sizes.sum())
        )
        begin = round((begin_s[index] if begin_s else 0) * S)
        op = replace(
            op,
            start_ns=op.start_ns + begin,
            end_ns=op.end_ns + begin,
            last_byte_sent_ns=op.start_ns + begin + round(flow * took),
        )
        of = replace(
            record(index, [op], steps=steps),
            cpu_user_s=cpu_share * took / S,
            cpu_sys_s=0.0,
            cpus=2,
            run_wait_ns=0,
            generator_bytes_per_s=9 * 10**9,
            **used,  # type: ignore[arg-type]
        )
        collected = op.end_ns + round(delivery_s * S)
        outcomes.append(Outcome(submitted_ns=begin, collected_ns=collected, result=of))
    concurrency = max(1, len(outcomes) - bool(begin_s))
    of_job = job(number=len(outcomes), concurrency=concurrency)
    of_job = replace(of_job, load=load or Load())
    return saved(path, outcomes, of=of_job)


def reported(run: Run) -> dict[str, int]:
    return dict(bottleneck(run, good_operations(run)).functions)


@settings(max_examples=60, deadline=None)
@given(
    burst=st.floats(20, 400),
    rate=st.floats(20, 100),
    line=st.floats(400, 2000),
    sustained_s=st.floats(4, 30),
)
def test_burst_and_sustained_rate_are_recovered(
    burst: float, rate: float, line: float, sustained_s: float
) -> None:
    total = burst + rate * sustained_s
    at, moved = bucket_curve(burst=burst * MIB, rate=rate * MIB, line=line * MIB, total=total * MIB)
    found = fit_bucket(at, moved)
    assert found is not None
    assert found.sustained_bytes_per_s == pytest.approx(rate * MIB, rel=0.05)
    assert found.burst_bytes == pytest.approx(burst * MIB, rel=0.05, abs=0.02 * total * MIB)


def test_lambdas_bucket() -> None:
    at, moved = bucket_curve(burst=300 * MIB, rate=77.6 * MIB, line=1229 * MIB, total=2000 * MIB)
    found = fit_bucket(at, moved)
    assert found is not None
    assert found.sustained_bytes_per_s == pytest.approx(77.6 * MIB, rel=0.01)
    assert found.burst_bytes == pytest.approx(300 * MIB, rel=0.03)


def test_a_limit_that_each_has_for_itself(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    curves = [
        bucket_curve(
            burst=300 * MIB, rate=draw.normal(77.6, 0.5) * MIB, line=1200 * MIB, total=2000 * MIB
        )
        for _ in range(12)
    ]
    run = functions(tmp_path / "run", curves)
    assert reported(run) == {"rate_limit": 12}
    found = bottleneck(run, good_operations(run))
    assert found.sustained_bytes_per_s == pytest.approx(77.6 * MIB, rel=0.05)
    assert found.burst_bytes == pytest.approx(300 * MIB, rel=0.05)
    assert found.generator_bytes_per_s == 9e9


def test_equal_rates_without_a_burst_are_a_shaper(tmp_path: Path) -> None:
    curve = (np.linspace(0, 5, 26), np.linspace(0, 500e6, 26))
    assert reported(functions(tmp_path / "run", [curve] * 8)) == {"rate_limit": 8}


def test_bytes_that_hardly_flow_are_bounded_by_answers(tmp_path: Path) -> None:
    # Latency or a queue makes closed loops as similar as a rate limit does.
    curve = (np.linspace(0, 5, 26), np.linspace(0, 10e6, 26))
    assert reported(functions(tmp_path / "run", [curve] * 8, flow=0.016)) == {"answers": 8}


@pytest.mark.parametrize("count", [2, 4])
def test_a_constant_rate_leaves_open_what_it_is_a_limit_of(tmp_path: Path, count: int) -> None:
    curve = (np.linspace(0, 5, 26), np.linspace(0, 10e6, 26))
    run = functions(tmp_path / "run", [curve] * count)
    assert reported(run) == {"rate_limit": count}
    limit = bottleneck(run, good_operations(run))
    assert limit.rate_limit_of == ("connection", "function", "all")


def test_a_rate_that_does_not_fall_with_more_functions_is_not_shared(tmp_path: Path) -> None:
    curve = (np.linspace(0, 5, 26), np.linspace(0, 10e6, 26))
    # One function alone, then six at the same time.
    run = functions(tmp_path / "run", [curve] * 7, begin_s=(0, *[10] * 6))
    assert reported(run) == {"rate_limit": 7}
    assert bottleneck(run, good_operations(run)).rate_limit_of == ("connection", "function")


def test_a_few_more_functions_do_not_show_a_limit_of_all(tmp_path: Path) -> None:
    # A pipe that another command uses, too, slows all functions by a few percent.
    curve = (np.linspace(0, 5, 26), np.linspace(0, 10e6, 26))
    run = functions(tmp_path / "run", [curve] * 4, begin_s=(0, 0.5, 1, 1.5))
    assert reported(run) == {"rate_limit": 4}
    scopes = ("connection", "function", "all")
    assert bottleneck(run, good_operations(run)).rate_limit_of == scopes


def test_a_rate_that_falls_with_more_functions_is_one_for_all(tmp_path: Path) -> None:
    alone = (np.linspace(0, 5, 26), np.linspace(0, 12e6, 26))
    shared = (np.linspace(0, 5, 26), np.linspace(0, 2e6, 26))
    run = functions(tmp_path / "run", [alone] + [shared] * 6, begin_s=(0, *[10] * 6))
    assert reported(run) == {"rate_limit": 7}
    assert bottleneck(run, good_operations(run)).rate_limit_of == ("all",)


def test_commands_that_share_a_store_leave_open_what_limited_the_rate(tmp_path: Path) -> None:
    curve = (np.linspace(0, 5, 26), np.linspace(0, 10e6, 26))
    run = functions(tmp_path / "run", [curve] * 7, begin_s=(0, *[10] * 6))
    # The other commands may have started or ended together with the six functions.
    shared = replace(run, neighbours=Neighbours(commands=2, shared_s=6.2))
    summary = summarize(shared)
    assert summary.parts["bottleneck"].rate_limit_of == ("connection", "function", "all")
    _, cause, shared_with, _ = str(bottleneck_text(summary)).split("; ", 3)
    assert cause == "bandwidth (7 of 7 functions)"
    assert shared_with == "store shared with 2 other commands"
    assert "shared with" not in str(bottleneck_text(summarize(run)))


@uses("workload custom")
def test_own_code_that_sleeps_is_not_the_store(tmp_path: Path) -> None:
    ops = [
        operation(0, kind=OperationKind.CALL, end_ns=10 * S, size=1000),
        operation(1, start_ns=9 * S, end_ns=9 * S + S // 5),
    ]
    of = replace(record(0, ops), cpus=2, run_wait_ns=0, cpu_user_s=0.1, cpu_sys_s=0.0)
    outcomes = [Outcome(submitted_ns=0, collected_ns=11 * S, result=of)]
    of_job = replace(job(number=1), workload="custom")
    assert reported(saved(tmp_path / "run", outcomes, of=of_job)) == {"own_code": 1}


@pytest.mark.parametrize(
    ("spans_s", "threads", "by"),
    [
        # Each of two threads is between operations for four fifths of the time.
        ([(n, n + 0.2) for n in range(10) for _ in range(2)], 2, "pauses"),
        # One thread of a user who asked for two, as there is one operation at a time.
        ([(n, n + 0.2) for n in range(10)], 1, "pauses"),
        ([(n, n + 0.9) for n in range(10)], 1, "answers"),
        # After the last has begun, a thread without further operations does not pause.
        ([(0, 9), *((n / 10, n / 10 + 0.1) for n in range(5))], 2, "answers"),
        ([(0, 9)], 8, "answers"),
        # A function with a single object, again and again, has work for one thread of eight.
        ([(n, n + 0.9) for n in range(10)], 8, "answers"),
    ],
)
def test_pauses_between_operations_are_not_the_store(
    tmp_path: Path, spans_s: list[tuple[float, float]], threads: int, by: str
) -> None:
    ops = [
        replace(
            operation(n, start_ns=round(begin * S), end_ns=round(end * S)),
            last_byte_sent_ns=round(begin * S) + S // 1000,
        )
        for n, (begin, end) in enumerate(sorted(spans_s))
    ]
    of = replace(record(0, ops), cpus=2, run_wait_ns=0, interpreter_ns=0)
    of = replace(of, cpu_user_s=0.1, cpu_sys_s=0.0)
    outcomes = [Outcome(submitted_ns=0, collected_ns=11 * S, result=of)]
    of_job = replace(job(number=1), load=Load(threads=threads))
    assert reported(saved(tmp_path / "run", outcomes, of=of_job)) == {by: 1}


@uses("workload custom")
@pytest.mark.parametrize(("apart_s", "by"), [(0.0, "unknown"), (1.0, "rate_limit")])
def test_of_own_code_with_threads_the_cause_is_not_known(
    tmp_path: Path, apart_s: float, by: str
) -> None:
    """Two requests in flight: of two threads that wait, or of 16 that sleep most of the time."""
    ops = [operation(0, kind=OperationKind.CALL, end_ns=10 * S, size=1000)]
    for n in range(8):
        begin_ns = round((n // 2 + n % 2 * 0.1 if not apart_s else n * apart_s) * S)
        ops.append(
            replace(
                operation(n + 1, start_ns=begin_ns, end_ns=begin_ns + S),
                last_byte_sent_ns=begin_ns + S // 100,
            )
        )
    of = replace(record(0, ops), cpus=2, run_wait_ns=0, cpu_user_s=0.1, cpu_sys_s=0.0)
    outcomes = [Outcome(submitted_ns=0, collected_ns=11 * S, result=of)]
    of_job = replace(job(number=1), workload="custom")
    assert reported(saved(tmp_path / "run", outcomes, of=of_job)) == {by: 1}


@pytest.mark.parametrize(
    ("launch_s", "delivery_s", "state"), [(0.0, 5.0, "delivery"), (5.0, 0.0, "launch")]
)
def test_idle_slots_are_reported(
    tmp_path: Path, launch_s: float, delivery_s: float, state: str
) -> None:
    curve = (np.linspace(0, 5, 26), np.linspace(0, 10e6, 26))
    run = functions(tmp_path / "run", [curve] * 8, launch_s=launch_s, delivery_s=delivery_s)
    slots = bottleneck(run, good_operations(run)).slots
    assert slots is not None
    assert slots["work"] == pytest.approx(0.5)
    assert slots[state] == pytest.approx(0.5)


def test_a_report_says_how_long_slots_stood_idle(tmp_path: Path) -> None:
    curve = (np.linspace(0, 5, 26), np.linspace(0, 10e6, 26))
    run = functions(tmp_path / "run", [curve] * 8, launch_s=0.0, delivery_s=3.0)
    parts = (bottleneck_text(summarize(run)) or "").split("; ")
    assert parts[1] == "slots idle 38% of the time (collecting records 38%)"


def test_a_free_slot_waits_for_the_driver_as_long_as_functions_are_left(tmp_path: Path) -> None:
    # One slot: the second function is submitted 2 s after the end of the first one.
    curve = (np.linspace(0, 4, 21), np.linspace(0, 10e6, 21))
    run = functions(tmp_path / "run", [curve] * 2, launch_s=0.0, delivery_s=0.0, begin_s=(0.0, 6.0))
    slots = bottleneck(run, good_operations(run)).slots
    assert slots is not None
    assert {name: round(share, 6) for name, share in slots.items() if share} == {
        "work": 0.8,
        "unfilled": 0.2,
    }


def test_unequal_rates_are_the_store(tmp_path: Path) -> None:
    curves = [(np.linspace(0, 5, 26), np.linspace(0, (300 + 60 * i) * 1e6, 26)) for i in range(8)]
    assert reported(functions(tmp_path / "run", curves)) == {"rate_limit": 8}


def test_a_busy_cpu_is_the_client(tmp_path: Path) -> None:
    curve = (np.linspace(0, 5, 26), np.linspace(0, 500e6, 26))
    run = functions(tmp_path / "run", [curve] * 8, cpu_share=0.97)
    assert reported(run) == {"client": 8}


def test_waiting_for_a_cpu_is_the_client_too(tmp_path: Path) -> None:
    curve = (np.linspace(0, 5, 26), np.linspace(0, 500e6, 26))
    run = functions(tmp_path / "run", [curve] * 8, cpu_share=0.3)
    waits = np.full(8, round(4.5 * S))
    run = replace(run, functions={**run.functions, "run_wait_ns": waits})
    assert reported(run) == {"client": 8}


def test_slow_starts_are_the_launch(tmp_path: Path) -> None:
    curve = (np.linspace(0, 2, 11), np.linspace(0, 200e6, 11))
    assert reported(functions(tmp_path / "run", [curve] * 4, launch_s=10)) == {"launch": 4}


def test_the_launch_of_a_later_wave_does_not_begin_with_the_first(tmp_path: Path) -> None:
    # Launched 100 s later, by a resume: this delay is not launch time.
    late = 100 * S
    run = functions(tmp_path / "run", [(np.linspace(0, 5, 26), np.linspace(0, 500e6, 26))] * 2)
    table = dict(run.functions)
    for name in ("submitted_ns", "collected_ns", "start_ns", "end_ns"):
        table[name] = table[name] + np.array([0, late])
    table["launch"] = np.array([0, 1])
    operations = dict(run.operations)
    for name in ("start_ns", "end_ns"):
        operations[name] = operations[name] + np.array([0, late])
    assert reported(replace(run, functions=table, operations=operations)).get("launch", 0) == 0


def test_an_unknown_submission_is_no_launch(tmp_path: Path) -> None:
    curves = [(np.linspace(0, 5, 26), np.linspace(0, (300 + 60 * i) * 1e6, 26)) for i in range(8)]
    run = functions(tmp_path / "run", curves)
    unsaid = np.full(8, -1)
    run = replace(run, functions={**run.functions, "submitted_ns": unsaid})
    assert reported(run) == {"rate_limit": 8}


def test_silence_is_not_an_answer(tmp_path: Path) -> None:
    curves = [(np.linspace(0, 5, 26), np.linspace(0, (300 + 60 * i) * 1e6, 26)) for i in range(8)]
    run = functions(tmp_path / "run", curves)
    unsaid = np.full(8, -1)
    run = replace(run, functions={**run.functions, "cpus": unsaid})
    assert reported(run) == {"unknown": 8}


@pytest.mark.parametrize(("late_s", "by"), [(0, "schedule"), (0.4, "schedule"), (2, "rate_limit")])
def test_functions_on_schedule_are_bounded_by_it(tmp_path: Path, late_s: float, by: str) -> None:
    # Due every 0.1 s for 10 s, and more and more late.
    ops = []
    for number in range(100):
        due = number * S // 10
        start = due + round(late_s * S * number / 99)
        op = operation(number, start_ns=start, end_ns=start + S // 50)
        ops.append(replace(op, intended_ns=due))
    one = replace(record(0, ops), cpus=2, run_wait_ns=0)
    run = saved(tmp_path / "run", [Outcome(submitted_ns=0, collected_ns=99 * S, result=one)])
    assert reported(run) == {by: 1}


def test_functions_without_bytes_have_no_bottleneck(tmp_path: Path) -> None:
    failed = operation(error="not_found", size=0)
    run = saved(
        tmp_path / "run", [Outcome(submitted_ns=0, collected_ns=S, result=record(0, [failed]))]
    )
    assert reported(run) == {}


def threaded(path: Path, threads: int, **used: float | None) -> Run:
    """Return a run of one function: ten seconds, in which each thread had a request in flight.

    ``cpu``, ``wait`` and ``python`` are CPU time, time without a CPU and user
    time of Python threads, over all threads, in shares of the run; ``lock`` is the share of
    probes that waited for the lock.
    """
    took = 10 * S
    ops = [operation(n, end_ns=took) for n in range(threads)]
    attempts = [replace(attempt(n), start_ns=0, end_ns=took) for n in range(threads)]
    lock, python = used.get("lock"), used.get("python", used["cpu"])
    of = replace(
        record(0, ops, attempts=attempts),
        cpu_user_s=10 * (used["cpu"] or 0),
        cpu_sys_s=0.0,
        cpus=16,
        run_wait_ns=round(took * (used.get("wait") or 0)),
        interpreter_ns=None if python is None else round(took * python),
        lock_probes=None if lock is None else 100,
        lock_delayed=None if lock is None else round(100 * lock),
    )
    outcomes = [Outcome(submitted_ns=0, collected_ns=11 * S, result=of)]
    of_job = replace(job(number=1), load=Load(threads=threads))
    return saved(path, outcomes, of=of_job)


@each_row(
    ("threads", "used", "by"),
    [
        # A store without cost, on an idle machine and on a busy one.
        (1, {"cpu": 0.99}, "client"),
        (1, {"cpu": 0.4, "wait": 0.5}, "client"),
        (2, {"cpu": 1.05, "python": 0.9, "lock": 0.6}, "interpreter_lock"),
        (2, {"cpu": 0.7, "wait": 1.2, "lock": 0.4}, "client"),
        (8, {"cpu": 1.1, "python": 0.8, "lock": 0.95}, "interpreter_lock"),
        (8, {"cpu": 0.6, "wait": 3.4, "python": 0.5, "lock": 0.77}, "interpreter_lock"),
        (8, {"cpu": 7.5, "python": 0.3, "lock": 0.1}, "client"),
        # A client without cost.
        (1, {"cpu": 0.05}, "rate_limit"),
        (1, {"cpu": 0.05, "wait": 0.2}, "rate_limit"),
        (2, {"cpu": 0.1, "lock": 0.02}, "rate_limit"),
        (8, {"cpu": 0.3, "lock": 0.1}, "rate_limit"),
        (8, {"cpu": 0.3, "wait": 2.0, "lock": 0.2}, "rate_limit"),
        # Between both, and with records that lack the waits of threads.
        (1, {"cpu": 0.7}, "unknown"),
        (2, {"cpu": 0.65, "lock": 0.4}, "unknown"),
        (8, {"cpu": 0.7, "python": 0.65, "lock": 0.4}, "unknown"),
        (8, {"cpu": 0.3, "python": None}, "unknown"),
    ],
)
def test_threads_do_not_turn_the_verdict_round(
    tmp_path: Path, threads: int, used: dict[str, float | None], by: str
) -> None:
    assert reported(threaded(tmp_path / "run", threads, **used)) == {by: 1}


def test_a_library_that_hides_its_requests_is_known_between_bounds(tmp_path: Path) -> None:
    def hidden(path: Path, cpu: float) -> Run:
        run = threaded(path, 1, cpu=cpu)
        return replace(run, provenance={"client": {"attempts": "hidden"}})

    # The library may send many concurrent requests, and each of them may have waited for the store.
    assert reported(hidden(tmp_path / "a", 0.9)) == {"unknown": 1}
    assert reported(hidden(tmp_path / "b", 0.2)) == {"store_or_network": 1}
    assert reported(hidden(tmp_path / "c", 15.0)) == {"client": 1}
    # A library that waits for a CPU all the time is not busy "2% of the time".
    starved = hidden(tmp_path / "d", 0.2)
    starved.functions["run_wait_ns"][:] = (
        starved.functions["end_ns"] - starved.functions["start_ns"]
    )
    found = bottleneck(starved, good_operations(starved))
    assert found.client_share is not None
    assert found.client_share_most is not None
    assert found.client_share < 0.1
    assert found.client_share_most > 0.9
    assert f"{found.client_share:.0%} to {found.client_share_most:.0%}" in str(
        bottleneck_text(summarize(starved))
    )
    exact = threaded(tmp_path / "e", 1, cpu=0.2)
    assert bottleneck(exact, good_operations(exact)).client_share_most is None


def test_a_report_names_a_crowd_of_functions_that_costs_more_than_threads(tmp_path: Path) -> None:
    curves = [bucket_curve(burst=50, rate=50, line=400, total=1000)] * 8

    def text(*, cpus: int, cpu_share: float = 0.99, control: Target | None = None) -> str:
        run = functions(tmp_path / f"{cpus}-{cpu_share}-{control}", curves, cpu_share=cpu_share)
        provenance = {**run.provenance, "cpus": cpus}
        run = replace(run, job=replace(run.job, control=control), provenance=provenance)
        return str(bottleneck_text(summarize(run)))

    assert "4 functions at once per CPU, which cost more" in text(cpus=2)
    assert "per CPU" not in text(cpus=3)
    assert "per CPU" not in text(cpus=2, cpu_share=0.05)
    assert "per CPU" not in text(cpus=2, control=Target(bucket="b"))


def test_encrypting_does_not_keep_the_lock(tmp_path: Path) -> None:
    run = threaded(tmp_path / "run", 8, cpu=0.9, lock=0.1)
    assert reported(run) == {"interpreter_lock": 1}
    target = replace(run.job.target, endpoint_url="https://store")
    assert reported(replace(run, job=replace(run.job, target=target))) == {"rate_limit": 1}


@uses("feature aws")
@each_row(
    ("memory", "mbps", "by"),
    [
        (1769, 625, "function_network"),
        (4096, 625, "function_network"),
        (4096, 1218.75, "function_network"),
        (10240, 3000, "function_network"),
        # Neither law.
        (10240, 1500, "rate_limit"),
        (1769, 1218.75, "rate_limit"),
        # The default: no memory is set.
        (None, 625, "rate_limit"),
    ],
)
def test_one_function_alone_is_known_by_the_rate_of_its_memory(
    tmp_path: Path, memory: int | None, mbps: float, by: str
) -> None:
    rate = mbps * 1e6 / 8
    curve = bucket_curve(burst=300 * MIB, rate=rate, line=1200 * MIB, total=300 * MIB + 10 * rate)
    assert reported(functions(tmp_path / "run", [curve], memory_mib=memory)) == {by: 1}


def test_functions_of_two_memory_sizes_have_two_limits(tmp_path: Path) -> None:
    curves = [
        bucket_curve(burst=60 * MIB, rate=rate * MIB, line=400 * MIB, total=400 * MIB)
        for rate in (20, 40)
        for _ in range(3)
    ]
    run = functions(tmp_path / "run", curves)
    table = {**run.functions, "memory_mib": np.array([2048] * 3 + [4096] * 3)}
    assert reported(replace(run, functions=table)) == {"rate_limit": 6}
    assert reported(run) == {"rate_limit": 6}, "all alike they are not"
