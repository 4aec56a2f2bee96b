"""A driver on a machine that is suspended in the middle of a run.

No machine is suspended here: every wall clock advances by an hour at once, but no monotonic clock
of the driver does. Functions that have started by then do not notice it.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from serverless_bench.base import clock
from serverless_bench.base.clock import wall_ns as true_wall_ns
from serverless_bench.base.units import NS_PER_S
from serverless_bench.driver import run as driver
from serverless_bench.features.loopback import connection
from serverless_bench.features.loopback.server import serving
from serverless_bench.features.remote.deliveries import deliveries
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from serverless_bench.rundir.record import Outcome
from serverless_bench.rundir.run import load_run
from tests.clouds.lambda_hosts import KEYS, install, running_host
from tests.commands.command import Sbench
from tests.house.members import uses
from tests.stores.servers import credentials

HOUR_S = 3600
HANDLER = """
import time
from pathlib import Path
from serverless_bench.base import clock
from serverless_bench.features.remote import delivery
from serverless_bench.worker import invocation
from serverless_bench.features.remote.handler import handler

def wall_ns():
    return time.time_ns() + int(Path({path!r}).read_text())

for module in (clock, delivery, invocation):
    module.wall_ns = wall_ns
"""


class World:
    """The wall clocks of driver, store and functions, which a file sets ahead."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.write_text("0")
        self.handler = HANDLER.format(path=str(path))
        """Code of a function in this world."""

    def wall_ns(self) -> int:
        return true_wall_ns() + int(self._path.read_text())

    def sleep_after(self, count: int) -> Callable[[Outcome], None]:
        """Return a callback that advances the clocks by an hour after this number of functions."""
        collected = 0

        def on_outcome(_: Outcome) -> None:
            nonlocal collected
            collected += 1
            if collected == count:
                later = self._path.with_suffix(".later")
                later.write_text(str(HOUR_S * NS_PER_S))
                later.replace(self._path)

        return on_outcome


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    found = World(tmp_path / "world")
    for module in (clock, driver, connection):
        monkeypatch.setattr(module, "wall_ns", found.wall_ns)
    return found


@pytest.fixture
def job(world: World) -> Iterator[JobSpec]:
    del world  # the store has its clock
    with serving() as store, credentials(KEYS):
        target = Target(bucket="b", endpoint_url=store.endpoint_url, prefix="data/")
        yield JobSpec(workload="write", target=target, size=1 << 20, number=12)


@uses("feature check")
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="functions need Linux")
def test_what_is_left_runs_after_the_driver_has_slept(
    world: World, job: JobSpec, sbench: Sbench
) -> None:
    path = sbench.directory / "sbench-runs" / "w"
    with running_host(flags=["--share-packages"]) as host, credentials(host.environment):
        install(host, "asleep", {"asleep.py": world.handler}, "asleep.handler")
        job = replace(
            job,
            control=replace(job.target, prefix="control/"),
            executor="lambda",
            concurrency=1,
            options={"function": ("asleep",), "start_timeout": 600},
        )
        run = driver.run_job(job, path, on_outcome=world.sleep_after(4))
    launched = deliveries(run)
    assert launched is not None
    assert (launched.received, launched.not_started, run.waves) == (12, 0, ())
    report = sbench("report", "w", "--full").out
    assert "the driver's machine was suspended for 3,600 s" in report
    assert "12 of 12 functions ok, 0 failed, 0 lost" in report
    assert "without 3,600 s in which no driver was active" in report
    assert "the driver was suspended for 3,600 s" in sbench("check", "w").out
    records = path / "records.jsonl"
    records.write_text("".join(records.read_text().splitlines(keepends=True)[:-1]))
    run = load_run(path)
    assert not run.ended
    assert len(run.suspensions) == 1, "a driver that was killed has said it, too"


def test_functions_of_this_machine_sleep_with_their_driver(
    world: World, job: JobSpec, sbench: Sbench
) -> None:
    path = sbench.directory / "sbench-runs" / "w"
    local = replace(job, executor="local", concurrency=1, deadline=60)
    driver.run_job(local, path, on_outcome=world.sleep_after(4))
    report = sbench("report", "w", "--full").out
    assert "12 of 12 functions ok" in report, "none was killed for its silence"
    assert "the driver's machine was suspended for 3,600 s" in report
