"""CPU and waiting time of threads is counted, and identifies the bottleneck."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import pytest

from serverless_bench import JobSpec, run_job, summarize
from serverless_bench.base.units import NS_PER_S
from serverless_bench.clients.base import Exchange, Source
from serverless_bench.driver.coordinator import Coordinator
from serverless_bench.job.workload import Load
from serverless_bench.worker import runner
from serverless_bench.worker.cpu_time import CpuTimer, LockProbe, thread_counted
from tests.data.runs import TARGET, executor_in_process
from tests.house.members import uses
from tests.tables import each_row
from tests.twice import two_of_three
from tests.unit.flaky import FlakyClient

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux counts by thread")


BUSY_OR_NOT = pytest.mark.parametrize(
    "busy",
    [pytest.param(False, id="quiet"), pytest.param(True, id="busy", marks=pytest.mark.full)],
)
"""A machine as it is, and one that is kept busy, which costs three times as much."""


def compute(rounds: int) -> None:
    """Keep the interpreter busy; ten thousand rounds take about a millisecond."""
    for number in range(rounds):
        hash(number)


class Scripted(FlakyClient):
    """A put with given costs for the client and the store."""

    def __init__(self, rounds: int, store_s: float) -> None:
        super().__init__()
        self.rounds = rounds
        self.store_s = store_s

    def put(self, key: str, source: Source, exchange: Exchange) -> None:
        compute(self.rounds)
        if self.store_s:
            Event().wait(self.store_s)
        super().put(key, source, exchange)


@contextmanager
def busy_machine() -> Iterator[None]:
    """Two processes that compute, as long as the block lasts."""
    with ExitStack() as stack:
        for _ in range(2):
            spin = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.callback(spin.wait)
            stack.callback(spin.kill)
        yield


def bounded(path: Path, threads: int, objects: int, rounds: int, store_s: float) -> dict[str, int]:
    """Return the bottleneck of one function."""
    job = JobSpec(
        workload="write",
        target=TARGET,
        executor=executor_in_process(),
        number=1,
        objects=objects,
        size=100,
        load=Load(threads=threads),
    )
    runner.forget_clients()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "open_client", lambda *_: Scripted(rounds, store_s))
        # There is no store that could return the time.
        patch.setattr(Coordinator, "reach", lambda _: None)
        run = run_job(job, path)
        runner.forget_clients()
    exact = replace(run, provenance={**run.provenance, "client": {"attempts": "exact"}})
    return dict(summarize(exact).parts["bottleneck"].functions)


@uses("feature bottleneck")
@BUSY_OR_NOT
@each_row("threads", [1, 2, 8])
def test_a_store_without_cost_is_never_the_bottleneck(
    tmp_path: Path, threads: int, *, busy: bool
) -> None:
    with busy_machine() if busy else ExitStack():
        found = bounded(tmp_path / "run", threads, 400, 40_000, 0.0)
    # Time that a hypervisor or other processes take from the holder of the lock looks like waiting,
    # so the bottleneck may be unknown.
    assert set(found) <= {"client", "interpreter_lock", "unknown"}


@uses("feature bottleneck")
@BUSY_OR_NOT
@each_row("threads", [1, 2, 8])
def test_a_client_without_cost_is_never_the_bottleneck(
    tmp_path: Path, threads: int, *, busy: bool
) -> None:
    with busy_machine() if busy else ExitStack():
        found = bounded(tmp_path / "run", threads, 5 * threads, 100, 0.15)
    assert set(found) <= {"answers", "store_or_network", "unknown"}


def test_threads_that_are_gone_are_counted() -> None:
    usage = CpuTimer()

    def work() -> None:
        with thread_counted():
            compute(1_000_000)

    threads = [Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    used = usage.stop()
    assert used["interpreter_ns"] is not None
    assert used["run_wait_ns"] is not None
    assert used["run_wait_ns"] >= 0
    # All that was computed was Python, in threads that have ended.
    # The kernel divides user from system time anew for each thread and for the process.
    used_s = used["cpu_user_s"] + used["cpu_sys_s"]
    assert used["interpreter_ns"] <= (used_s + 0.001) * NS_PER_S
    assert used["interpreter_ns"] >= 0.8 * used["cpu_user_s"] * NS_PER_S


@pytest.mark.timing
def test_only_a_held_lock_delays_threads() -> None:
    def delayed() -> None:
        with LockProbe() as free:
            Event().wait(0.5)
        with LockProbe() as taken:
            compute(10_000_000)
        assert free.delayed / free.probes < 0.5 < taken.delayed / taken.probes

    two_of_three(delayed)
