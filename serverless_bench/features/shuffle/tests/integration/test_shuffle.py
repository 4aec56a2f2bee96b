"""``sbench shuffle``, as a user runs it, against the store's log, with functions that die."""

import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from serverless_bench.features.audit.sources import read_request_log
from serverless_bench.features.check.checked_run import audited
from serverless_bench.features.cost.expected import expected
from serverless_bench.features.cost.forecast import CostConditions
from serverless_bench.features.loopback.faults import FaultKind, FaultPlan, PlannedFault
from serverless_bench.features.loopback.server import LoopbackServer, serving
from serverless_bench.features.loopback.state import LoopbackSettings
from serverless_bench.features.shuffle.load import ShuffleLoad
from serverless_bench.rundir.run import Run, load_run
from tests.clouds.lambda_hosts import NAME, running_host
from tests.commands.command import Apart, Done, Sbench
from tests.commands.processes import Family
from tests.stores.servers import KEYS

LAYOUTS = ("objects", "ranges")
PATIENT = ("--poll", "0.05", "--format", "json", "--name", "s")


def shuffle(sbench: Sbench, server: LoopbackServer, *flags: str | int) -> tuple[Done, Run]:
    where = ("--endpoint-url", server.endpoint_url, "--bucket", "any")
    done = sbench("shuffle", *where, *PATIENT, *flags)
    assert "Traceback" not in done.err
    return done, load_run(sbench.directory / "sbench-runs" / "s")


def phases(report: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    mapped, reduced = report["shuffle"]["phases"]
    return mapped, reduced


@pytest.mark.parametrize(
    ("layout", "reduce", "more"),
    [
        ("objects", "barrier", ("--threads", 2)),
        ("objects", "eager", ("--threads", 3)),
        ("ranges", "barrier", ("--threads", 3)),
        ("ranges", "eager", ()),
    ],
)
def test_the_store_saw_what_the_records_and_the_plan_say(
    tmp_path: Path, layout: str, reduce: str, more: tuple[str | int, ...]
) -> None:
    request_log = tmp_path / "request_log"
    sbench = Sbench(tmp_path, KEYS)
    with serving(LoopbackSettings(request_log=request_log)) as server:
        flags = ("--mappers", 5, "--reducers", 4, "--size", 1_000_003, *more)
        done, run = shuffle(sbench, server, "--partitions", layout, "--reduce", reduce, *flags)
        assert done.code == 0, done
        server.state.request_log.settle()
        assert audited(run, request_log).differences == ()
        keys = {*run.ledger()}
        requests = [
            r for r in read_request_log(request_log) if r.key in keys or "/shuffle/" in r.key
        ]
        seen = Counter(request.operation for request in requests)
        if reduce == "barrier":
            last_put = max(r.head_ns for r in requests if r.operation == "put")
            assert last_put < min(r.head_ns for r in requests if r.operation == "get")
        mapped, reduced = phases(done.json)
        plan = expected(run.job, CostConditions(memory_mib=1769, architecture="arm64"))
        assert plan is not None
        assert seen["put"] == plan.phases[0].requests == mapped["planned_requests"]
        assert mapped["requests"] == {"put": seen["put"]}
        assert reduced["requests"] == {"get": seen["get"], "list": seen["list_objects"]}
        mappers = ShuffleLoad.narrow(run.job.load).mappers
        assert seen["put"] == mappers * (4 if layout == "objects" else 1)
        assert seen["get"] == mappers * 4
        # Each reducer lists once at least, and each of its threads waits: for its own partitions,
        # or at a barrier for the last of each thread of a mapper.
        threads = run.job.load.threads
        ends = threads if (layout, reduce) == ("objects", "barrier") else 1
        waits = 4 * min(mappers, threads) * ends
        assert reduced["planned_requests"] == seen["get"] + waits
        assert seen["list_objects"] >= 4
        assert (done.json["shuffle"]["partitions"], done.json["shuffle"]["lost"]) == (
            mappers * 4,
            0,
        )
        assert mapped["bytes"] == reduced["bytes"] == done.json["verified_bytes"] == 1_000_003
        assert sbench("clean", run.path).code == 0
        server.state.request_log.settle()
        assert audited(run, request_log, cleaned=True).left == ()


class Flips(FaultPlan):
    """Flips bits of what a reducer gets from a mapper, and of nothing else."""

    def __init__(self, mapper: int, place: str) -> None:
        super().__init__(7, {FaultKind.FLIP: 1.0})
        self._mapper = f"{mapper:08x}."
        self._place = place

    def decide(self, request: str, key: str, where: str = "") -> PlannedFault | None:
        is_it = self._mapper in key and self._place in f"{key} {where}"
        return super().decide(request, key, where) if is_it else None


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_flipped_partition_is_named(tmp_path: Path, layout: str) -> None:
    with serving(LoopbackSettings()) as server:
        server.state.fault_plan = Flips(1, "/shuffle/2/" if layout == "objects" else "=200-")
        flags = ("--mappers", 3, "--reducers", 4, "--size", 1200, "--partitions", layout)
        done, _ = shuffle(Sbench(tmp_path, KEYS), server, *flags)
    assert done.code == 7, done
    lost = done.json["shuffle"]
    assert lost["lost_partitions"] == [{"mapper": 1, "reducer": 2, "error": "corrupt"}], lost
    assert (lost["lost"], done.json["corrupt_objects"]) == (1, 1)
    text = Sbench(tmp_path, KEYS)("report", "s")
    assert "lost 1 partition of 12, as mapper-reducer: 1-2 (corrupt)" in text.out


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="functions need Linux")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_flipped_partition_of_lambda_functions_is_named(tmp_path: Path, layout: str) -> None:
    request_log = tmp_path / "request_log"
    with serving(LoopbackSettings(request_log=request_log)) as server, running_host() as host:
        server.state.fault_plan = Flips(6, "/shuffle/3/" if layout == "objects" else "=90-")
        flags = ("--mappers", 8, "--reducers", 5, "--size", 1200, "--partitions", layout)
        where = ("--executor", "lambda", "--function", NAME)
        done, run = shuffle(Apart(tmp_path, host.environment), server, *flags, *where)
        assert done.code == 7, done
        server.state.request_log.settle()
        assert audited(run, request_log).differences == ()
    assert [done.json[name] for name in ("ok", "failed", "lost")] == [12, 1, 0], done
    lost = done.json["shuffle"]["lost_partitions"]
    assert lost == [{"mapper": 6, "reducer": 3, "error": "corrupt"}]
    assert done.json["verified_bytes"] == 1200 - 30
    assert done.json["bill"]["total"] > 0


class Kills(FaultPlan):
    """Kills the functions that run when an object is written, once, and does not keep it."""

    def __init__(self, family: Family, place: str) -> None:
        super().__init__(7, {})
        self._family = family
        self._place = place
        self._done = False

    def decide(self, request: str, key: str, where: str = "") -> PlannedFault | None:
        if not self._done and request == "put" and self._place in key:
            self._done = True
            for worker in self._family.workers():
                worker.kill()
            return PlannedFault(kind=FaultKind.RESET_PUT, number=0, rng=random.Random(0))
        return None


@pytest.mark.parametrize(
    ("layout", "reduce"),
    [("objects", "barrier"), pytest.param("ranges", "eager", marks=pytest.mark.full)],
)
def test_a_killed_mapper_loses_its_partitions_and_nothing_is_double(
    tmp_path: Path, family: Family, layout: str, reduce: str
) -> None:
    request_log = tmp_path / "request_log"
    sbench = Apart(tmp_path, {**KEYS, **family.mark})
    with serving(LoopbackSettings(request_log=request_log)) as server:
        server.state.fault_plan = Kills(family, f"{1:08x}.")
        # One at a time, so that the one that is killed is the mapper.
        flags = ("--mappers", 3, "--reducers", 4, "--size", 1200, "--concurrency", 1)
        more = ("--partitions", layout, "--reduce", reduce, "--patience", "0.1")
        done, run = shuffle(sbench, server, *flags, *more)
        assert done.code == 6, done
        assert [done.json[name] for name in ("ok", "failed", "lost")] == [2, 4, 1], done
        missing = [{"mapper": 1, "reducer": n, "error": "not_found"} for n in range(4)]
        assert done.json["shuffle"]["lost_partitions"] == missing
        names = [f"1-{reducer} (not_found)" for reducer in range(4)]
        assert f"{', '.join(names[:3])}, 1 more" in " ".join(sbench("report", "s").out.split())
        assert ", ".join(names) in " ".join(sbench("report", "s", "--full").out.split())
        # The partitions of the other mappers are read.
        assert done.json["verified_bytes"] == 800
        again = sbench("resume", run.path, "--format", "json")
        # The mapper writes now, but reducers that have given up are not launched again.
        assert [again.json[name] for name in ("ok", "failed", "lost")] == [3, 4, 0], again
        assert again.json["shuffle"]["lost_partitions"] == missing
        server.state.request_log.settle()
        run = load_run(run.path)
        assert audited(run, request_log).differences == ()
        written = [r.key for r in read_request_log(request_log) if r.operation == "put" and r.ok]
        assert sorted(written) == sorted({*run.ledger()})


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_partition_that_nobody_read_is_found_in_the_request_log(
    tmp_path: Path, layout: str
) -> None:
    request_log = tmp_path / "request_log"
    with serving(LoopbackSettings(request_log=request_log)) as server:
        flags = ("--mappers", 2, "--reducers", 2, "--size", 1200, "--partitions", layout)
        _, run = shuffle(Sbench(tmp_path, KEYS), server, *flags)
        server.state.request_log.settle()
    lines = request_log.read_text().splitlines(keepends=True)
    at = [number for number, line in enumerate(lines) if '"get"' in line][-1]
    request_log.write_text("".join(lines[:at] + lines[at + 1 :]))
    assert "asked" in {one.about for one in audited(run, request_log).differences}


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="functions need Linux")
def test_events_that_come_twice_move_each_partition_once_and_phases_have_a_price(
    tmp_path: Path,
) -> None:
    request_log = tmp_path / "request_log"
    with serving(LoopbackSettings(request_log=request_log)) as server, running_host() as host:
        host.set_faults({"duplicate": 0.5, "seed": 42})
        flags = ("--mappers", 6, "--reducers", 5, "--size", 30_000)
        where = ("--executor", "lambda", "--function", NAME)
        done, run = shuffle(Apart(tmp_path, host.environment), server, *flags, *where)
        assert done.code == 0, done
        server.state.request_log.settle()
        assert audited(run, request_log).differences == ()
    assert (done.json["ok"], done.json["verified_bytes"]) == (11, 30_000)
    assert done.json["shuffle"]["lost"] == 0
    written = Counter(r.key for r in read_request_log(request_log) if r.operation == "put" and r.ok)
    assert {written[key] for key in run.ledger()} == {1}
    bill = done.json["bill"]
    phased = sum(phase["dollars"] for phase in phases(done.json))
    around = bill["dollars"]["control"] + bill["dollars"]["logs"]
    # The probes before the run are of no phase.
    assert 0 < phased < bill["total"] - around
    assert 0 <= done.json["shuffle"]["stragglers_dollars"] < phased
