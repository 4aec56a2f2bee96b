"""Faults of a Dask cluster alone: its workers, its hosts' clocks and its scheduler."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from serverless_bench.metrics.clock_offsets import worker_offsets
from serverless_bench.rundir.run import load_run
from tests.clouds.dask_clusters import DaskCluster, running_cluster
from tests.commands.processes import PATIENCE_S, until
from tests.matrix.cells import Driver, counts_text, resumed
from tests.matrix.proxy import HOLD, Proxy, passes, proxy_of
from tests.matrix.rig import START_S, Result, Rig, Trial

SLOTS = (2, 2)
AHEAD_S = (3.0, -3.0)
MANY = ("--number", 8)
"""Twice as many functions as there are slots."""
HELD = ("--retries", 100)
"""Functions that are held go on as soon as they may."""


@contextmanager
def own_cluster(
    rig: Rig, name: str, ahead_s: tuple[float, ...] = ()
) -> Iterator[tuple[Trial, DaskCluster]]:
    """Start a cluster for one trial."""
    place = rig.directory / f"{name}-cluster"
    with running_cluster(place, rig.environment, *SLOTS, ahead_s=ahead_s) as cluster:
        trial = rig.trial(name)
        trial.executor_flags = ("--scheduler", cluster.address)
        yield trial, cluster


@contextmanager
def held(rig: Rig, trial: Trial) -> Iterator[Proxy]:
    """Let no function write an object until the proxy's rule is another: none is through before."""
    with proxy_of(rig.store.endpoint_url) as proxy:
        trial.endpoint_url = proxy.url
        data = trial.prefixes[0]
        proxy.rule = lambda method, path: HOLD if method == "PUT" and data in path else None
        yield proxy


def worker_killed(rig: Rig, fault: str) -> Result:
    """A worker is killed with -9 while its functions write; they end with it."""
    with own_cluster(rig, "worker-killed") as (trial, cluster), held(rig, trial) as proxy:
        with trial.started(*HELD) as driver:
            claimed(trial, driver, rig.number)
            cluster.workers[0].kill()
            proxy.rule = passes
            assert driver.wait(PATIENCE_S) == 6
        first = trial.check()
        assert first.ok > 0
        assert first.lost > 0
        took_s = trial.detect_s("lost")
        return trial.finish(fault, counts_text(first) + resumed(trial), took_s)


def worker_hangs(rig: Rig, fault: str) -> Result:
    """A worker stops for ever: its functions end by themselves, and it gets no more of them."""
    with own_cluster(rig, "worker-hangs") as (trial, cluster), held(rig, trial) as proxy:
        trial.requested = 8
        with trial.started(*MANY, *HELD, "--start-timeout", START_S) as driver:
            claimed(trial, driver, sum(SLOTS))
            cluster.workers[0].send_signal(signal.SIGSTOP)
            proxy.rule = passes
            assert driver.wait(PATIENCE_S) == 0
        first = trial.check()
        assert first.ok == trial.requested
        words = counts_text(first) + (
            f" after {waves + 1} launches" if (waves := trial.waves()) else ""
        )
        return trial.finish(fault, words, trial.detect_s("superseded"))


def clock_is_off(rig: Rig, fault: str) -> Result:
    """One host is 3 s ahead, and one behind: the run detects it, and its times are corrected."""
    with own_cluster(rig, "clock", AHEAD_S) as (trial, _):
        done = trial.write()
        summary = trial.check(done)
        assert (done.code, summary.ok) == (0, rig.number), done.err
        assert "off this machine's; corrected" in done.err
        offsets = worker_offsets(load_run(trial.path))
        assert not offsets.suspect.any()
        low_s, high_s = offsets.low_ns / 1e9, offsets.high_ns / 1e9
        both = [((low_s <= ahead_s) & (high_s >= ahead_s)).any() for ahead_s in AHEAD_S]
        assert all(both), (low_s, high_s)
        assert summary.clocks.corrected == rig.number
        return trial.finish(fault, f"{counts_text(summary)}; their instants corrected", None)


def scheduler_killed(rig: Rig, fault: str) -> Result:
    """The scheduler is killed with -9 while functions write, and others wait."""
    with own_cluster(rig, "scheduler-killed") as (trial, cluster), held(rig, trial) as proxy:
        trial.requested = 8
        with trial.started(*MANY, *HELD) as driver:
            claimed(trial, driver, sum(SLOTS))
            assert cluster.scheduler is not None
            cluster.scheduler.kill()
            cluster.scheduler.communicate()
            proxy.rule = passes
            assert driver.wait(PATIENCE_S) == 6
        first = trial.check()
        assert first.lost >= trial.requested - sum(SLOTS)
        took_s = trial.detect_s("lost")
        while cluster.workers:
            cluster.workers.pop().communicate(timeout=PATIENCE_S)
        until(lambda: not cluster.functions())
        cluster.start_scheduler()
        for slots in SLOTS:
            cluster.start_worker(slots)
        return trial.finish(fault, counts_text(first) + resumed(trial), took_s)


def claimed(trial: Trial, driver: Driver, number: int) -> None:
    """Wait until functions have begun; none of them is through, since they are held."""

    def enough() -> bool:
        assert driver.poll() is None, trial.errors.read_text()
        return sum("/claims/0" in key for key in trial.objects()) >= number

    until(enough)


OWN_CLUSTER: Final = (worker_killed, worker_hangs, clock_is_off, scheduler_killed)
"""Cells that have a cluster of their own."""
