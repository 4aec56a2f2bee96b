"""The bill against the requests that a store received: functions, barrier, claims and driver."""

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import pytest

from serverless_bench.driver import run as fanout
from serverless_bench.driver.run import run_job
from serverless_bench.executors.base import RunProgress
from serverless_bench.features.cost.bill import Bill, bill
from serverless_bench.features.cost.requests import requests_of
from serverless_bench.features.loopback.faults import FaultKind
from serverless_bench.features.loopback.server import serving
from serverless_bench.features.loopback.state import LoopbackSettings
from serverless_bench.features.remote.delivery import forget_stores, handle_delivery
from serverless_bench.features.remote.launcher import Launcher
from serverless_bench.features.remote.map import RemoteMap
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.job.target import Stat, Target, Transfer
from serverless_bench.job.workload import Load
from serverless_bench.rundir.record import Outcome
from serverless_bench.rundir.run import Run
from serverless_bench.worker.invocation import forget_clients
from tests.house.members import uses

MIB = 1 << 20
NAMES = {"list_objects": "list", "list_uploads": "list", "head_bucket": "head"}
FREE = {"abort_multipart", "delete", "delete_objects"}
MIX = (("get", 4), ("head", 3), ("put", 3), ("delete", 1), ("list", 1), ("delete_many", 1))


class Delivered(Launcher):
    """An executor that delivers each event in this process, and some of them twice."""

    def __init__(self, job: JobSpec, twice: Sequence[int] = ()) -> None:
        super().__init__(1)
        self._job = job
        self._twice = twice

    def map(
        self, invocations: Iterable[InvocationSpec], live: RunProgress
    ) -> Generator[Outcome, None, None]:
        return RemoteMap(self._job, self, live).run(invocations)

    def launch(self, events: Callable[[], Iterable[InvocationSpec]]) -> int:
        (one,) = events()
        for _ in range(1 + (one.index in self._twice)):
            handle_delivery(asdict(one))
        return 0

    def close(self) -> None:
        forget_clients()
        forget_stores()


@pytest.fixture(autouse=True)
def as_on_lambda(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in (
        ("AWS_ACCESS_KEY_ID", "any"),
        ("AWS_SECRET_ACCESS_KEY", "any"),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "1024"),
    ):
        monkeypatch.setenv(name, value)
    yield
    forget_clients()
    forget_stores()


def billed(
    directory: Path,
    job: JobSpec,
    monkeypatch: pytest.MonkeyPatch,
    *,
    faults: dict[FaultKind, float] | None = None,
    keys: Sequence[str] = (),
    twice: Sequence[int] = (),
) -> tuple[Run, Bill, Counter[str]]:
    """Run a job against a store of its own; return run, bill and the store's billed requests."""
    monkeypatch.setattr(fanout, "open_executor", lambda job: Delivered(job, twice))
    with serving(LoopbackSettings(rates=faults or {})) as server:
        target = replace(job.target, endpoint_url=server.endpoint_url)
        control = replace(target, prefix="control/")
        of = replace(job, target=target, control=control)
        # A slow machine would see some.
        run = run_job(of.with_options(progress_objects=False), directory, keys=keys)
        document = server.state.statistics()
    found = bill(run)
    assert found is not None
    seen = Counter[str]()
    for name, count in document["requests"].items():
        if name not in FREE:
            seen[NAMES.get(name, name)] += count
    return run, found, seen


def made(found: Bill) -> Counter[str]:
    """All requests of a bill by kind."""
    total = Counter({name: n for name, n in found.requests.items() if name not in found.overhead})
    for counts in found.overhead.values():
        total += Counter(counts)
    return total


def job(workload: str, **settings: object) -> JobSpec:
    known: dict[str, object] = {
        "target": Target(bucket="bucket", endpoint_url=""),
        "number": 3,
        "concurrency": 1,
        "size": 10_000,
        "objects": 2,
        "deadline": 60.0,
        **settings,
    }
    return JobSpec(workload=workload, **known)  # type: ignore[arg-type]


KEYS = [f"sbench/{index:032x}.{12 * MIB}" for index in range(6)]
JOBS = {
    "barrier": partial(job, "write", options={"barrier": 0.3}),
    "parts": partial(job, "write", size=11 * MIB, objects=1, transfer=Transfer(part_size=5 * MIB)),
    "ranges": partial(job, "read", transfer=Transfer(part_size=5 * MIB, stat=Stat.EACH)),
    "mix": partial(job, "mixed", load=Load(mix=MIX, operations=40), objects=4),
    "sizes": partial(job, "write", size=None, load=Load(sizes="uniform:1KiB:64KiB"), warm_up=1),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=uses("feature barrier") if name == "barrier" else ())
        for name in JOBS
    ],
)
def test_the_bill_has_every_request_that_the_store_saw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    of = JOBS[name]()
    keys = KEYS if of.workload == "read" else ()
    run, found, seen = billed(tmp_path / "run", of, monkeypatch, keys=keys, twice=[1])
    assert Counter(run.functions["status"]) == {"ok": 3, "duplicate": 1}
    assert found.requests_exact
    assert made(found) == seen
    # Four claims, of which one was taken, four records, and the stop object.
    assert found.overhead["control"]["put"] == 9
    # The claim that was taken, four records, and a look for a stop by each function.
    assert found.overhead["control"]["get"] >= 1 + 4 + 3
    assert (found.requests.get("barrier", 0) > 4) == ("barrier" in of.options)


def test_requests_answered_with_5xx_are_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = replace(JOBS["mix"](), transfer=Transfer(retries=20))
    faults = {FaultKind.SLOWDOWN: 0.3}
    run, found, seen = billed(tmp_path / "run", of, monkeypatch, faults=faults)
    refused = int((run.attempts["status"] == 503).sum())
    assert refused
    assert found.requests_exact
    # The store also counts refused requests, for claims and records and for free operations.
    assert sum(made(found).values()) < sum(seen.values())


@uses("feature barrier")
def test_a_run_whose_driver_was_killed_says_that_its_requests_are_not_exact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, found, _ = billed(tmp_path / "run", JOBS["barrier"](), monkeypatch)
    killed = replace(run, requests=None, store_requests=None, drivers_reported=False)
    assert not requests_of(killed).exact
    assert requests_of(killed).overhead["control"]["put"] == 2 * 3
    assert requests_of(killed).data == {"put": 6} == requests_of(run).data
    assert found.requests_exact
