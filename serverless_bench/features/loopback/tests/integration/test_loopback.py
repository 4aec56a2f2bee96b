"""The loopback store: a run reports exactly the faults that are set."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest

from serverless_bench.base.clock import monotonic_ns, wall_ns
from serverless_bench.base.units import KIB, MIB, NS_PER_S
from serverless_bench.clients import CLIENTS
from serverless_bench.driver.run import run_job
from serverless_bench.features.loopback.faults import HITS, FaultKind
from serverless_bench.job.keys import declared_size, object_key
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target, Transfer
from serverless_bench.rundir.record import FoundBytes
from serverless_bench.rundir.run import Run, load_run
from tests.commands.command import Sbench
from tests.stores.network import certificate
from tests.stores.servers import DIRECT, KEYS, Server, loopback

ERRORS = {
    FaultKind.SLOWDOWN: "throttled",
    FaultKind.ERROR: "server_error",
    FaultKind.MISSING: "not_found",
    FaultKind.RESET_PUT: "connection_error",
    FaultKind.RESET_GET: "connection_error",
    FaultKind.TRUNCATE: "connection_error",
    FaultKind.SHORT: "corrupt",
    FaultKind.STALE: "corrupt",
    FaultKind.FLIP: "corrupt",
}
UPLOADS = [FaultKind.SLOWDOWN, FaultKind.ERROR, FaultKind.RESET_PUT]
DOWNLOADS = [kind for kind in FaultKind if "get" in HITS[kind]]
SIZE = 300_001
MANY = 60


@pytest.fixture
def sbench(tmp_path: Path) -> Sbench:
    return Sbench(tmp_path, KEYS)


def rates(kinds: Sequence[FaultKind], total: float) -> list[str]:
    """Flags that make the share ``total`` of the requests fail, in all ways."""
    each = 1 - (1 - total) ** (1 / len(kinds))
    return [word for kind in kinds for word in (f"--{kind}", str(each))]


def injected(log: Path, since: int = 0) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()[since:]]


def on(server: Server, *more: str | int) -> list[str | int]:
    return ["--endpoint-url", server.endpoint_url, "--bucket", "any", "--retries", 0, *more]


def statistics(server: Server) -> dict[str, Any]:
    with DIRECT.open(f"{server.endpoint_url}/-/statistics") as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def errors(run: Run) -> dict[str, str]:
    """Key and error of every operation that failed."""
    rows = zip(run.operations["key"], run.operations["error"], strict=True)
    return {str(key): str(error) for key, error in rows if error is not None}


def response(run: Run) -> Counter[str]:
    """Request ids of the answers that refused."""
    rows = zip(run.attempts["request_id"], run.attempts["error"], strict=True)
    return Counter(str(name) for name, error in rows if error is not None and name is not None)


def some_keys(count: int, size: int, name: str) -> list[str]:
    return [
        object_key(prefix="sbench/", run_id=name, index=0, launch=0, number=n, size=size)
        for n in range(count)
    ]


@pytest.fixture
def credentials_of_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


def run_here(server: Server, path: Path, client: str, keys: Sequence[str] = (), **job: Any) -> Run:
    """Run a job in this process, which spares the start of another."""
    target = Target(client=client, bucket="any", endpoint_url=server.endpoint_url)
    transfer = Transfer(retries=0)
    spec = JobSpec(target=target, transfer=transfer, executor="inline", concurrency=1, **job)
    return run_job(spec, path, keys=keys)


FIRST = ("boto3", "wire")
AT_ONCE = (*FIRST, "minio", "obstore")
"""They move an object in one request, so each fault affects one object."""


@pytest.mark.on_change("serverless_bench/features/loopback")
@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.9])
@pytest.mark.usefixtures("credentials_of_nobody")
def test_uploads_fail_as_planned(tmp_path: Path, rate: float) -> None:
    log = tmp_path / "faults.jsonl"
    flags = [*rates(UPLOADS, rate), "--seed", "7", "--log", str(log)]
    with loopback(*flags, log=tmp_path / "out") as server:
        for client in AT_ONCE if rate == 0.5 else FIRST:
            before = len(injected(log))
            asked: dict[str, Any] = {"number": 1, "objects": MANY, "size": SIZE}
            run = run_here(server, tmp_path / client, client, workload="write", **asked)
            faults = injected(log, before)
            assert len(run.attempts["error"]) == MANY
            assert errors(run) == {row["key"]: ERRORS[row["kind"]] for row in faults}
            answered = {row["request_id"] for row in faults if row["kind"] != "reset-put"}
            if CLIENTS.load(client).info.attempts == "exact":
                assert set(response(run)) == answered
            assert (not faults) == (rate == 0)
        assert statistics(server)["bad_put_bytes"] == 0


@pytest.mark.on_change("serverless_bench/features/loopback")
@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.9])
@pytest.mark.usefixtures("credentials_of_nobody")
def test_downloads_fail_as_planned(tmp_path: Path, rate: float) -> None:
    log = tmp_path / "faults.jsonl"
    flags = [*rates(DOWNLOADS, rate), "--seed", "7", "--log", str(log)]
    with loopback(*flags, log=tmp_path / "out") as server:
        for client in AT_ONCE if rate == 0.5 else FIRST:
            before = len(injected(log))
            keys = some_keys(MANY, SIZE, client)
            path = tmp_path / client
            run = run_here(server, path, client, keys, workload="read", number=MANY)
            faults = injected(log, before)
            assert len(run.attempts["error"]) == MANY
            assert errors(run) == {row["key"]: ERRORS[row["kind"]] for row in faults}
            assert (not faults) == (rate == 0)
            check_bad_ranges(run, faults)


def check_bad_ranges(run: Run, faults: Iterable[dict[str, Any]]) -> None:
    """Compare the reported ranges with the planned faults."""
    table = run.bad_ranges
    rows = [
        (str(key), int(offset), int(length), str(found))
        for key, offset, length, found in zip(
            *(table[name] for name in ("key", "offset", "length", "found")), strict=True
        )
    ]
    planned: list[tuple[str, int, int, str]] = []
    stale: dict[str, int] = {}
    for row in faults:
        if row["kind"] == FaultKind.FLIP:
            planned += [(row["key"], offset, 1, FoundBytes.UNKNOWN) for offset, _ in row["flips"]]
        elif row["kind"] == FaultKind.SHORT:
            left = SIZE - row["ends_at"]
            planned.append((row["key"], row["ends_at"], left, FoundBytes.MISSING))
        elif row["kind"] == FaultKind.STALE:
            stale[row["key"]] = row["generation"]
    assert sorted(row for row in rows if row[0] not in stale) == sorted(planned)
    generations = dict(zip(map(str, table["key"]), table["found_generation"], strict=True))
    for key, generation in stale.items():
        mine = [row for row in rows if row[0] == key]
        assert {row[3] for row in mine} == {FoundBytes.OTHER_GENERATION}
        assert generations[key] == generation
        # Two generations agree in a byte by chance, also in the first and the last.
        assert sum(row[2] for row in mine) > SIZE - 16


@pytest.mark.on_change("serverless_bench/features/loopback")
def test_failed_requests_are_retried_until_they_succeed(sbench: Sbench) -> None:
    log = sbench.directory / "faults.jsonl"
    flags = [*rates(UPLOADS, 0.2), "--seed", "1", "--log", str(log)]
    with loopback(*flags, log=sbench.directory / "out") as server:
        done = sbench(
            "write", *on(server), "--retries", 9, "--number", 2, "--objects", 20, "--size", SIZE,
            "--name", "w", "--format", "json",
        )  # fmt: skip
        counted = statistics(server)
    faults = injected(log)
    run = load_run(sbench.directory / "sbench-runs" / "w")
    found = Counter(str(error) for error in run.attempts["error"] if error is not None)
    assert (done.code, done.json["ok"]) == (0, 2)
    assert found == Counter(ERRORS[row["kind"]] for row in faults)
    assert len(faults) > 0
    assert counted["requests"]["put"] == 40 + len(faults)
    assert counted["checked_put_bytes"] == 40 * SIZE


@pytest.mark.on_change("serverless_bench/features/loopback")
@pytest.mark.parametrize(
    "client", [*FIRST, *(pytest.param(name, marks=pytest.mark.full) for name in AT_ONCE[2:])]
)
def test_parts_and_ranges_are_checked_and_spoiled_one_by_one(sbench: Sbench, client: str) -> None:
    log = sbench.directory / "faults.jsonl"
    size = 16 * MIB + 17
    shape: list[str | int] = ["--part-size", "5MiB", "--connections", 3, "--client", client]
    flags = ["--flip", "1", "--flip-bits", "2", "--log", str(log)]
    with loopback(*flags, log=sbench.directory / "out") as server:
        wrote = sbench(
            "write", *on(server, *shape), "--number", 1, "--size", size, "--key-file", "k"
        )
        assert wrote.code == 0
        assert statistics(server)["checked_put_bytes"] == size
        read = sbench("read", *on(server, *shape), "--key-file", "k", "--name", "r")
        assert read.code == 7
    run = load_run(sbench.directory / "sbench-runs" / "r")
    flips = [flip for row in injected(log) for flip, _ in row["flips"]]
    assert len(flips) == 8
    assert sorted(int(offset) for offset in run.bad_ranges["offset"]) == sorted(flips)


def test_https_and_chunks_within_chunks(sbench: Sbench) -> None:
    pem = certificate(sbench.directory)
    with loopback("--tls", str(pem), log=sbench.directory / "out") as server:
        ours = Sbench(sbench.directory, {**KEYS, "AWS_CA_BUNDLE": str(pem)})
        size = 3 * MIB + 5
        wrote = ours(
            "write", *on(server), "--client", "boto3", "--number", 1, "--size", size,
            "--key-file", "k",
        )  # fmt: skip
        read = ours("read", *on(server), "--key-file", "k", "--format", "json")
        assert (wrote.code, read.code, read.json["verified_bytes"]) == (0, 0, size)
        stranger = Sbench(sbench.directory, KEYS)("write", *on(server), "--number", 1)
        assert (stranger.code, "is not trusted\nhint: set AWS_CA_BUNDLE" in stranger.err) == (
            5,
            True,
        )
        out = sbench.directory / "out"
    assert json.loads(out.read_text().splitlines()[-1])["checked_put_bytes"] == size


@pytest.mark.parametrize("client", ["wire", "boto3"])
@pytest.mark.parametrize(
    ("address", "days", "says"),
    [("127.0.0.1", -1, "has expired"), ("::1", 1, "is for another host")],
)
def test_what_is_wrong_with_a_certificate_is_said(
    sbench: Sbench, client: str, address: str, days: int, says: str
) -> None:
    """A file of authorities does not help if the certificate is old, or of another host."""
    pem = certificate(sbench.directory, "other.example", address=address, since_days=3, days=days)
    with loopback("--tls", str(pem), log=sbench.directory / "out") as server:
        ours = Sbench(sbench.directory, {**KEYS, "AWS_CA_BUNDLE": str(pem)})
        done = ours("write", *on(server), "--client", client, "--number", 1)
    assert (done.code, says in done.err, "AWS_CA_BUNDLE" in done.err) == (5, True, False), done


def test_wrong_bytes_are_refused_and_counted(sbench: Sbench) -> None:
    (key,) = some_keys(1, 70_000, "x")
    assert declared_size(key) == 70_000
    with loopback(log=sbench.directory / "out") as server:
        status = put(f"{server.endpoint_url}/any/{key}", b"x" * 70_000)
        counted = statistics(server)
    assert status == 400
    assert counted["bad_puts"] == 1
    assert counted["bad_put_bytes"] > 69_000


def put(url: str, body: bytes) -> int:
    import http.client
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    line = http.client.HTTPConnection(parts.hostname or "", parts.port)
    line.request("PUT", parts.path, body)
    status = line.getresponse().status
    line.close()
    return status


def test_a_limit_per_prefix_is_a_503_and_no_fault(sbench: Sbench) -> None:
    log = sbench.directory / "faults.jsonl"
    with loopback("--put-limit", "5", "--log", str(log), log=sbench.directory / "out") as server:
        sbench(
            "write", *on(server), "--number", 1, "--objects", 30, "--size", KIB, "--name", "w",
        )  # fmt: skip
        assert statistics(server)["limited"] == len(injected(log))
    limits, run = injected(log), load_run(sbench.directory / "sbench-runs" / "w")
    assert {(row["event"], row["kind"]) for row in limits} == {("limit", "put")}
    assert errors(run) == {row["key"]: "throttled" for row in limits}


def test_a_function_has_a_burst_and_then_a_rate(sbench: Sbench) -> None:
    # A Lambda function's 300 MiB and 77.6 MiB/s, a hundred times smaller.
    flags = ["--function-burst", "3MiB", "--function-rate", "0.776MiB"]
    with loopback(*flags, log=sbench.directory / "out") as server:
        done = sbench(
            "write", *on(server), "--number", 1, "--size", 4 * MIB, "--format", "json",
            "--executor", "inline",
        )  # fmt: skip
    # One MiB beyond the burst: 14 quanta of 100 ms, minus the refill in that time. A busy machine
    # takes longer; the unit tests have the rate with a clock of its own.
    assert done.json["makespan_s"] > 0.9


def test_its_clock_and_its_first_byte_can_be_late(sbench: Sbench) -> None:
    flags = ["--clock-skew", "-3600", "--latency", "fixed:200ms"]
    with loopback(*flags, log=sbench.directory / "out") as server:
        began_ns, sent_s = monotonic_ns(), wall_ns() / NS_PER_S
        with DIRECT.open(f"{server.endpoint_url}/-/statistics") as answer:
            date = parsedate_to_datetime(answer.headers["Date"]).timestamp()
        assert monotonic_ns() - began_ns >= 0.2 * NS_PER_S
    assert -3601 <= date - sent_s < -3500


def test_clean_deletes_the_objects_of_a_run(sbench: Sbench) -> None:
    with loopback("--strict", log=sbench.directory / "out") as server:
        sbench("write", *on(server), "--number", 3, "--size", KIB, "--name", "w")
        assert statistics(server)["objects"] == 3
        assert sbench("clean", sbench.directory / "sbench-runs" / "w").code == 0
        assert statistics(server)["objects"] == 0
    assert json.loads((sbench.directory / "out").read_text().splitlines()[-1])["objects"] == 0


def test_an_invalid_rate_is_refused(sbench: Sbench) -> None:
    done = sbench("serve", "--flip", "1.5")
    assert done.code == 2
    assert "--flip: '1.5' is not a share from 0% to 100%" in done.err
    assert sbench("serve", "--latency", "slow").code == 2
    assert sbench("serve", "--tls", "no-such-file").code == 2
    alone = sbench("serve", "--network-quota", "3000")
    assert (alone.code, "needs --function-memory" in alone.err) == (2, True)
    both = sbench("serve", "--function-memory", "4096", "--function-rate", "5MiB")
    assert (both.code, "already determines burst and rate" in both.err) == (2, True)
