"""``--max-cost``, without a cloud: the cost comes from records."""

from dataclasses import replace
from pathlib import Path

import pytest

from serverless_bench.base.errors import CostError, UsageError
from serverless_bench.driver.run import CutShort, run_job
from serverless_bench.driver.task import CostLimit, Spending, Task
from serverless_bench.executors import open_executor
from serverless_bench.executors.base import RunProgress
from serverless_bench.features.compare.runs import check_cost
from serverless_bench.features.cost.budget import Budget
from serverless_bench.features.cost.limit import cost_limit
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.workload import Load
from serverless_bench.rundir.record import InvocationRecord, Outcome
from tests.data.loads import array_load, load_of
from tests.data.runs import (
    S,
    executor_in_process,
    executor_that,
    job,
    lost,
    operation,
    outcome,
    record,
)
from tests.house.members import uses
from tests.tables import each_row

MIB = 1 << 20


def flags(limit: float) -> CostLimit:
    return CostLimit(limit=limit)


def write(functions: int = 10) -> JobSpec:
    return replace(
        job(number=functions, size=MIB),
        executor=executor_that(lambda info: info.billed),
        options={"memory": 1024, "arch": "arm64"},
    )


def one(index: int, *, seconds: int) -> Outcome:
    return outcome(record(index, [operation(end_ns=seconds * S)]))


def test_a_job_that_would_cost_more_is_refused() -> None:
    estimate = Budget(write(), flags(1.0)).estimate
    assert 0 < estimate < 1e-3
    with pytest.raises(CostError, match="nothing was started"):
        Budget(write(), flags(estimate * 0.99))
    # Except for the driver's requests for the store's clock.
    assert Budget(write(20), flags(1.0)).estimate == pytest.approx(2 * estimate, rel=0.03)


def test_the_cost_of_probes_is_counted() -> None:
    many = tuple(f"f{number}" for number in range(30))
    asking = write().with_options(function=many)
    silent = asking.with_options(probe=False)
    # 20 s of 1 GB each cost $0.0000133 a second.
    limit = Budget(silent, flags(1.0)).estimate + 30 * 20 * 0.0000133334
    with pytest.raises(CostError, match="nothing was started"):
        Budget(asking, flags(limit))
    live, more = RunProgress(), RunProgress()
    Budget(replace(asking, deadline=1.0), flags(1.0)).watch(live, lambda _: None)
    Budget(replace(silent, deadline=1.0), flags(1.0)).watch(more, lambda _: None)
    assert live.limit is not None
    assert more.limit is not None
    assert live.limit < more.limit


def test_a_job_that_exceeds_its_limit_is_stopped() -> None:
    budget = Budget(replace(write(), deadline=5.0), flags(0.001))
    seen: list[Outcome] = []
    watch = budget.watch(RunProgress(started=10), seen.append)
    # A GB-second costs $0.0000133; ten functions of 1 s are far below a tenth of a cent.
    watch(one(0, seconds=1))
    assert budget.spent == pytest.approx(1.3e-5, rel=0.7)
    with pytest.raises(CostError, match="the 8 under way"):
        watch(one(1, seconds=20))  # longer than a function within its deadline
    assert len(seen) == 2, "what has arrived is shown before anything is stopped"


HUGE = replace(write(1000), size=2 << 30, concurrency=1000)
UNBOUNDED = {
    "sizes": replace(HUGE, size=None, load=Load(sizes="uniform:2GiB:2GiB")),
    "a duration": replace(HUGE, size=MIB, duration=600.0),
    "a duration of small objects": replace(HUGE, size=1000, duration=600.0),
    "operations of a mix": replace(
        HUGE, workload="mixed", load=Load(mix=(("get", 1), ("put", 1)), operations=100)
    ),
    "a mix for a time": replace(
        HUGE,
        workload="mixed",
        size=MIB,
        duration=600.0,
        load=Load(mix=(("get", 45), ("head", 30), ("put", 15), ("delete", 10)), rate=1000),
    ),
    "arrays": replace(
        HUGE,
        workload="array",
        size=None,
        objects=10,
        load=array_load(library="zarr", shape=(8192, 8192), chunks=(512, 512), driver="zarr3"),
    ),
    "a function of the user's own": replace(
        HUGE, workload="custom", size=None, load=load_of("custom", code="x")
    ),
}
"""Jobs of a thousand functions that used to pass ``--max-cost 0.10``."""


@each_row("what", UNBOUNDED)
def test_unknown_costs_count_as_their_bound(what: str) -> None:
    with pytest.raises(CostError, match="nothing was started"):
        Budget(UNBOUNDED[what], flags(0.10))
    allowed = Budget(UNBOUNDED[what], flags(1e6))
    assert 0.10 < allowed.estimate < 1e6


def test_random_sizes_cost_as_much_as_their_mean() -> None:
    fixed, drawn = (Budget(job, flags(1e6)).estimate for job in (HUGE, UNBOUNDED["sizes"]))
    assert drawn == pytest.approx(fixed)


def test_a_job_above_the_limit_is_refused_with_a_sufficient_deadline() -> None:
    """Expected to cost 0.69, and 12 if every function ran until its deadline."""
    limit = 3.0
    assert Budget(HUGE, flags(1e6)).estimate < limit
    with pytest.raises(CostError, match="ran to the 900 s `deadline`") as caught:
        Budget(HUGE, flags(limit))
    advised = float(caught.value.hint.split()[1])
    assert 2 * 22 < advised < 900
    Budget(replace(HUGE, deadline=advised), flags(limit))


def test_launches_stay_within_the_budget() -> None:
    """However the functions behave that are under way, the bill stays below the limit."""
    of = replace(write(1000), concurrency=50, deadline=60.0)
    most = 61 * 0.0000133334  # with a second to start
    limit = 100 * most
    live = RunProgress()
    budget = Budget(of, flags(limit))
    watch = budget.watch(live, lambda _: None)
    assert live.limit is not None
    assert 90 <= live.limit <= 110
    live.in_flight = 50
    for index in range(60):
        live.in_flight -= 1
        watch(one(index, seconds=60))
        live.in_flight = min(50, max(live.in_flight, live.limit))
        assert budget.spent + live.in_flight * most <= limit
    assert live.in_flight < 50
    live.in_flight = 0
    while live.limit > 1:
        index += 1
        watch(one(index, seconds=60))
    with pytest.raises(CostError, match="one more could come to"):
        watch(one(index + 1, seconds=60))


def test_lost_functions_are_billed_until_given_up() -> None:
    budget = Budget(write(), flags(1.0))
    watch = budget.watch(RunProgress(), lambda _: None)
    watch(Outcome(submitted_ns=0, collected_ns=100 * S, result=lost(0)))
    assert budget.spent == pytest.approx(100 * 0.0000133334, rel=0.01)
    never = replace(lost(1), not_started=True)
    watch(Outcome(submitted_ns=0, collected_ns=100 * S, result=never))
    assert budget.spent == pytest.approx(100 * 0.0000133334, rel=0.01)


@uses("workload noop")
def test_a_running_job_is_cut_short_with_its_records(tmp_path: Path) -> None:
    """Through the real fan-out: no-ops that count as expensive ones."""
    of = replace(job(number=5, workload="noop"), executor=executor_in_process())
    budget = Budget(of, flags(1.0))
    watch = budget.watch(RunProgress(), lambda _: None)

    def dear(outcome: Outcome) -> None:
        assert isinstance(outcome.result, InvocationRecord)
        end_ns = outcome.result.end_ns + 10**6 * S
        watch(replace(outcome, result=replace(outcome.result, end_ns=end_ns)))

    with pytest.raises(CutShort) as caught:
        run_job(of, tmp_path / "run", on_outcome=dear)
    assert caught.value.exit_code == CostError.exit_code == 12
    assert list(caught.value.run.functions["status"]).count("ok") == 1
    assert caught.value.run.ended


@uses("workload read")
def test_reads_need_sizes() -> None:
    of = replace(write(), workload="read", size=None)
    keys = [f"sbench/{'0' * 32}.{MIB}"]
    assert Budget(of, flags(1.0), keys).estimate > 0
    with pytest.raises(UsageError, match="do not contain their size"):
        Budget(of, flags(1.0), ["report.pdf"])


@uses("executor lambda")
@pytest.mark.parametrize("value", [0.0, float("nan")])
def test_a_limit_is_checked(value: float) -> None:
    with pytest.raises(UsageError, match="positive"):
        cost_limit("lambda", max_cost=value)


@uses("executor lambda")
def test_a_size_that_no_function_can_have_is_refused() -> None:
    with pytest.raises(UsageError, match="must be 128 to 10240"):
        open_executor(replace(write(), executor="lambda", options={"memory": 64}))


@pytest.mark.parametrize(
    ("remote", "says"), [(False, "is free"), (True, "costs what its machines cost")]
)
def test_unbilled_jobs_have_no_limit(says: str, *, remote: bool) -> None:
    executor = executor_that(lambda info: info.remote is remote and not info.billed)
    with pytest.raises(UsageError, match=says):
        cost_limit(executor, max_cost=1.0)
    assert cost_limit(executor).limit is None


def test_the_runs_of_a_series_share_a_limit() -> None:
    estimate = Budget(write(), flags(1.0)).foreseen
    task = Task(job=write(), cost=flags(1.0), spending=Spending(1 - 2.5 * estimate))
    check_cost([task, task])
    with pytest.raises(CostError, match="together; nothing was started"):
        check_cost([task, task, task])
    # Another task has a limit of its own.
    check_cost([task, task, replace(task, spending=Spending())])
    with pytest.raises(CostError, match=r"more than `max_cost` .*, of which .* is spent.*nothing"):
        Budget(write(), replace(task.cost, spent=1 - 0.5 * estimate))
