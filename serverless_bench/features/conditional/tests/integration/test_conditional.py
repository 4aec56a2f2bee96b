"""``sbench conditional``, as a user runs it: counts, findings and remaining objects."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from serverless_bench.driver.boto import open_s3
from serverless_bench.features.check.checked_run import audited
from serverless_bench.features.loopback.faults import FaultKind
from serverless_bench.features.loopback.server import serving
from serverless_bench.features.loopback.state import LoopbackSettings
from serverless_bench.job.target import Target
from serverless_bench.rundir.run import load_run
from tests.commands.command import Done, Sbench
from tests.house.members import uses
from tests.matrix.proxy import proxy_of
from tests.stores.servers import KEYS, Server, credentials, loopback

PATTERNS = {
    "increment": ("--operations", 10, "--objects", 2),
    "claim": ("--objects", 10),
    "append": ("--operations", 10, "--objects", 2),
}
EIGHT = ("--number", 2, "--threads", 4, "--concurrency", 2, "--format", "json")
RACE = ("--pattern", "increment", "--operations", 125, *EIGHT)
"""1,000 commits at 8 contenders."""


def conditional(
    directory: Path, *flags: str | int | Path, settings: LoopbackSettings | None = None
) -> Done:
    with serving(settings or LoopbackSettings()) as server:
        where = ("--endpoint-url", server.endpoint_url, "--bucket", "any")
        return Sbench(directory, KEYS)("conditional", *where, *flags)


@pytest.mark.parametrize(
    ("client", "pattern"),
    [
        *(("wire", pattern) for pattern in PATTERNS),
        ("boto3", "increment"),
        *(pytest.param("boto3", name, marks=pytest.mark.full) for name in ("claim", "append")),
    ],
)
def test_an_atomic_store_is_not_accused_and_everything_is_counted(
    sbench: Sbench, embedded: Server, client: str, pattern: str
) -> None:
    del embedded
    prefix = ("--prefix", f"conditional-{client}/{pattern}/")
    flags = ("--pattern", pattern, *PATTERNS[pattern], *EIGHT, "--client", client, *prefix)
    done = sbench("conditional", *flags, "--name", f"{client}-{pattern}")
    assert done.code == 0, done
    found = done.json["contention"]
    commits = 10 if pattern == "claim" else 80
    taken = 7 * 10 if pattern == "claim" else 0
    assert (found["commits"], found["taken"], found["violated_keys"]) == (commits, taken, 0)
    assert (found["contenders"], found["unknown_writes"]) == (8, 0)
    cleaned = sbench("clean", f"sbench-runs/{client}-{pattern}")
    assert cleaned.code == 0, cleaned
    keys = {"increment": 2, "claim": 10, "append": 80}[pattern]
    assert f"deleted {keys} objects" in cleaned.out


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_stores_log_agrees_with_the_records(tmp_path: Path, pattern: str) -> None:
    request_log = tmp_path / "request_log"
    with serving(LoopbackSettings(request_log=request_log)) as server:
        where = ("--endpoint-url", server.endpoint_url, "--bucket", "any", "--name", "c")
        sbench = Sbench(tmp_path, KEYS)
        flags = ("--pattern", pattern, *PATTERNS[pattern], *EIGHT, "--warm-up", 1)
        assert sbench("conditional", *where, *flags).code == 0
        server.state.request_log.settle()
        run = load_run(tmp_path / "sbench-runs" / "c")
        assert audited(run, request_log).differences == ()
        assert sbench("clean", run.path).code == 0
        server.state.request_log.settle()
        assert audited(run, request_log, cleaned=True).left == ()


@pytest.mark.parametrize("number", range(2))
def test_a_store_that_compares_and_writes_in_two_steps_is_found_out(
    tmp_path: Path, number: int
) -> None:
    del number
    done = conditional(tmp_path, *RACE, settings=LoopbackSettings(racy_conditions=True))
    assert done.code == 7, done
    found = done.json["contention"]
    assert found["commits"] == 1000
    first = found["violations"][0]
    assert first["fault"] == "forked"
    assert len(first["versions"]) >= 3


@pytest.mark.full
@pytest.mark.parametrize("number", range(20))
def test_it_is_found_out_each_time(tmp_path: Path, number: int) -> None:
    test_a_store_that_compares_and_writes_in_two_steps_is_found_out(tmp_path, number)


@pytest.mark.full
@pytest.mark.parametrize("number", range(20))
def test_the_atomic_store_is_never_accused(tmp_path: Path, number: int) -> None:
    del number
    done = conditional(tmp_path, *RACE)
    assert (done.code, done.json["contention"]["violated_keys"]) == (0, 0), done


@pytest.mark.parametrize("pattern", ["claim", "append"])
def test_a_racy_store_lets_two_have_one_key(tmp_path: Path, pattern: str) -> None:
    settings = LoopbackSettings(racy_conditions=True)
    flags = {"claim": ("--objects", 200), "append": ("--operations", 25)}[pattern]
    done = conditional(tmp_path, "--pattern", pattern, *flags, *EIGHT, settings=settings)
    assert done.code == 7, done
    assert {one["fault"] for one in done.json["contention"]["violations"]} == {"forked"}


def test_a_violation_is_a_line_that_names_key_versions_and_functions(tmp_path: Path) -> None:
    flags = ("--operations", 50, "--number", 2, "--threads", 4, "--name", "r")
    with loopback("--racy-conditions", log=tmp_path / "log") as server:
        where = ("--endpoint-url", server.endpoint_url, "--bucket", "any")
        done = Sbench(tmp_path, KEYS)("conditional", *where, *flags)
    lines = [line for line in done.out.splitlines() if "an update is lost" in line]
    assert lines
    assert "/conditional/register-00000000: version " in lines[0]
    assert "(functions " in lines[0]
    again = Sbench(tmp_path, KEYS)("report", "sbench-runs/r")
    assert (again.code, lines[0] in again.out) == (7, True)
    checked = Sbench(tmp_path, KEYS)("check", "sbench-runs/r")
    assert (checked.code, "1 shared key with an impossible history" in checked.out) == (7, True)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_unknown_results_are_no_violation(tmp_path: Path, pattern: str) -> None:
    kinds = (FaultKind.RESET_PUT, FaultKind.ERROR, FaultKind.SLOWDOWN, FaultKind.TRUNCATE)
    settings = LoopbackSettings(rates=dict.fromkeys(kinds, 0.04), seed=5)
    flags = ("--pattern", pattern, *PATTERNS[pattern], *EIGHT, "--name", "f", "--retries", 9)
    done = conditional(tmp_path, *flags, settings=settings)
    assert done.code in {0, 6}, done
    found = done.json["contention"]
    assert found["violated_keys"] == 0
    assert found["commits"] + found["taken"] + done.json["failed_operations"] == 80


def on(server: Server, directory: Path, pattern: str) -> Done:
    sbench = Sbench(directory, server.environment)
    where = ("--endpoint-url", server.endpoint_url, "--bucket", server.bucket, "--name", "c")
    flags = ("--pattern", pattern, *PATTERNS[pattern], *EIGHT)
    done = sbench("conditional", *where, *flags, "--prefix", f"conditional-{pattern}/")
    assert sbench("clean", "sbench-runs/c").code == 0
    return done


@pytest.mark.parametrize(
    "pattern",
    ["claim", *(pytest.param(name, marks=pytest.mark.full) for name in ("increment", "append"))],
)
def test_violations_of_moto_agree_with_a_request_log(
    tmp_path: Path, moto: Server, pattern: str
) -> None:
    # moto looks at a condition and then writes: now and then it lets two through.
    with proxy_of(moto.endpoint_url) as proxy:
        done = on(replace(moto, endpoint_url=proxy.url), tmp_path, pattern)
    assert proxy.accepted
    twice = [write for write, count in proxy.accepted.items() if count > 1]
    violated = done.json["contention"]["violated_keys"]
    assert (done.code, violated > 0) == (7 if twice else 0, bool(twice)), (twice, done)
    assert violated <= len(twice)


def test_a_store_that_does_not_look_at_conditions_is_found_out(
    tmp_path: Path, rclone: Server
) -> None:
    done = on(rclone, tmp_path, "claim")
    assert done.code == 7
    assert done.json["contention"]["violated_keys"] == 10


def test_bytes_that_no_function_wrote_are_found(tmp_path: Path) -> None:
    settings = LoopbackSettings(rates={FaultKind.FLIP: 0.2}, seed=3)
    flags = ("--pattern", "increment", "--operations", 20, *EIGHT)
    done = conditional(tmp_path, *flags, settings=settings)
    assert done.code == 7
    assert {one["fault"] for one in done.json["contention"]["violations"]} == {"phantom"}


def test_foreign_objects_at_shared_keys_are_not_deleted(tmp_path: Path) -> None:
    with serving(LoopbackSettings()) as server:
        sbench = Sbench(tmp_path, KEYS)
        where = ("--endpoint-url", server.endpoint_url, "--bucket", "any", "--name", "c")
        assert sbench("conditional", *where, "--operations", 2, "--objects", 2, *EIGHT).code == 0
        run = load_run(tmp_path / "sbench-runs" / "c")
        theirs, ours = run.ledger()
        with credentials(KEYS):
            s3 = open_s3(Target(bucket="any", endpoint_url=server.endpoint_url))
            s3.put_object(Bucket="any", Key=theirs, Body=b"somebody else's")
            cleaned = sbench("clean", run.path)
            assert (cleaned.code, theirs in cleaned.err, ours in cleaned.err) == (6, True, False)
            there = s3.list_objects_v2(Bucket="any")["Contents"]
    assert [entry["Key"] for entry in there] == [theirs]


def test_increments_may_end_with_the_time(tmp_path: Path) -> None:
    done = conditional(tmp_path, "--duration", 2, *EIGHT)
    assert done.code == 0, done
    assert done.json["contention"]["commits"] == done.json["operations"] > 0


@uses("client minio")
@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--operations", 1, "--duration", 1), "both end an increment"),
        (("--pattern", "append"), "an append needs --operations"),
        (("--pattern", "append", "--duration", 1), "an append needs --operations"),
        (("--pattern", "claim", "--operations", 1), "--operations does not apply to claims"),
        (("--operations", 1, "--client", "minio"), "--client minio makes no conditional writes"),
        (("--operations", 1, "--backoff", "-1"), "--backoff: '-1' is not a duration"),
    ],
)
def test_senseless_jobs_are_refused_in_one_line(
    tmp_path: Path, flags: tuple[str | int, ...], says: str
) -> None:
    done = conditional(tmp_path, *flags)
    assert (done.code, done.out) == (2, "")
    assert says in done.err.splitlines()[0]


def test_a_resumed_run_launches_no_function_and_says_why(tmp_path: Path) -> None:
    with serving(LoopbackSettings()) as server:
        sbench = Sbench(tmp_path, KEYS)
        where = ("--endpoint-url", server.endpoint_url, "--bucket", "any", "--name", "c")
        assert sbench("conditional", *where, "--operations", 5, *EIGHT).code == 0
        path = tmp_path / "sbench-runs" / "c"
        file = path / "records.jsonl"
        # On a busy machine a line that is not a record may come first.
        lines = file.read_bytes().splitlines(keepends=True)
        first = next(n for n, line in enumerate(lines) if "record" in json.loads(line))
        file.write_bytes(b"".join(lines[: first + 1]))
        kept = json.loads(lines[first])["record"]["index"]
        again = sbench("resume", path, "--format", "json")
        assert (again.code, again.json["lost"]) == (6, 1)
        assert "is not launched again" in again.err
        # The other function saw the writes of the function without a record.
        assert again.json["contention"]["violated_keys"] == 0, kept
        assert sbench("clean", path).code == 0
