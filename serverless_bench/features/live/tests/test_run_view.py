"""The state of a run in progress, and its display in a terminal and in a log."""

import io
import re
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Console

from serverless_bench.executors.base import RunProgress
from serverless_bench.features.cost.so_far import CostSoFar
from serverless_bench.features.live.board import BoardTotals, BoardWriter, LiveBoard
from serverless_bench.features.live.bound_now import UNKNOWN
from serverless_bench.features.live.layout import AWAKE_NS
from serverless_bench.features.live.screen import live_screen, view_lines
from serverless_bench.features.live.text import log_line, sparkline
from serverless_bench.features.live.view import RunView
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import StoreProtocol
from serverless_bench.job.workload import Load
from tests.data.runs import S, attempt, executor_in_process, job, lost, operation, outcome, record
from tests.house.members import uses

MB = 10**6
OK = outcome(record(0, [operation()]))
BARS = "123456789"


class Hands:
    """A clock that only moves when a test sets it."""

    def __init__(self) -> None:
        self.ns = 0

    def __call__(self) -> int:
        return self.ns


class Site:
    """A run under way: a job, a board that its functions write on, and a clock."""

    def __init__(self, of: JobSpec, *, started: int = 0, response: bool = True) -> None:
        self.live, self.hands = RunProgress(started=started), Hands()
        board = LiveBoard.here()
        self.board: BoardWriter = board.writer()
        if response:
            self.live.begin(board)
        self.view = RunView(of, of.number, self.live, now_ns=self.hands)

    def at(self, seconds: float) -> "Site":
        self.hands.ns = round(seconds * S)
        return self

    def perform(self, *, count: int = 1, took_ns: int = S // 100, **what: object) -> None:
        """Have operations end that succeed, or fail with ``error`` and a status of 503."""
        rows = [operation(n, end_ns=took_ns, **what) for n in range(count)]  # type: ignore[arg-type]
        tried = [
            replace(attempt(n, error=rows[n].error, size=1000), end_ns=took_ns)
            for n in range(count)
        ]
        found = record(0, rows, attempts=tried)
        still = replace(found, start_ns=0, end_ns=0, cpu_user_s=0.0, cpu_sys_s=0.0)
        self.board.add_record(still)

    def use_cpu(self, seconds: float, **more: int) -> None:
        """Have a function be busy for so long, of two seconds."""
        found = replace(record(0, []), start_ns=0, end_ns=2 * S, cpu_user_s=seconds, cpu_sys_s=0.0)
        self.board.add_record(replace(found, **more))  # type: ignore[arg-type]


def shown(view: RunView, width: int = 80) -> str:
    return view_lines(view.look(), width).plain


def test_functions_are_counted_by_state() -> None:
    site = Site(job(number=5))
    look = site.view.look()
    assert (look.phase, look.functions["waiting"]) == ("starting", 5)
    site.live.started = 4
    for one in (OK, outcome(lost(1)), outcome(record(2, [], error="bug"))):
        site.view.add(one)
    look = site.view.look()
    assert look.phase == "write"
    assert look.functions == {"waiting": 1, "running": 1, "done": 1, "failed": 1, "lost": 1}
    assert "1 waiting, 1 running, 1 done, 1 failed, 1 lost of 5" in shown(site.view)
    site.live.started = 5
    for index in (3, 4):
        site.view.add(outcome(record(index, [operation()])))
    assert site.view.look().phase == "finishing"


def test_a_function_that_is_launched_again_is_counted_once() -> None:
    of = job(number=3)
    site = Site(of, started=3, response=False)
    for index in range(3):
        site.view.add(outcome(lost(index)))
    assert site.view.look().functions["lost"] == 3
    site.live.started += 3
    again = {"waiting": 0, "running": 3, "done": 0, "failed": 0, "lost": 0}
    assert site.view.look().functions == again
    site.view.add(outcome(lost(0)))
    site.view.add(outcome(record(1, [operation()])))
    assert site.view.look().functions == {**again, "running": 1, "done": 1, "lost": 1}
    site.view.add(outcome(lost(2)))
    assert site.view.look().functions == {**again, "running": 0, "done": 1, "lost": 2}
    assert "2 lost of 3" in log_line(site.view.look())


def test_rates_are_of_the_last_five_seconds() -> None:
    site = Site(replace(job(number=4, size=MB), objects=500), started=4)
    site.view.look()
    site.perform(count=100, size=MB)
    (rate,) = site.at(4).view.look().rates
    assert (rate.kind, rate.per_s, rate.operations) == ("put", 25, 100)
    site.at(8).view.look()
    site.at(9).view.look()
    (rate,) = site.at(13).view.look().rates
    assert (rate.per_s, rate.operations) == (0, 100)


def test_time_left_comes_from_bytes_or_from_the_duration() -> None:
    of = replace(job(number=4, size=10 * MB), objects=10)
    site = Site(of, started=4)
    site.view.look()
    site.board.on_moved["put"](100 * MB, 0)
    look = site.at(2).view.look()
    assert look.share == 0.25
    assert look.left_s == pytest.approx(6)
    timed = Site(replace(of, duration=10.0), started=4)
    timed.view.look()
    assert timed.at(4).view.look().left_s == pytest.approx(6)
    # With waves, only ended functions count.
    turns = Site(replace(of, concurrency=2, duration=10.0), started=2)
    turns.view.look()
    turns.view.add(OK)
    look = turns.at(10).view.look()
    assert look.share == 0.25
    assert look.left_s == pytest.approx(30)


@uses("workload mixed")
def test_preparing_is_a_phase_of_its_own() -> None:
    of = replace(job(number=2, workload="mixed"), load=Load(mix=(("get", 1.0),)))
    site = Site(replace(of, duration=10.0), started=2)
    tried = record(0, [replace(operation(), warmup=True)])
    site.board.add_record(tried)
    look = site.at(1).view.look()
    assert (look.phase, look.left_s, look.rates[0].kind) == ("preparing", None, "preparing")
    site.perform(kind=OperationKind.GET)
    look = site.at(2).view.look()
    assert (look.phase, [one.kind for one in look.rates]) == ("mixed", ["get"])


def test_percentiles_errors_and_retries_are_there() -> None:
    site = Site(job(number=1), started=1)
    site.view.look()
    site.perform(count=99, took_ns=S // 100)
    site.perform(took_ns=S)
    site.perform(count=3, error="throttled")
    look = site.at(2).view.look()
    assert look.latencies == ["p50 9.93 ms", "p99 9.93 ms"]
    assert look.totals.failures["throttled"] == 3
    assert "throttled 3" in shown(site.view)


def test_an_open_loop_has_what_was_asked_for_beside_it() -> None:
    of = replace(job(number=1), duration=10.0, load=Load(rate=20.0))
    site = Site(of, started=1)
    site.view.look()
    site.perform(count=20)
    assert "10/s of 20/s" in shown(site.at(2).view)


def test_the_bottleneck_is_named_if_known() -> None:
    of = job(number=1)
    of = replace(of, transfer=replace(of.transfer, connections=1))

    def bound(*, busy_s: float | None = None, failed: int = 0, rate: float | None = None) -> str:
        site = Site(replace(of, load=Load(rate=rate)), started=1)
        site.view.look()
        site.perform(count=100, took_ns=S // 50)
        site.perform(count=failed, error="throttled")
        if busy_s is not None:
            site.use_cpu(busy_s)
        return site.at(2).view.look().bound

    assert bound(busy_s=1.9).startswith("client CPU: ")
    assert bound(busy_s=0.2) == "store or network: functions wait 90% of the time"
    assert bound(busy_s=1.4) == UNKNOWN
    assert bound() == UNKNOWN
    assert bound(failed=25) == "errors and retries: 20% of attempts failed, mostly throttled"
    assert bound(busy_s=0.2, rate=50.0) == "target rate reached"
    # The bottleneck is unknown until a function has ended.
    assert Site(of, started=1).at(3).view.look().bound == UNKNOWN


def test_threads_may_wait_for_each_other_or_for_the_store() -> None:
    def bound(busy_s: float, probes: int = 0, delayed: int = 0) -> str:
        site = Site(replace(job(number=1), load=Load(threads=4)), started=1)
        site.view.look()
        site.perform(count=400, took_ns=S // 50)
        site.use_cpu(busy_s, lock_probes=probes, lock_delayed=delayed)
        return site.at(2).view.look().bound

    # Four threads waited for 8 s together. Were it for each other, somebody had been busy.
    assert bound(0.2) == "store or network: functions wait 90% of the time"
    assert bound(1.4) == UNKNOWN
    assert bound(1.4, 100, 80) == "GIL: contended 80% of the time"
    assert bound(0.2, 100, 80).startswith("GIL")
    assert bound(1.4, 7, 7) == UNKNOWN
    assert bound(0.2, 100, 49) == "store or network: functions wait 51% of the time"
    assert bound(7.6).startswith("client CPU: ")


def test_a_client_that_mostly_makes_bytes_is_said_to() -> None:
    site = Site(job(number=1), started=1)
    site.view.look()
    row = replace(operation(end_ns=S), payload_ns=round(1.2 * S))
    found = replace(record(0, [row], attempts=[]), cpu_user_s=0.0, cpu_sys_s=0.0)
    site.board.add_record(replace(found, start_ns=0, end_ns=0))
    site.use_cpu(1.9)
    busy = "client CPU: running or runnable 95%, mostly to make or compare bytes"
    assert site.at(2).view.look().bound == busy


@uses("executor lambda")
def test_functions_that_are_not_there_yet_are_a_matter_of_launch() -> None:
    of = job(number=1_000, concurrency=400)
    site = Site(replace(of, executor="lambda"), response=False)
    assert site.view.look().bound == "launch: 0 of 400 functions launched"
    site.live.started = 199
    assert "bottleneck launch: 199 of 400" in shown(site.view)
    assert "bottleneck: launch: 199 of 400" in log_line(site.view.look())
    site.live.started = 200
    assert site.view.look().bound == UNKNOWN
    # The account allows fewer concurrent functions, and the budget even fewer.
    site.live.started = 50
    site.live.concurrency = 200
    assert site.view.look().bound == "launch: 50 of 200 functions launched"
    site.live.limit = 100
    assert site.view.look().bound == UNKNOWN


def test_functions_of_this_process_run_in_sequence_without_waiting() -> None:
    of = replace(job(number=400), concurrency=400, executor=executor_in_process())
    assert Site(of, started=1).view.look().bound == UNKNOWN


def test_writers_that_are_too_late_are_conflicts() -> None:
    site = Site(job(number=1), started=1)
    site.view.look()
    tried = [replace(attempt(0), status=412, error="bad_request"), *[attempt(0)] * 3]
    site.board.add_record(record(0, [operation()], attempts=tried))
    bound = site.at(2).view.look().bound
    assert bound == "conflicts: 25% of attempts"
    assert site.live.totals().conflicts == 1  # type: ignore[union-attr]


def test_a_running_attempt_shows_the_bottleneck() -> None:
    site = Site(job(number=1), started=1)
    site.view.look()
    site.board.on_moved["put"](MB, 2 * S)
    site.use_cpu(0.2)
    assert site.at(2).view.look().bound.startswith("store or network")


def test_remote_functions_are_known_by_their_records() -> None:
    site = Site(job(number=2), started=2, response=False)
    # Their progress is unknown, so the view shows neither zeros nor rates.
    assert "2 launched, 0 done of 2" in shown(site.view)
    assert "remote functions report" in shown(site.view)
    assert log_line(site.view.look()).endswith(
        "remote functions report their operations when they end"
    )
    site.view.add(OK)
    look = site.at(2).view.look()
    assert look.totals.operations["put"] == 1
    assert (look.is_reporting, look.bound, look.timeline) == (False, UNKNOWN, ())
    lines = {" ".join(line.split()) for line in shown(site.view).splitlines()}
    assert {"put 1 so far", "latency p50 972 ms p99 972 ms (of those that ended)"} <= lines
    # Functions that reported while they ran are not counted twice.
    response = Site(job(number=2), started=2)
    response.view.add(OK)
    assert response.view.look().totals.attempts == 0


def test_cost_is_of_functions_that_say_their_memory_or_of_requests_on_amazon_s3() -> None:
    there = job(number=1)
    totals = LiveBoard.here()
    totals.writer().add_record(record(0, [operation()]))
    none = CostSoFar(there)
    none.add(OK)
    assert none.spent(totals.totals()) is None
    aws = replace(there, target=replace(there.target, endpoint_url="https://s3.amazonaws.com"))
    spent = CostSoFar(aws).spent(totals.totals())
    assert spent is not None
    assert spent.amount == pytest.approx(0.005 / 1000)
    billed = CostSoFar(there)
    billed.add(outcome(replace(record(0, [operation()]), memory_mib=1024)))
    spent = billed.spent(totals.totals())
    assert spent is not None
    assert spent.amount > 1.6e-5
    assert spent.text.startswith("$")
    # On another cloud, without prices from the user, there is no cost.
    elsewhere = replace(aws.target, protocol=StoreProtocol.GS, endpoint_url="")
    unpriced = CostSoFar(replace(aws, target=elsewhere, control=None))
    assert unpriced.spent(totals.totals()) is None


def test_bars_show_the_rate_over_time() -> None:
    steady = [(0, 0, 0), (S, MB, 1), (2 * S, 2 * MB, 2), (3 * S, 3 * MB, 3)]
    assert sparkline(steady, 30, BARS) == "999 up to 1.0 MB/s"
    half = [(0, 0, 0), (S, 2 * MB, 1), (2 * S, 3 * MB, 2), (3 * S, 3 * MB, 2)]
    assert sparkline(half, 30, BARS) == "95  up to 2.0 MB/s"
    assert sparkline(steady, 1, BARS) == "9 up to 1.0 MB/s"
    # Without bytes, operations are shown.
    assert sparkline([(0, 0, 0), (S, 0, 7)], 30, BARS) == "9 up to 7/s"
    assert sparkline([(0, 0, 0)], 30, BARS) is None
    assert sparkline([(0, 0, 0), (S, 0, 0)], 30, BARS) is None


def test_a_long_run_keeps_a_bounded_timeline() -> None:
    site = Site(job(number=1), started=1)
    for second in range(2_000):
        site.board.on_moved["put"](MB, 0)
        look = site.at(second).view.look()
    assert len(look.timeline) <= 512
    assert look.timeline[-1][1] == 2_000 * MB
    assert sparkline(look.timeline, 8, BARS) == "99999999 up to 1.0 MB/s"


@pytest.mark.parametrize("width", [30, 60, 80, 160])
def test_no_line_is_longer_than_the_terminal(width: int) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=width, color_system="truecolor")
    site = Site(replace(job(number=3), load=Load(rate=20.0)), started=2)
    with live_screen(site.view, console, refresh_per_second=0.01) as screen:
        for kind in OperationKind:
            site.perform(kind=kind)
        site.perform(count=5, error="throttled")
        site.at(3).view.look()
        screen.refresh()
    plain = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "\n", plain).splitlines()
    assert {"functions", "rate", "latency", "errors", "total", "history", "bottleneck"} <= {
        line.split()[0] for line in lines if line
    }
    assert max(map(cell_len, lines)) <= width


def test_colours_and_letters_are_those_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    site = Site(job(number=3), started=2)
    site.perform(error="throttled")
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    console = Console(file=out, force_terminal=True, width=70)
    console.print(view_lines(site.at(1).view.look(), 70, unicode=False))
    text = out.buffer.getvalue().decode("ascii")
    assert "31m" not in text
    assert "throttled 1" in text


def test_a_log_has_it_in_one_line() -> None:
    site = Site(job(number=2), started=1)
    site.view.look()
    site.perform(count=50, kind=OperationKind.HEAD, size=0)
    line = log_line(site.at(2).view.look())
    assert line.startswith("2 s: write, 1 waiting, 1 running, 0 done of 2; head 25/s, 25.0 kB/s")
    assert "p50 9.93 ms, p99 9.93 ms; bottleneck: " in line


def test_totals_are_those_of_the_board() -> None:
    site = Site(job(number=1), started=1)
    site.perform(count=9)
    site.perform(error="throttled")
    totals = site.view.look().totals
    assert (totals.bytes["put"], totals.operations["put"], totals.failed["put"]) == (10_000, 10, 1)
    assert (totals.failures["throttled"], totals.attempts) == (1, 10)
    assert sum(totals.histogram) == 9


def test_cpu_time_is_no_operation() -> None:
    site = Site(job(number=1))
    site.use_cpu(1.0)
    totals = site.live.totals()
    assert isinstance(totals, BoardTotals)
    assert (totals.measured, totals.words[AWAKE_NS]) == (0, S)
