"""``--max-cost``, without a cloud: what is spent comes from records."""

from dataclasses import replace
from pathlib import Path

import pytest

from serverless_bench.cli.budget import Budget, CostFlags, cost_flags
from serverless_bench.errors import CostError, UsageError
from serverless_bench.executors.base import Live
from serverless_bench.fanout import CutShort, run_job
from serverless_bench.record import Outcome
from serverless_bench.spec import JobSpec
from tests.runs import S, job, lost, operation, outcome, record

MIB = 1 << 20
NONE = {"max_cost": None, "prices": None, "memory": None, "arch": None, "executor": "lambda"}


def flags(limit: float, memory_mib: int = 1024) -> CostFlags:
    return CostFlags(limit=limit, prices=None, memory_mib=memory_mib, architecture="arm64")


def write(functions: int = 10) -> JobSpec:
    return replace(job(invocations=functions, object_bytes=MIB), executor="lithops")


def one(index: int, *, seconds: int) -> Outcome:
    return outcome(record(index, [operation(end_ns=seconds * S)]))


def test_a_job_that_would_cost_more_is_refused() -> None:
    estimate = Budget(write(), flags(1.0)).estimate
    assert 0 < estimate < 1e-3
    with pytest.raises(CostError, match="nothing was started"):
        Budget(write(), flags(estimate * 0.99))
    assert Budget(write(20), flags(1.0)).estimate == pytest.approx(2 * estimate, rel=0.01)


def test_a_job_that_comes_to_cost_more_is_stopped() -> None:
    budget = Budget(write(), flags(0.001))
    seen: list[Outcome] = []
    watch = budget.watch(Live(started=10), seen.append)
    # A GB-second costs $0.0000133; ten functions of 1 s are far below a tenth of a cent.
    watch(one(0, seconds=1))
    assert budget.spent == pytest.approx(1.3e-5, rel=0.7)
    with pytest.raises(CostError, match="the 8 under way"):
        watch(one(1, seconds=20))
    assert len(seen) == 2, "what has arrived is shown before anything is stopped"


def test_what_is_lost_is_billed_until_it_was_given_up() -> None:
    budget = Budget(write(), flags(1.0))
    watch = budget.watch(Live(), lambda _: None)
    watch(Outcome(submitted_ns=0, collected_ns=100 * S, result=lost(0)))
    assert budget.spent == pytest.approx(100 * 0.0000133334, rel=0.01)
    never = replace(lost(1), never_began=True)
    watch(Outcome(submitted_ns=0, collected_ns=100 * S, result=never))
    assert budget.spent == pytest.approx(100 * 0.0000133334, rel=0.01)


def test_a_running_job_is_cut_short_with_its_records(tmp_path: Path) -> None:
    """Through the real fan-out: no-ops that count as expensive ones."""
    of = replace(job(invocations=5, workload="noop"), executor="inline")
    budget = Budget(of, flags(1e-12))
    with pytest.raises(CutShort) as caught:
        run_job(of, tmp_path / "run", on_outcome=budget.watch(Live(), lambda _: None))
    assert caught.value.exit_code == CostError.exit_code == 12
    assert list(caught.value.run.functions["status"]).count("ok") == 1
    assert caught.value.run.ended


def test_reads_need_sizes() -> None:
    of = replace(write(), workload="read", object_bytes=None)
    keys = [f"sbench/{'0' * 32}.{MIB}"]
    assert Budget(of, flags(1.0), keys).estimate > 0
    with pytest.raises(UsageError, match="do not say their size"):
        Budget(of, flags(1.0), ["report.pdf"])


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("max_cost", 0.0, "positive"),
        ("max_cost", float("nan"), "positive"),
        ("memory", 64, "must be 128 to 10240"),
    ],
)
def test_flags_are_checked(name: str, value: float, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        cost_flags({**NONE, name: value})


@pytest.mark.parametrize("executor", ["local", "inline"])
@pytest.mark.parametrize("name", ["max_cost", "memory", "arch"])
def test_what_nobody_bills_has_no_limit(executor: str, name: str) -> None:
    with pytest.raises(UsageError, match="costs nothing"):
        cost_flags({**NONE, name: 1.0, "executor": executor})
    assert cost_flags({**NONE, "executor": executor}).limit is None
