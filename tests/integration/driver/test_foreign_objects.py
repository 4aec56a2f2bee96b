"""Foreign objects are unchanged by any run, kill, resume and clean."""

import json
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from serverless_bench.base.clock import wall_ns
from serverless_bench.driver import clean
from serverless_bench.driver.boto import open_s3
from serverless_bench.driver.cleanup import delete, delete_control
from serverless_bench.driver.plan import ledger
from serverless_bench.driver.run import resume_job, run_job
from serverless_bench.features.loopback.objects import StoredObject
from serverless_bench.features.loopback.server import LoopbackServer, serving
from serverless_bench.features.loopback.state import LoopbackSettings
from serverless_bench.features.remote.delivery import deliver, forget_stores
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import StoreProtocol, Target
from serverless_bench.payload.keystream import Keystream
from serverless_bench.rundir.run import load_run
from serverless_bench.worker.invocation import forget_clients
from tests.stores.faulty import Exchange, FaultServer, fails
from tests.stores.servers import KEYS, Server, credentials

HEX = "0123456789abcdef" * 2
OTHER_RUN = "20200101T000000Z-0123456789ab"
NUMBER = 3


@dataclass(frozen=True, kw_only=True)
class Google(Server):
    """The loopback store, to which a run speaks as to Google's, and others as to S3."""

    store: LoopbackServer
    """Only accepts the bytes of a key's keystream; foreign bytes are put there directly."""


@pytest.fixture(scope="module")
def google() -> Iterator[Google]:
    with serving(LoopbackSettings(strict=True)) as store:
        yield Google(store.endpoint_url, "test", KEYS, protocol=StoreProtocol.GS, store=store)


@pytest.fixture(scope="module", params=["embedded", "moto", "google"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    found: Server = request.getfixturevalue(request.param)
    with credentials(found.environment), pytest.MonkeyPatch.context() as patch:
        # All clocks are this machine's, so no request arrives late.
        patch.setattr(clean, "_MARGIN_S", 0.0)
        yield found
        forget_stores()
        forget_clients()


def s3_of(target: Target) -> Any:
    """Return the client of the other user who writes there."""
    return open_s3(replace(target, protocol=StoreProtocol.S3, region="us-east-1"))


def put(server: Server, s3: Any, key: str, body: bytes) -> None:
    if isinstance(server, Google):
        content = StoredObject(key=key, size=len(body), verbatim=body)
        server.store.state.objects.put(server.bucket, content)
    else:
        s3.put_object(Bucket=server.bucket, Key=key, Body=body)


@dataclass
class World:
    """A bucket with foreign objects, and the runs in it."""

    server: Server
    target: Target
    control: Target
    scratch: Path
    runs: list[Path] = field(default_factory=list)
    foreign: dict[str, bytes] = field(default_factory=dict)
    spoiled: set[Path] = field(default_factory=set)
    """Runs with an object that somebody has overwritten."""

    def __post_init__(self) -> None:
        self.s3 = s3_of(self.target)
        data, control = self.target.prefix, self.control.prefix
        valid = f"{data}{HEX}.300"
        stream = bytearray(300)
        Keystream(valid).readinto_at(0, stream)
        record = json.dumps({"run_id": OTHER_RUN, "index": 1}).encode()
        for key, body in {
            f"{data}notes.txt": b"mine",
            f"{data}{HEX[::-1]}.2000": bytes(2000),
            valid: bytes(stream),  # of a run that has lost its directory
            f"{data}barrier/x/start": b"+",
            f"{control}readme": b"",
            f"{control}{OTHER_RUN}/records/00000001/0/{HEX}": record,
            f"{control}{OTHER_RUN}/claims/00000001/0": record,
        }.items():
            self.put(key, body)
        for key in (f"{data}upload", f"{data}{HEX}.900"):
            self.s3.create_multipart_upload(Bucket=self.target.bucket, Key=key)
        self.uploads = self.open_uploads()

    def put(self, key: str, body: bytes) -> None:
        put(self.server, self.s3, key, body)
        self.foreign[key] = body

    def keys(self) -> set[str]:
        listed = self.s3.list_objects_v2(Bucket=self.target.bucket, Prefix=self.target.prefix)
        return {entry["Key"] for entry in listed.get("Contents", ())}

    def open_uploads(self) -> set[str]:
        listed = self.s3.list_multipart_uploads(
            Bucket=self.target.bucket, Prefix=self.target.prefix
        )
        return {entry["UploadId"] for entry in listed.get("Uploads", ())}

    def check(self) -> None:
        """Check that no foreign object is missing or has other bytes."""
        for key, body in self.foreign.items():
            found = self.s3.get_object(Bucket=self.target.bucket, Key=key)["Body"].read()
            assert found == body, key
        assert self.open_uploads() == self.uploads

    # Actions

    def run(self, number: int) -> None:
        path = self.scratch / str(len(self.runs))
        job = JobSpec(
            workload="write",
            target=self.target,
            control=self.control,
            executor="inline",
            number=NUMBER,
            concurrency=1,
            size=100 + number,
            options={"barrier": 0.5 if number % 2 else None, "start_timeout": 0.001},
        )
        run = run_job(job, path)
        mine = f"{self.control.prefix}{run.run_id}/"
        # Somebody writes where only this run should.
        self.put(f"{mine}records/00000001/0/{HEX}", b'{"run_id": "another"}')
        self.put(f"{mine}records/00000001/0/{HEX[::-1]}", b"")
        self.put(f"{mine}claims/00000002/5", b"no JSON at all")
        self.put(f"{mine}more", b"about this run")
        self.runs.append(path)

    def kill(self, number: int) -> None:
        """Leave the directory as a driver does that was killed while it wrote a line."""
        path = self.chosen(number) / "records.jsonl"
        data = path.read_bytes()
        path.write_bytes(data[: len(data) * (number % 10) // 10])

    def resume(self, number: int) -> None:
        path = self.chosen(number)
        if load_run(path).cleaning_ns is None:
            resume_job(path)

    def late(self, number: int) -> None:
        """Deliver an event of the run once more, as a queue may."""
        path = self.chosen(number)
        if path in self.spoiled:
            return
        run = load_run(path)
        job, known = run.job.with_options(barrier=None), set(run.ledger())
        launched = [
            spec
            for wave in (0, *(wave.number for wave in run.waves))
            for spec in invocation_specs(job, run_id=run.run_id, created_ns=wall_ns(), wave=wave)
            if known.issuperset(ledger(job, [spec]))
        ]
        deliver(asdict(launched[number % len(launched)]))

    def overwrite(self, number: int) -> None:
        """Somebody puts something of theirs where the run wrote."""
        path = self.chosen(number)
        keys = load_run(path).ledger()
        self.put(keys[number % len(keys)], b"theirs" * (1 + number % 3))
        self.spoiled.add(path)

    def clean(self, number: int) -> None:
        clean.clean(self.chosen(number))

    def sweep(self, number: int) -> None:
        """The same, step by step and in another order."""
        run = load_run(self.chosen(number))
        delete_control(self.control, run.run_id)
        delete(self.target, run.ledger())

    def chosen(self, number: int) -> Path:
        if not self.runs:
            self.run(number)
        return self.runs[number % len(self.runs)]


ACTIONS = ("run", "kill", "resume", "late", "overwrite", "clean", "sweep")
STEPS = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 99)), min_size=1, max_size=8)


@settings(max_examples=4, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_foreign_objects_do_not_change(server: Server, steps: list[tuple[str, int]]) -> None:
    go_through(server, steps)


@pytest.mark.full
@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_foreign_objects_do_not_change_in_many_cases(
    server: Server, steps: list[tuple[str, int]]
) -> None:
    go_through(server, steps)


def target_of(server: Server, prefix: str) -> Target:
    return Target(
        bucket=server.bucket,
        protocol=server.protocol,
        endpoint_url=server.endpoint_url,
        prefix=prefix,
    )


def go_through(server: Server, steps: list[tuple[str, int]]) -> None:
    target = target_of(server, f"{uuid.uuid4().hex}/")
    # The control prefix lies in the data prefix: the worst place for it.
    control = replace(target, prefix=f"{target.prefix}control/")
    with tempfile.TemporaryDirectory() as scratch:
        world = World(server, target, control, Path(scratch))
        for action, number in steps:
            getattr(world, action)(number)
            world.check()
        for number in range(len(world.runs)):
            world.clean(number)
        world.check()
        assert world.keys() == set(world.foreign), "of ours nothing is left"


def test_an_empty_object_that_kms_encrypts_is_deleted_under_its_own_tag() -> None:
    """Its tag is not the MD5 of no bytes (AWS: "not an MD5 digest of their object data")."""
    tag, conditions = '"of kms"', list[str | None]()

    def lists(exchange: Exchange) -> bool:
        exchange.say(200, b"<ListMultipartUploadsResult/>")
        return True

    def is_empty(exchange: Exchange) -> bool:
        exchange.say(200, headers={"ETag": tag})
        return True

    def deletes(exchange: Exchange) -> bool:
        conditions.append(exchange.headers.get("if-match"))
        exchange.say(204 if conditions[-1] == tag else 412)
        return True

    script = [lists, fails(416, "InvalidRange"), is_empty, deletes]
    with FaultServer(script) as store, credentials(KEYS):
        target = Target(bucket="b", endpoint_url=store.endpoint_url)
        found = delete(target, [f"sbench/{HEX}.5000"])
    assert (conditions, found.objects, found.foreign) == ([tag], 1, [])


def test_an_object_that_is_empty_no_longer_is_looked_at_as_a_whole() -> None:
    """The object was written between both checks."""

    def lists(exchange: Exchange) -> bool:
        exchange.say(200, b"<ListMultipartUploadsResult/>")
        return True

    def is_foreign(exchange: Exchange) -> bool:
        exchange.say(200, b"my thesis", {"ETag": '"x"'})
        return True

    key = f"sbench/{HEX}.5000"
    script = [lists, fails(416, "InvalidRange"), is_foreign]
    with FaultServer(script) as store, credentials(KEYS):
        found = delete(Target(bucket="b", endpoint_url=store.endpoint_url), [key])
    assert (found.objects, found.foreign) == (0, [key])
    assert not [seen for seen in store.seen if seen.startswith("DELETE")]


def test_an_upload_that_was_cut_off_leaves_no_object(server: Server, prefix: str) -> None:
    """A store may keep an empty object for an upload whose worker was killed."""
    target = target_of(server, prefix)
    key, other = f"{prefix}{HEX}.5000", f"{prefix}{HEX[::-1]}.5000"
    s3 = s3_of(target)
    for empty in (key, other):
        put(server, s3, empty, b"")
    assert (delete(target, [key]).objects, delete(target, [key]).objects) == (1, 0)
    listed = s3.list_objects_v2(Bucket=target.bucket, Prefix=prefix)["Contents"]
    assert [entry["Key"] for entry in listed] == [other]
