"""Commands against stores with one kind of fault: one line, in time, and no invented figures."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from serverless_bench.base.errors import BadResponse, OperationError
from serverless_bench.cli.main import place_of
from serverless_bench.driver.bucket import Bucket
from serverless_bench.features.loopback.server import LoopbackServer, serving
from serverless_bench.features.remote.view import ControlView
from serverless_bench.job.target import Target
from serverless_bench.worker.in_memory import TooLong
from serverless_bench.worker.object_io import ObjectIO
from tests.commands.processes import PATIENCE_S
from tests.data.runs import forge
from tests.fuzz.watched import MOST_BYTES, Ended, Nursery, nursery
from tests.integration.clients.test_hostile_stores import CERTIFICATES
from tests.stores.faulty import Answer, Exchange, FaultServer
from tests.stores.hostile import (
    WRONG_LISTS,
    WRONGS,
    endless_lists,
    hostile,
    lists,
    lists_odd_keys,
    says,
    sometimes,
)
from tests.stores.network import bundle_of, certificate, server_context
from tests.stores.servers import KEYS, credentials

LIMIT_S = PATIENCE_S
BOUND = ("--deadline", "2", "--timeout", "1", "--retries", "0")
LATER = ("--deadline", "15", "--timeout", "10")
"""For a function that has to begin, and may wait longer than a busy machine for the next byte."""
SMALL = ("--number", "1", "--size", "200kB", "--executor", "inline")
OWN = "def own(context):\n    key = context.new_key()\n    context.put(key)\n    context.get(key)\n"
QUICK = (
    "headers without end",
    "an error text without end",
    "a billion laughs",
    "a reset at once",
    "another protocol",
    "a redirect to itself",
)
"""Wrong answers that end a request immediately; every test uses the first."""

ENDING = ("an error inside of 200", "a reset in the body", "a body that ends early")
"""Wrong answers that end: a function is through with them, however busy the machine is."""
PATIENT = ("--deadline", "200", "--timeout", "100")


@pytest.fixture(scope="module")
def sbench() -> Iterator[Nursery]:
    names = ("custom", "clean", "doctor", "read", "resume", "write")
    commands = (place_of(name).partition(":")[0] for name in names)
    with nursery(*commands, "tests.stores.warm") as found:
        yield found


@pytest.fixture
def store() -> Iterator[LoopbackServer]:
    with serving() as server:
        yield server


def wrong_when(
    answer: Answer, store: LoopbackServer, when: Callable[[Exchange], bool]
) -> FaultServer:
    return hostile(sometimes(answer, store.endpoint_url, when))


def run(sbench: Nursery, directory: Path, url: str, *arguments: str) -> Ended:
    there = ("--bucket", "any", "--endpoint-url", url) if url else ()
    return sbench(directory, *arguments, *there, environment=KEYS, limit_s=LIMIT_S)


def check(ended: Ended, *codes: int) -> None:
    """Check that a command ended with one of these codes, and explained it in a line or two."""
    assert ended.code in codes, (ended.code, ended.err[-2000:])
    assert ended.peak_bytes < MOST_BYTES, f"{ended.peak_bytes >> 20} MiB"
    assert "Traceback" not in ended.err
    assert "bug" not in ended.err
    assert max(map(len, ended.err.splitlines()), default=0) < 800
    assert all(line.isprintable() for line in ended.err.splitlines())


@pytest.mark.parametrize("wrong", QUICK)
def test_a_store_that_is_wrong_from_the_beginning(
    sbench: Nursery, tmp_path: Path, wrong: str
) -> None:
    with hostile(WRONGS[wrong]) as server:
        url = server.endpoint_url
        check(run(sbench, tmp_path, url, "write", *SMALL, *BOUND), 5)
        there = ("--control", "s3://any/control/", "--endpoint-url", url)
        check(run(sbench, tmp_path, "", "worker", *there, "--idle", "1"), 5)
        ended = run(sbench, tmp_path, url, "doctor")
    check(ended, 13)
    assert about_bucket(ended) == ["fail"]


def about_bucket(ended: Ended) -> list[str]:
    """Return how each line of the doctor's about the bucket begins."""
    return [line.split()[0] for line in ended.out.splitlines() if " bucket any: " in line]


@pytest.mark.parametrize("wrong", ["a length of 2**50", "an error inside of 200", "elsewhere"])
def test_doctor_rejects_wrong_answers_about_settings(
    sbench: Nursery, tmp_path: Path, store: LoopbackServer, wrong: str
) -> None:
    with FaultServer() as other:
        elsewhere = says(307, Location=f"{other.endpoint_url}/any")
        answer = {**WRONGS, "elsewhere": elsewhere}[wrong]
        with wrong_when(answer, store, lambda exchange: "?" in exchange.path) as server:
            ended = run(sbench, tmp_path, server.endpoint_url, "doctor")
        assert other.seen == []
    check(ended, 0)
    first, *others = about_bucket(ended)
    assert (first, {*others}) == ("ok", {"warn"})


@pytest.mark.parametrize("wrong", ["a redirect to itself", "100 Continue for ever"])
def test_a_store_in_the_place_of_aws(sbench: Nursery, tmp_path: Path, wrong: str) -> None:
    with hostile(WRONGS[wrong]) as server:
        there = {**KEYS, "AWS_ENDPOINT_URL": server.endpoint_url}
        arguments = ("write", *SMALL, *BOUND, "--bucket", "any")
        ended = sbench(tmp_path, *arguments, environment=there, limit_s=LIMIT_S)
    check(ended, 5)


@pytest.mark.parametrize("wrong", CERTIFICATES)
def test_certificates_that_are_wrong(sbench: Nursery, tmp_path: Path, wrong: str) -> None:
    theirs = certificate(tmp_path, **CERTIFICATES[wrong])
    trusted = {"AWS_CA_BUNDLE": str(bundle_of(theirs))} if CERTIFICATES[wrong] else {}
    with FaultServer(context=server_context(theirs)) as server:
        there = ("--bucket", "any", "--endpoint-url", server.endpoint_url)
        for command, code in ((("write", *SMALL, *BOUND), 5), (("doctor",), 13)):
            ended = sbench(
                tmp_path, *command, *there, environment={**KEYS, **trusted}, limit_s=LIMIT_S
            )
            check(ended, code)
            assert "certificate" in ended.err + ended.out
        assert server.seen == []


@pytest.mark.parametrize(
    ("method", "command", "wrong", "code"),
    [
        ("PUT", "write", "an error inside of 200", 6),
        ("PUT", "write", "an error text without end", 6),
        ("PUT", "write", "a head that drips", 6),
        ("PUT", "write", "silence", 6),
        ("PUT", "custom", "an error inside of 200", 6),
        ("PUT", "custom", "a head that drips", 6),
        ("GET", "read", "an error inside of 200", 7),
        ("GET", "read", "a reset in the body", 6),
        ("GET", "mixed", "a length of 2**60", 6),
        ("GET", "mixed", "a body that drips", 6),
        ("GET", "mixed", "a body that ends early", 6),
    ],
)
def test_functions_with_wrong_answers_fail(
    sbench: Nursery,
    tmp_path: Path,
    store: LoopbackServer,
    method: str,
    command: str,
    wrong: str,
    code: int,
) -> None:
    (tmp_path / "keys.txt").write_text(f"{'0' * 32}.200000\n")
    (tmp_path / "own.py").write_text(OWN)
    more = {
        "custom": ("own.py:own", *SMALL),
        "mixed": ("--mix", "get=100", "--operations", "4", *SMALL),
        "read": ("--key-file", "keys.txt", "--executor", "inline"),
        "write": SMALL,
    }

    def when(exchange: Exchange) -> bool:
        return exchange.method == method and "?" not in exchange.path

    with wrong_when(WRONGS[wrong], store, when) as server:
        bound = (*BOUND, *PATIENT) if wrong in ENDING else BOUND
        ended = run(sbench, tmp_path, server.endpoint_url, command, *more[command], *bound)
    check(ended, code)


def move(directory: Path, old: str, new: str) -> None:
    path = directory / "sbench-runs" / "w"
    forge(path, json.loads((path / "run.json").read_text().replace(old, new)))


class TestSavedRuns:
    @pytest.fixture
    def written(self, sbench: Nursery, tmp_path: Path, store: LoopbackServer) -> Path:
        """A run whose store was replaced by another."""
        ended = run(sbench, tmp_path, store.endpoint_url, "write", *SMALL, "--name", "w")
        assert ended.code == 0, ended.err
        return tmp_path

    def clean(self, sbench: Nursery, directory: Path, server: FaultServer, old: str) -> Ended:
        move(directory, old, server.endpoint_url)
        return run(sbench, directory, "", "clean", "sbench-runs/w", "--trust")

    @pytest.mark.parametrize("wrong", ["an error inside of 200", "a redirect to itself"])
    def test_a_run_that_is_resumed(
        self, sbench: Nursery, written: Path, store: LoopbackServer, wrong: str
    ) -> None:
        (written / "sbench-runs" / "w" / "records.jsonl").write_text("")
        with wrong_when(WRONGS[wrong], store, lambda exchange: exchange.method == "PUT") as server:
            move(written, store.endpoint_url, server.endpoint_url)
            ended = run(sbench, written, "", "resume", "sbench-runs/w", "--trust")
        check(ended, 6)

    @pytest.mark.parametrize("wrong", [*WRONG_LISTS, "a billion laughs"])
    def test_a_listing_of_uploads_that_is_wrong(
        self, sbench: Nursery, written: Path, store: LoopbackServer, wrong: str
    ) -> None:
        answer = {**WRONGS, **WRONG_LISTS}[wrong]
        with wrong_when(answer, store, lambda exchange: "uploads" in exchange.path) as server:
            check(self.clean(sbench, written, server, store.endpoint_url), 5)

    def test_keys_that_are_not_in_the_ledger_stay(
        self, sbench: Nursery, written: Path, store: LoopbackServer
    ) -> None:
        def when(exchange: Exchange) -> bool:
            return exchange.method == "GET" and "?" in exchange.path

        with wrong_when(lists(lists_odd_keys), store, when) as server:
            ended = self.clean(sbench, written, server, store.endpoint_url)
            deleted = [each for each in server.seen if each.startswith("DELETE")]
        check(ended, 0)
        assert len(deleted) == 1
        assert "7 objects" in ended.out

    def test_a_deletion_that_fails_with_200(
        self, sbench: Nursery, written: Path, store: LoopbackServer
    ) -> None:
        late = WRONGS["an error inside of 200"]
        with wrong_when(late, store, lambda exchange: exchange.method == "DELETE") as server:
            check(self.clean(sbench, written, server, store.endpoint_url), 6)


class TestListings:
    """Listings of the driver and of workers end, whatever a store answers."""

    @pytest.fixture(params=["the same page again", "empty pages"])
    def target(self, request: pytest.FixtureRequest) -> Iterator[Target]:
        with hostile(endless_lists()[request.param]) as server, credentials(KEYS):
            yield Target(bucket="any", endpoint_url=server.endpoint_url)

    def test_of_a_bucket(self, target: Target) -> None:
        with closing(Bucket(target)) as bucket:
            for survey in (lambda: bucket.survey("a/"), lambda: list(bucket.keys("a/"))):
                with pytest.raises(BadResponse, match="the store lists"):
                    survey()
            with pytest.raises(BadResponse, match="does not end"):
                bucket.uploads("a/")

    def test_below_the_control_prefix(self, target: Target, request: pytest.FixtureRequest) -> None:
        with closing(ObjectIO(target)) as objects, pytest.raises(OperationError, match="the store"):
            list(objects.list_pages("claims/", timeout_s=10))
        if request.node.callspec.params["target"] == "the same page again":
            with closing(ControlView(target, "run")) as view, pytest.raises(BadResponse):
                list(view.records([0]))


def test_objects_without_end_are_counted_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serverless_bench.driver.bucket._MOST_SURVEYED", 5)
    monkeypatch.setattr("serverless_bench.worker.object_io.MOST_PAGES", 7)
    with hostile(endless_lists()["pages without end"]) as server, credentials(KEYS):
        target = Target(bucket="any", endpoint_url=server.endpoint_url)
        with closing(Bucket(target)) as bucket:
            sizes, is_all = bucket.survey("a/")
            assert (len(sizes), {*sizes.values()}, is_all) == (5000, {(1, "STANDARD")}, False)
            with pytest.raises(BadResponse, match="more than 7 pages"):
                list(bucket.keys("a/"))
            with pytest.raises(BadResponse, match="does not end"):
                bucket.uploads("a/")


def test_an_object_of_the_driver_that_does_not_end_is_too_long() -> None:
    with hostile(WRONGS["a length of 2**50"]) as server, credentials(KEYS):
        target = Target(bucket="any", endpoint_url=server.endpoint_url)
        with closing(ObjectIO(target)) as objects, pytest.raises(TooLong, match="more than 1 MiB"):
            objects.get("records/a", timeout_s=PATIENCE_S)


def test_a_success_without_its_content_is_an_error(store: LoopbackServer) -> None:
    with hostile(says(200)) as server, credentials(KEYS):
        target = Target(bucket="any", endpoint_url=server.endpoint_url)
        with (
            closing(Bucket(target)) as bucket,
            pytest.raises(BadResponse, match="the list of keys"),
        ):
            list(bucket.keys("a/"))
    del store


def test_a_library_that_waits_for_ever_is_ended_with_its_process(
    sbench: Nursery, tmp_path: Path, store: LoopbackServer
) -> None:
    # The library loops by itself, and calls no code of ours while it waits.
    answer = WRONGS["100 Continue now and then"]
    with wrong_when(answer, store, lambda exchange: exchange.method == "PUT") as server:
        local = ("--number", "1", "--size", "200kB", "--executor", "local", "--client", "boto3")
        # A function that began behind its deadline would have failed, and not be lost.
        ended = run(sbench, tmp_path, server.endpoint_url, "write", *local, *BOUND, *LATER)
    check(ended, 6)
    assert "1 lost" in ended.out


@pytest.mark.parametrize(
    "event", [b"[" * 100_000, b'{"deadline_s": 1e400}', b"\xff"], ids=["nested", "empty", "bytes"]
)
def test_invalid_events_are_refused(sbench: Nursery, tmp_path: Path, event: bytes) -> None:
    def answer(exchange: Exchange) -> bool:
        if exchange.method == "HEAD":
            return says(200)(exchange)
        return (lists(lists_odd_keys) if "?" in exchange.path else says(200, event))(exchange)

    with hostile(answer) as server:
        there = ("--control", "s3://any/control/", "--endpoint-url", server.endpoint_url)
        ended = run(sbench, tmp_path, "", "worker", *there, "--idle", "0.1")
    check(ended, 0)
    assert ended.err.count("is not an event for a worker") == 7
