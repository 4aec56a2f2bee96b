"""The cost of a run so far, and the live view with a clock that does not start at 0."""

from dataclasses import replace

import pytest

from serverless_bench.executors.base import RunProgress
from serverless_bench.features.cost.prices import Prices, prices_for
from serverless_bench.features.cost.so_far import CostSoFar
from serverless_bench.features.live.board import BoardTotals, LiveBoard
from serverless_bench.features.live.bound_now import UNKNOWN
from serverless_bench.features.live.tests.test_run_view import MB, Site
from serverless_bench.features.live.view import RunView
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.workload import OWN_FUNCTION
from tests.data.runs import S, job, lost, operation, outcome, record
from tests.house.members import uses

HERE = job(number=1)
AWS = replace(HERE, target=replace(HERE.target, endpoint_url="https://s3.amazonaws.com"))


def prices() -> Prices:
    found = prices_for(AWS, None)
    assert found is not None
    return found


def totals(*kinds: OperationKind) -> BoardTotals:
    board = LiveBoard.here()
    for kind in kinds:
        board.writer().add_record(record(0, [operation(kind=kind)]))
    return board.totals()


def test_functions_are_billed_by_their_cpu_and_add_up() -> None:
    def cost(*machines: str) -> float:
        found = CostSoFar(HERE)
        for machine in machines:
            one = replace(record(0, [operation()]), memory_mib=1024, machine=machine)
            found.add(outcome(one))
        spent = found.spent(totals())
        assert spent is not None
        return spent.amount

    # A request of the PUT class, and an invocation; a line of a log is not much.
    beside = 0.005 / 1000 + 2e-7
    arm, intel = cost("aarch64") - beside, cost("x86_64") - beside
    assert cost("arm64") == cost("aarch64")
    assert arm / intel == pytest.approx(0.0000133334 / 0.0000166667, rel=0.01)
    assert cost("x86_64", "x86_64", "x86_64") == pytest.approx(3 * cost("x86_64"))


def test_requests_are_billed_if_they_have_a_price() -> None:
    put = totals(OperationKind.PUT)
    assert CostSoFar(HERE).spent(put) is None
    # A user's own prices apply to any store.
    own = replace(prices(), currency="EUR")
    found = CostSoFar(HERE, own)
    spent = found.spent(put)
    assert spent is not None
    assert spent.amount == pytest.approx(0.005 / 1000)
    assert "EUR" in spent.text
    twice = totals(OperationKind.PUT, OperationKind.PUT)
    spent = CostSoFar(AWS).spent(twice)
    assert spent is not None
    assert spent.amount == pytest.approx(2 * 0.005 / 1000)
    assert spent.text.startswith("$")
    # A lost function, or one without a memory size, is not billed.
    found = CostSoFar(AWS)
    found.add(outcome(lost(0)))
    found.add(outcome(record(0, [operation()])))
    spent = found.spent(put)
    assert spent is not None
    assert spent.amount == pytest.approx(0.005 / 1000)


def test_rates_and_times_count_from_when_the_view_was_made() -> None:
    of = replace(job(number=4, size=MB), objects=10)
    site = Site(of, started=4)
    site.hands.ns = 1000 * S
    site.view = RunView(of, 4, site.live, now_ns=site.hands)
    look = site.view.look()
    assert (look.elapsed_s, look.left_s, look.share) == (0, None, 0)
    # Functions are active, but no byte has been moved yet.
    assert site.at(1001).view.look().left_s is None
    site.perform(count=8, size=MB)
    look = site.at(1002).view.look()
    (rate,) = look.rates
    assert (look.elapsed_s, rate.per_s, look.achieved_per_s) == (2, 4, 4)
    assert look.timeline[-1][0] == 2 * S
    assert look.share == pytest.approx(8 * 1000 / (40 * MB))
    assert look.left_s == pytest.approx(2 * (1 - look.share) / look.share)


@uses("workload custom")
def test_a_users_function_has_an_unknown_bottleneck() -> None:
    own = replace(job(number=1), workload=OWN_FUNCTION)
    own = replace(own, transfer=replace(own.transfer, connections=1))
    site = Site(own, started=1)
    site.view.look()
    site.perform(count=100, took_ns=S // 50)
    site.use_cpu(0.2)
    assert site.at(2).view.look().bound == UNKNOWN


def test_bytes_of_a_span_are_its_own_unverified_statement() -> None:
    board = LiveBoard.here()
    span = replace(operation(kind=OperationKind.CALL, size=700), verified_bytes=0, bad_bytes=0)
    board.writer().add_record(record(0, [span], attempts=[]))
    assert board.totals().bytes["call"] == 700


def test_an_unreported_run_counts_after_its_end() -> None:
    live = RunProgress(started=1)
    view = RunView(job(number=1), 1, live, now_ns=lambda: 0)
    view.add(outcome(record(0, [operation(n) for n in range(3)])))
    look = view.look()
    assert (look.totals.measured, look.functions["done"], look.phase) == (3, 1, "finishing")


def test_records_add_up_and_missing_values_count_as_zero() -> None:
    board = LiveBoard.here()
    one = replace(record(0, []), cpu_user_s=1.0, cpu_sys_s=0.5, run_wait_ns=7, lock_probes=None)
    for _ in range(2):
        board.writer().add_record(one)
    assert board.totals().awake_ns == 2 * (1_500_000_000 + 7)
    assert board.totals().lock_probes == (0, 0)


def test_the_last_point_of_a_timeline_is_there_however_long_it_is() -> None:
    site = Site(job(number=1), started=1)
    for second in range(1200):
        timeline = site.at(second).view.look().timeline
        assert timeline[-1][0] == second * S
    assert [at for at, *_ in timeline] == sorted({at for at, *_ in timeline})
