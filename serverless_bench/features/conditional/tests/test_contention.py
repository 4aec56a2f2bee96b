"""Contenders against a store in memory that loses answers, and the resulting findings."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from serverless_bench.base.errors import BadRequest, ConnectionLost, NotFound, ServerFault
from serverless_bench.clients.base import ClientInfo, Exchange, Sink, Source
from serverless_bench.driver.plan import ledger
from serverless_bench.features.conditional.load import ConditionalLoad
from serverless_bench.features.conditional.shared_keys import Pattern, Version, encode
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.keys import new_run_id
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.job.target import Transfer
from serverless_bench.metrics.summary import summarize
from serverless_bench.rundir.record import InvocationRecord
from serverless_bench.rundir.rows import Act, Ending
from serverless_bench.worker import runner
from serverless_bench.worker.invocation import forget_clients, run_invocation
from tests.data.runs import TARGET, outcome, saved
from tests.tables import each_row
from tests.unit.flaky import FlakyClient

RUN = new_run_id(1)
FATES = ("fine", "lost", "dropped", "failed", "busy", "overtaken")
"""Fates of a write: its answer may be lost after it, or before; 500; 409; 412."""


class SharedClient(FlakyClient):
    """Writes on conditions; each write meets its fate."""

    info: ClassVar[ClientInfo] = replace(FlakyClient.info, conditional=True)

    def __init__(self, fates: Sequence[str] = ()) -> None:
        super().__init__()
        self.fates = list(fates)
        self.others = 0

    def get_tagged(self, key: str, sink: Sink, exchange: Exchange) -> str:
        if key not in self.objects:
            exchange.answered(404, {})
            raise NotFound("nothing there", status=404)
        self.get(key, sink, exchange)
        exchange.answered(200, {})
        return tag_of(self.objects[key])

    def put_if(self, key: str, source: Source, exchange: Exchange, *, etag: str | None) -> None:
        fate = self.fates.pop(0) if self.fates else "fine"
        if fate == "overtaken":
            # By a function of this run that leaves no record.
            self.others += 1
            there = self.objects.get(key)
            base = None if there is None else there.split(b'"')[7].decode()
            if etag is not None or there is None:
                new = Version(f"1.0.{self.others}", base, 1)
                self.objects[key] = encode(RUN, new)
        if fate == "dropped":
            raise ConnectionLost("reset")
        if fate == "failed":
            raise ServerFault("internal", status=500)
        if fate == "busy":
            raise ServerFault("ConditionalRequestConflict", status=409)
        there = self.objects.get(key)
        if (None if there is None else tag_of(there)) != etag:
            raise BadRequest("PreconditionFailed", status=412)
        self.put(key, source, exchange)
        if fate == "lost":
            raise ConnectionLost("reset")


def tag_of(data: bytes) -> str:
    return f'"{hash(data):x}"'


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    made: list[float] = []
    monkeypatch.setattr("serverless_bench.base.clock.sleep", made.append)
    return made


def conditional(pattern: Pattern, **load: Any) -> JobSpec:
    count = None if pattern is Pattern.CLAIM else 5
    return JobSpec(
        workload="conditional",
        target=TARGET,
        transfer=Transfer(retries=3),
        number=2,
        objects=load.pop("objects", 2),
        load=ConditionalLoad(pattern=pattern, **{"operations": count, **load}),
    )


def invocation(job: JobSpec) -> InvocationSpec:
    return next(invocation_specs(job, run_id=RUN, created_ns=1 << 62))


def run(job: JobSpec, client: SharedClient) -> InvocationRecord:
    forget_clients()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "open_client", lambda *_: client)
        record = run_invocation(invocation(job))
        forget_clients()
    return record


def found(job: JobSpec, record: InvocationRecord) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        made = saved(Path(scratch) / "run", [outcome(record)], of=job)
        contention: dict[str, Any] = summarize(made).to_json()["contention"]
    return contention


@pytest.mark.parametrize("pattern", Pattern)
def test_a_store_that_keeps_its_word_gives_every_commit(pattern: Pattern) -> None:
    job = conditional(pattern)
    record = run(job, SharedClient())
    commits = 2 if pattern is Pattern.CLAIM else 5
    says = found(job, record)
    assert (says["commits"], says["taken"], says["violated_keys"]) == (commits, 0, 0)
    assert says["retries_per_commit"] == 0
    last = [op.kind for op in record.operations if op.warmup]
    assert last == [OperationKind.OBSERVE] * 2


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(Pattern), st.lists(st.sampled_from(FATES), max_size=12))
def test_lost_answers_cause_no_violation(pattern: Pattern, fates: list[str]) -> None:
    job = conditional(pattern)
    record = run(job, SharedClient(fates))
    says = found(job, record)
    assert says["violated_keys"] == 0
    unknown = [row for row in record.accesses if row.ending is Ending.UNKNOWN]
    assert says["unknown_writes"] == len(unknown)
    assert {op.error for op in record.operations} <= {None, "connection_error", "server_error"}


@each_row("pattern", Pattern)
@each_row("fate", ["lost", "dropped"])
def test_the_next_read_shows_the_result_of_a_write(pattern: Pattern, fate: str) -> None:
    job = conditional(pattern)
    client = SharedClient([fate])
    record = run(job, client)
    says = found(job, record)
    assert record.ok
    assert (says["unknown_writes"], says["commits"]) == (1, 2 if pattern is Pattern.CLAIM else 5)
    # A write that took effect is not repeated.
    writes = [row for row in record.accesses if row.act is Act.WRITE]
    assert len(writes) == says["commits"] + (fate == "dropped")


def test_after_a_conflict_it_waits_at_random_and_ever_longer(waits: list[float]) -> None:
    job = conditional(Pattern.INCREMENT, operations=1, objects=1, backoff=0.25)
    record = run(job, SharedClient(["busy"] * 40))
    assert len(waits) == 40
    assert max(waits) <= 1
    assert waits[0] <= 0.25
    assert found(job, record)["conflicts"] == 40
    # Waits are recorded in the attempts after them.
    assert sum(row.wait_ns for row in record.attempts) == sum(round(w * 1e9) for w in waits)


def test_without_a_back_off_it_does_not_wait(waits: list[float]) -> None:
    assert run(conditional(Pattern.APPEND, backoff=0.0), SharedClient(["busy"] * 9)).ok
    assert waits == []


def test_a_write_is_given_up_after_as_many_lost_answers_as_retries() -> None:
    record = run(
        conditional(Pattern.INCREMENT, operations=1, objects=1), SharedClient(["failed"] * 9)
    )
    (operation, _) = record.operations
    assert operation.error == "server_error"
    assert [row.ending for row in record.accesses if row.act is Act.WRITE] == [Ending.UNKNOWN] * 4


def test_foreign_bytes_are_an_error_and_a_violation() -> None:
    client = SharedClient()
    job = conditional(Pattern.INCREMENT, operations=1, objects=1)
    (key,) = ledger(job, [invocation(job)])
    client.objects[key] = b"not ours"
    record = run(job, client)
    assert {op.error for op in record.operations} == {"corrupt"}
    (violation,) = found(job, record)["violations"]
    assert (violation["fault"], violation["key"]) == ("phantom", key)


def test_an_exception_of_a_client_leaves_a_write_that_is_unknown() -> None:
    class Broken(SharedClient):
        def put_if(self, key: str, source: Source, exchange: Exchange, *, etag: str | None) -> None:
            super().put_if(key, source, exchange, etag=etag)
            raise ZeroDivisionError

    record = run(conditional(Pattern.INCREMENT), Broken())
    assert "ZeroDivisionError" in str(record.error)
    assert [row.ending for row in record.accesses if row.act is Act.WRITE] == [Ending.UNKNOWN]


@pytest.mark.parametrize("warmup", [0, 1])
def test_every_created_key_is_in_the_ledger(warmup: int) -> None:
    for pattern in Pattern:
        job = replace(conditional(pattern, threads=2), warm_up=warmup)
        client = SharedClient(["overtaken", "lost", "busy", "dropped"] * 3)
        run(job, client)
        known = ledger(job, invocation_specs(job, run_id=RUN, created_ns=0))
        assert client.objects.keys() <= set(known), pattern


def manifests(job: JobSpec) -> Iterator[str]:
    return ledger(job, invocation_specs(job, run_id=RUN, created_ns=0))


def test_the_functions_shares_of_a_log_are_numbers_without_a_gap() -> None:
    job = replace(conditional(Pattern.APPEND, objects=2, threads=3), number=4)
    keys = list(manifests(job))
    assert len(keys) == len(set(keys))
    for log in ("log-00000000", "log-00000001"):
        numbers = sorted(int(key.rpartition("/")[2]) for key in keys if f"/{log}/" in key)
        assert numbers == list(range(1, len(numbers) + 1))
        # All numbers of all threads, in turn, without the missing one.
        assert len(numbers) > 4 * 3 * 5 // 2
