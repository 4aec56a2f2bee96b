"""Remote launching and finding records, with processes that deliver for real."""

import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import pytest

from serverless_bench.base import clock
from serverless_bench.base.clock import utc_stamp, wall_ns
from serverless_bench.base.errors import AccessDenied, ConnectionLost, ExecutorError, StoreError
from serverless_bench.executors.base import RunProgress
from serverless_bench.features.remote import map as remote
from serverless_bench.features.remote.claims import RecordKey, for_run, get_claim
from serverless_bench.features.remote.delivery import handle_delivery
from serverless_bench.features.remote.launcher import Launcher, NotLaunchedError
from serverless_bench.features.remote.map import RemoteMap
from serverless_bench.features.remote.view import ControlView, RequestedRecords
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.job.target import Target
from serverless_bench.rundir.record import InvocationRecord, Lost, Outcome
from serverless_bench.worker.object_io import ObjectIO
from tests.commands.processes import PATIENCE_S
from tests.stores.servers import Server, credentials

COUNT = 6
RUN = "run"
START_S = 120


@pytest.fixture(scope="module")
def workers(moto: Server) -> Iterator[ProcessPoolExecutor]:
    # Not forked, because this process has threads.
    context = multiprocessing.get_context("spawn")
    with credentials(moto.environment), ProcessPoolExecutor(2, context) as pool:
        pool.submit(abs, 1).result(PATIENCE_S)
        yield pool


@pytest.fixture
def job(moto: Server, prefix: str) -> JobSpec:
    target = Target(bucket=moto.bucket, endpoint_url=moto.endpoint_url, prefix=prefix)
    return JobSpec(
        workload="write",
        target=target,
        control=replace(target, prefix=f"{prefix}control/"),
        number=COUNT,
        concurrency=COUNT,
        size=1000,
        deadline=300,
        options={"start_timeout": START_S},
    )


@dataclass
class Here(Launcher):
    """Passes events to processes of this machine, each as many times as set."""

    workers: ProcessPoolExecutor
    times: Mapping[int, int] = field(default_factory=dict)
    refuse: Callable[[InvocationSpec], Exception | None] = lambda _: None
    batch: int = 1
    threads: int = 2
    most: int = COUNT
    sent: list[InvocationSpec] = field(default_factory=list)
    most_flying: int = 0
    closed: bool = False
    left: set[int] = field(init=False)
    repeated: Event = field(default_factory=Event)
    """Set when all repeated deliveries were made."""

    def __post_init__(self) -> None:
        self.left = {index for index, count in self.times.items() if count > 1}
        if not self.left:
            self.repeated.set()

    def admit(self, wanted: int, in_flight: int) -> int:
        self.most_flying = max(self.most_flying, in_flight)
        return min(wanted, self.most - in_flight)

    def launch(self, events: Callable[[], Iterable[InvocationSpec]]) -> int:
        for number, one in enumerate(events(), 1):
            assert number <= self.batch
            self.sent.append(one)
            if one.index == COUNT - 1:
                # The run may end with the last record: all repetitions have been delivered by then.
                assert self.repeated.wait(PATIENCE_S)
            for _ in range(self.times.get(one.index, 1)):
                self.workers.submit(handle_delivery, asdict(one)).result(PATIENCE_S)
            self.left.discard(one.index)
            if not self.left:
                self.repeated.set()
            if problem := self.refuse(one):
                raise problem
        return 0

    def close(self) -> None:
        self.closed = True


def run(
    job: JobSpec, launcher: Launcher | None, *, wave: int = 0, seen: RequestedRecords | None = None
) -> list[Outcome]:
    specs = invocation_specs(job, run_id=RUN, created_ns=wall_ns(), wave=wave)
    return list(RemoteMap(job, launcher, RunProgress(), seen=seen).run(specs))


def lost(outcomes: Sequence[Outcome]) -> list[Lost]:
    return [one.result for one in outcomes if isinstance(one.result, Lost)]


def records(outcomes: Sequence[Outcome]) -> list[InvocationRecord]:
    return [one.result for one in outcomes if isinstance(one.result, InvocationRecord)]


def test_every_invocation_has_one_outcome(job: JobSpec, workers: ProcessPoolExecutor) -> None:
    launcher = Here(workers, most=2)
    outcomes = run(job, launcher)
    assert sorted(one.index for one in records(outcomes)) == list(range(COUNT))
    assert all(one.ok and one.delivery for one in records(outcomes))
    assert launcher.most_flying <= 2
    assert launcher.closed
    for outcome in outcomes:
        assert outcome.submitted_ns <= outcome.result.start_ns <= outcome.collected_ns  # type: ignore[union-attr]


def test_the_budget_may_delay_launches(job: JobSpec, workers: ProcessPoolExecutor) -> None:
    launcher, progress = Here(workers), RunProgress(limit=1)
    specs = invocation_specs(job, run_id=RUN, created_ns=wall_ns())
    for number, _ in enumerate(RemoteMap(job, launcher, progress).run(specs), 1):
        assert progress.in_flight == 0
        assert len(launcher.sent) == number
    assert launcher.most_flying == 1
    # A record each, and looks for a stop by another process.
    assert progress.requests["get"] >= COUNT
    assert progress.requests["put"] == 1


def test_many_records_are_fetched_at_once(
    job: JobSpec, workers: ProcessPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = 20
    job = replace(job, number=number, concurrency=number)
    run(job, Here(workers, most=number))
    # A distant store: no response comes before all requests have arrived.
    together, fetch = Barrier(number), ControlView.fetch

    def fetch_far(self: ControlView, key: RecordKey) -> InvocationRecord | Lost:
        together.wait(PATIENCE_S)
        return fetch(self, key)

    monkeypatch.setattr(ControlView, "fetch", fetch_far)
    assert len(records(run(job, None))) == number


def test_records_are_fetched_while_further_pages_are_listed(
    job: JobSpec, workers: ProcessPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(job, Here(workers))
    fetched, fetch, listed = Event(), ControlView.fetch, ControlView.records

    def fetch_and_tell(self: ControlView, key: RecordKey) -> InvocationRecord | Lost:
        result = fetch(self, key)
        fetched.set()
        return result

    def two_pages(self: ControlView, targets: Sequence[int]) -> Iterator[list[RecordKey]]:
        (keys,) = listed(self, targets)
        yield keys[:1]
        # The store answers the second request after the driver has seen a record of the first.
        assert fetched.wait(PATIENCE_S)
        yield keys[1:]

    monkeypatch.setattr(ControlView, "fetch", fetch_and_tell)
    monkeypatch.setattr(ControlView, "records", two_pages)
    assert len(records(run(job, None))) == COUNT


FAILING = """#!/bin/sh
# Credentials that are renewed for each request, and cannot be for a while.
echo >> "{calls}"
calls=$(wc -l < "{calls}")
test "$calls" -gt 3 -a "$calls" -lt 7 && exit 1
echo '{{"Version": 1, "AccessKeyId": "{key}", "SecretAccessKey": "{secret}",'
echo '"Expiration": "{expires}"}}'
"""


def test_credentials_that_cannot_be_renewed_for_a_while_are_waited_for(
    job: JobSpec, moto: Server, workers: ProcessPoolExecutor, tmp_path: Path
) -> None:
    keys = moto.environment
    script = FAILING.format(
        calls=tmp_path / "calls",
        key=keys["AWS_ACCESS_KEY_ID"],
        secret=keys["AWS_SECRET_ACCESS_KEY"],
        expires=utc_stamp(wall_ns() + 300 * 10**9, separators=True),
    )
    (tmp_path / "renew").write_text(script)
    (tmp_path / "renew").chmod(0o755)
    (tmp_path / "config").write_text(f"[default]\ncredential_process = {tmp_path / 'renew'}\n")
    nothing = dict.fromkeys(keys, "")
    run(job, Here(workers))
    progress, specs = RunProgress(), invocation_specs(job, run_id=RUN, created_ns=wall_ns())
    with credentials({**nothing, "AWS_CONFIG_FILE": str(tmp_path / "config")}):
        outcomes = list(RemoteMap(job, None, progress).run(specs))
    assert len(records(outcomes)) == COUNT
    assert any("the credentials cannot be renewed" in note for note in progress.notes)


class Lenient(Here):
    """Delivers events that may start at any time, whatever the driver expects."""

    def launch(self, events: Callable[[], Iterable[InvocationSpec]]) -> int:
        return super().launch(lambda: [replace(one, not_after_ns=1 << 62) for one in events()])


@pytest.mark.parametrize("answered", [1, 2], ids=["before a listing", "after a listing"])
def test_a_store_that_refuses_every_request_for_a_while_costs_no_function(
    job: JobSpec, workers: ProcessPoolExecutor, monkeypatch: pytest.MonkeyPatch, answered: int
) -> None:
    answer, numbers = ObjectIO._run, count()

    def refuse(self: ObjectIO, *request: Any) -> Any:
        if answered <= next(numbers) < 60:
            raise AccessDenied("they have expired")
        return answer(self, *request)

    monkeypatch.setattr(ObjectIO, "_run", refuse)
    for name in ("_CHECK_S", "_POLL_S", "GRACE_S", "SKEW_S"):
        monkeypatch.setattr(remote, name, 0.01)
    outcomes = run(replace(job, number=2).with_options(start_timeout=0.1), Lenient(workers))
    assert lost(outcomes) == []
    assert len(records(outcomes)) == 2


def test_an_event_says_until_when_it_may_begin(job: JobSpec, workers: ProcessPoolExecutor) -> None:
    launcher, before_ns = Here(workers), wall_ns()
    run(job, launcher)
    for sent in launcher.sent:
        assert before_ns < sent.not_after_ns - START_S * 10**9 < wall_ns()


class RefusedOnce(Here):
    """Makes its events twice, as if the first attempt had been refused."""

    def launch(self, events: Callable[[], Iterable[InvocationSpec]]) -> int:
        self.refused = next(iter(events()))
        super().launch(events)
        return 1


def test_how_late_it_may_begin_counts_from_the_latest_attempt(
    job: JobSpec, workers: ProcessPoolExecutor
) -> None:
    launcher = RefusedOnce(workers)
    (outcome,) = run(replace(job, number=1), launcher)
    assert isinstance(outcome.result, InvocationRecord)
    assert outcome.refusals == 1
    late_ns = launcher.refused.not_after_ns
    assert late_ns < launcher.sent[0].not_after_ns
    assert outcome.submitted_ns <= late_ns - START_S * 10**9, "what waiting took is not hidden"


def test_duplicates_are_collected_besides_counted_records(
    job: JobSpec, workers: ProcessPoolExecutor
) -> None:
    outcomes = run(job, Here(workers, times={2: 3, 4: 2}))
    counts = Counter((one.index, one.duplicate) for one in records(outcomes))
    assert counts == {(i, False): 1 for i in range(COUNT)} | {(2, True): 2, (4, True): 1}
    assert lost(outcomes) == []


def test_unstarted_functions_are_revoked(job: JobSpec, workers: ProcessPoolExecutor) -> None:
    launcher = Lenient(workers, times={1: 0})
    outcomes = run(job.with_options(start_timeout=1.0), launcher)
    (gone,) = lost(outcomes)
    assert (gone.index, gone.not_started) == (1, True)
    assert "not started" in gone.cause
    assert len(records(outcomes)) == COUNT - 1
    event = next(one for one in launcher.sent if one.index == 1)
    later = replace(event, not_after_ns=event.not_after_ns + 10**12)
    document = workers.submit(handle_delivery, asdict(later)).result(PATIENCE_S)
    assert document["refused"].startswith("cancelled"), "whatever comes after that does nothing"


def test_a_driver_that_slept_looks_for_records_before_it_gives_anything_up(
    job: JobSpec, workers: ProcessPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept, listed = Event(), ControlView.records
    monkeypatch.setattr(clock, "wall_ns", lambda: wall_ns() + 3600 * 10**9 * slept.is_set())

    def sleep_after_the_last(one: InvocationSpec) -> None:
        if one.index == COUNT - 1:
            slept.set()

    def records_at_the_second_try(
        self: ControlView, targets: Sequence[int]
    ) -> Iterator[list[RecordKey]]:
        if slept.is_set():
            monkeypatch.setattr(ControlView, "records", listed)
            raise ConnectionLost("the network is not back yet")
        yield []

    monkeypatch.setattr(ControlView, "records", records_at_the_second_try)
    outcomes = run(job, Here(workers, times={1: 0}, refuse=sleep_after_the_last))
    assert {one.index for one in records(outcomes)} == {0, 2, 3, 4, 5}
    (gone,) = lost(outcomes)
    assert (gone.index, gone.not_started) == (1, True)
    assert slept.is_set()


def test_refused_events_are_revoked_at_once(job: JobSpec, workers: ProcessPoolExecutor) -> None:
    def refuse(one: InvocationSpec) -> Exception | None:
        return NotLaunchedError("429, and 429 again", 7) if one.index in {0, 3} else None

    # The first of both was accepted after all.
    outcomes = run(job, Here(workers, times={3: 0}, refuse=refuse))
    (gone,) = lost(outcomes)
    assert (gone.index, gone.not_started, gone.cause) == (3, True, "429, and 429 again")
    by_index = {one.result.index: one for one in outcomes}
    assert by_index[3].refusals == by_index[0].refusals == 7
    assert isinstance(by_index[0].result, InvocationRecord)
    assert by_index[0].result.ok


def test_a_failing_launcher_ends_the_run(job: JobSpec, workers: ProcessPoolExecutor) -> None:
    launcher = Here(workers, refuse=lambda _: ExecutorError("no such function"))
    with pytest.raises(ExecutorError, match="no such function"):
        run(job, launcher)
    assert launcher.closed


def test_a_bug_in_a_launcher_is_no_hang(job: JobSpec, workers: ProcessPoolExecutor) -> None:
    with pytest.raises(ExecutorError, match="KeyError"):
        run(job, Here(workers, refuse=lambda _: KeyError("bug")))


def test_an_unreachable_control_prefix_is_reported_before_a_launch(
    job: JobSpec, workers: ProcessPoolExecutor
) -> None:
    assert job.control is not None
    launcher = Here(workers)
    with pytest.raises(StoreError, match="cannot be listed"):
        run(replace(job, control=replace(job.control, bucket="nobodys")), launcher)
    assert launcher.sent == []


def test_the_next_wave_does_not_collect_the_first_again(
    job: JobSpec, workers: ProcessPoolExecutor
) -> None:
    seen = RequestedRecords(COUNT)
    first = run(job, Here(workers), seen=seen)
    second = run(job, Here(workers), wave=1, seen=seen)
    assert len(records(first)) == len(records(second)) == COUNT
    assert {one.launch for one in records(second)} == {1}


def test_another_driver_collects_records_and_revokes_the_rest(
    job: JobSpec, workers: ProcessPoolExecutor
) -> None:
    since_ns = wall_ns()
    specs = list(invocation_specs(job, run_id=RUN, created_ns=since_ns))
    for spec in specs[:4]:
        assert workers.submit(handle_delivery, asdict(spec)).result(PATIENCE_S)["ok"]
    first = run(job.with_options(start_timeout=0.1), Here(workers, times={4: 0, 5: 0}))
    seen = RequestedRecords(COUNT)
    for one in records(first):
        if one.index != 0:
            seen.add(RecordKey(one.index, 0, one.delivery or ""))
    out = [replace(spec, launch=1) for spec in specs[4:]]
    follower = RemoteMap(job, None, RunProgress(), since_ns=since_ns, seen=seen)
    found = list(follower.run([specs[0], *out]))
    assert [one.index for one in records(found) if not one.duplicate] == [0]
    assert {(one.index, one.not_started) for one in lost(found)} == {(4, True), (5, True)}
    assert {one.cause for one in lost(found)} == {"the driver that launched it has ended"}
    assert job.control is not None
    store = ObjectIO(for_run(job.control, RUN))
    for spec in out:
        holder = get_claim(store, spec.index, 1, timeout_s=5)
        assert holder is not None
        assert "delivery" not in holder
