"""Every mistake gives one line that names it, a hint, and its own exit code."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from serverless_bench.cli.main import main
from tests.commands.command import COMMAND, Sbench
from tests.house.removed import skip_if_named
from tests.stores.servers import KEYS, Server, free_port

READ = ("read", "--key", "k")
LAMBDA = ("write", "--executor", "lambda", "--function", "f")


@pytest.fixture
def anywhere(tmp_path: Path) -> Sbench:
    """The command without any store."""
    return Sbench(tmp_path, {**KEYS, "SBENCH_STORE_DIR": str(tmp_path / "store")})


BAD = [
    (2, "--number must be at least 1, got 0", ("write", "--number", "0")),
    (2, "--number must be at least 1, got -3", ("write", "--number", "-3")),
    (2, "--mb must be at least 1, got 0", ("write", "--mb", "0")),
    (2, "--size: '0GB' is not a size", ("write", "--size", "0GB")),
    (2, "'12 parsecs' is not a size", ("write", "--size", "12 parsecs")),
    (2, "--mb and --sizes give the size", ("write", "--mb", "1", "--sizes", "uniform:1MiB:2MiB")),
    (2, "'nothing' is", ("write", "--sizes", "nothing")),
    (2, "is not a layout of keys", ("write", "--layout", "sharded:0")),
    (2, "--compressibility must be between 1 and 50", ("write", "--compressibility", "0.5")),
    (2, "--threads must be at least 1, got 0", ("write", "--threads", "0")),
    (2, "--rate must be positive, got 0", ("write", "--rate", "0")),
    (2, "--client-option 'x' is not NAME=VALUE", ("write", "--client-option", "x")),
    (2, "both end a mix", ("mixed", "--operations", "1", "--duration", "1")),
    (2, "'get=much' is not KIND=WEIGHT", ("mixed", "--operations", "1", "--mix", "get=much")),
    (2, "has no weight above 0", ("mixed", "--operations", "1", "--mix", "get=0")),
    (2, "--threads 99 need as many", ("mixed", "--operations", "1", "--threads", "99")),
    (2, "is not a URL", ("write", "--bucket", "b", "--endpoint-url", "http://a,b")),
    (2, "--stall: 'now' is not of the form AT:FOR", ("serve", "--stall", "now")),
    (2, "--mb and --size give the size", ("write", "--mb", "1", "--size", "1MB")),
    (2, "--objects must be at least 1", ("write", "--objects", "0")),
    (2, "--concurrency must be at least 1", ("write", "--concurrency", "0")),
    (2, "--connections must be at least 1", ("write", "--connections", "0")),
    (2, "--part-size must be between 5 MiB and 5 GiB, got 4 MiB", ("write", "--part-size", "4MiB")),
    (2, "--block-size must be", ("write", "--block-size", "512B")),
    (2, "--retries must be at least 0", ("write", "--retries", "-1")),
    (2, "--timeout must be positive", ("write", "--timeout", "0")),
    (2, "--deadline: '-1' is not a duration", ("write", "--deadline", "-1")),
    (2, "--name 'a/b' is not a plain name", ("write", "--name", "a/b")),
    (2, "--verify: 'maybe' is not one of", (*READ, "--verify", "maybe")),
    (2, "--number: 'many' is not", ("write", "--number", "many")),
    (2, "No such option", ("write", "--bukket", "b")),
    (2, "No such command", ("wirte",)),
    (2, "cannot write --key-file", ("write", "--key-file", "no/such/directory/k")),
    (2, "cannot write --pickle", ("write", "--pickle", "no/such/directory/p")),
    (2, "give --key-file or --key", ("read",)),
    (2, "cannot read the key file", ("read", "--key-file", "none.txt")),
    (2, "has no keys", ("read", "--key-file", "empty.txt")),
    (2, "it is not text", ("read", "--key-file", "binary.txt")),
    (2, "--read-times must be at least 1", (*READ, "--read-times", "0")),
    (2, "needs a --bucket", ("write", "--endpoint-url", "http://127.0.0.1:1")),
    (2, "'nonsense' is not a URL", (*READ, "--endpoint-url", "nonsense", "--bucket", "bbb")),
    (2, "is not a URL of a store", ("write", "--endpoint-url", "", "--bucket", "b")),
    (2, "is not a URL of a store", ("write", "--endpoint-url", "ftp://h", "--bucket", "b")),
    (2, "is not a URL: Port out", ("write", "--endpoint-url", "http://h:99999", "--bucket", "b")),
    (2, "is not a URL of a store", ("write", "--endpoint-url", "http://h/b//", "--bucket", "b")),
    (2, "has a query or a fragment", (*READ, "--endpoint-url", "http://h/b?c", "--bucket", "b")),
    (2, "has a query or a fragment", (*READ, "--endpoint-url", "http://h/#c", "--bucket", "b")),
    (
        2,
        "contains a user or a password",
        (*READ, "--endpoint-url", "http://u:p@h", "--bucket", "b"),
    ),
    (2, "has a segment that is empty", ("write", "--prefix", "/a")),
    (2, "has a segment that is empty", ("array", "write", "--prefix", "a/../b/")),
    (2, "cannot be printed", ("mixed", "--operations", "1", "--prefix", "a\nb")),
    (2, "901 bytes, at most 900", ("write", "--prefix", "p" * 901)),
    (2, "has a segment", (*LAMBDA, "--bucket", "b", "--control-prefix", "a//b")),
    (2, "'' is not an object key", ("read", "--key", "")),
    (2, "is not an object key", ("read", "--key", "a\nb")),
    (2, "not a multiple of --split 4", (*READ, "--split", "4", "--number", "6")),
    (2, "the key 'k' contains none", (*READ, "--split", "4")),
    (2, "--split must be at least 1, got 0", (*READ, "--split", "0")),
    (2, "is not a bucket name", (*READ, "--endpoint-url", "http://127.0.0.1:1", "--bucket", "b/c")),
    (2, "which function to invoke", ("write", "--executor", "lambda")),
    (2, "cannot reach the embedded store", (*LAMBDA,)),
    (2, "--stack does not apply to --executor local", ("write", "--stack", "s")),
    (2, "--function does not apply to --executor local", ("write", "--function", "f")),
    (2, "--probe does not apply to --executor local", ("write", "--no-probe")),
    (2, "--control-prefix does not apply", ("write", "--control-prefix", "c/")),
    (2, "--control-prefix '/' is no prefix", (*LAMBDA, "--control-prefix", "/")),
    (2, "--control-prefix 's3://b' is no prefix", (*LAMBDA, "--control-prefix", "s3://b")),
    (2, "--control: 's3://b/' is not a prefix", ("worker", "--control", "s3://b/")),
    (2, "--control: '/' is not a prefix", ("worker", "--control", "/")),
    (2, "not one of 'arm64', 'x86_64'", ("write", "--arch", "mips")),
    (2, "not one of 'arm64', 'x86_64'", ("plan", "--arch", "mips")),
    (2, "No such option '--number'", ("plan", "--number", "3", "write")),
    (2, "plan needs a command", ("plan", "--quota", "3")),
    (2, "--start-timeout must be positive", ("write", "--start-timeout", "0")),
    (3, "unknown client 'nope'", ("write", "--client", "nope")),
    (3, "unknown executor 'nope'", ("write", "--executor", "nope")),
    (3, "unknown reporter 'nope'", ("write", "--format", "nope")),
    (8, "there is no run 'nowhere'", ("report", "nowhere")),
    (8, "newer sbench (schema 99", ("report", "newer")),
    (8, "is damaged", ("report", "damaged")),
    (8, "there is no run 'nowhere'", ("plot", "nowhere")),
    (8, "there is no run 'nowhere'", ("clean", "nowhere")),
    (8, "there is no run 'nowhere'", ("resume", "nowhere")),
]


@pytest.mark.parametrize(("code", "words", "arguments"), BAD)
def test_one_line_a_hint_and_a_code(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    code: int,
    words: str,
    arguments: tuple[str, ...],
) -> None:
    skip_if_named(arguments)
    here = tmp_path
    monkeypatch.chdir(here)
    for name, value in {**KEYS, "SBENCH_STORE_DIR": "store"}.items():
        monkeypatch.setenv(name, value)
    (here / "empty.txt").write_text("\n")
    (here / "binary.txt").write_bytes(b"\x80\x04pickle")
    for name, text in (("newer", json.dumps({"schema": 99})), ("damaged", "{")):
        (here / name).mkdir()
        (here / name / "run.json").write_text(text)
    # In this process, because there are many cases; the other tests start the command.
    ended = main(arguments)
    done = capsys.readouterr()
    lines = done.err.splitlines()
    assert ended == code, done.err
    assert lines[0].startswith("sbench: ")
    assert words in lines[0]
    assert len(lines) <= 2
    assert done.out == ""
    assert not (here / "sbench-runs").exists()
    assert not (here / "store").exists()


def test_an_endpoint_that_does_not_answer(anywhere: Sbench) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    done = anywhere("write", "--endpoint-url", url, "--bucket", "bbb")
    assert (done.code, done.err.splitlines()[1:]) == (
        5,
        ["hint: check --endpoint-url, and that the store runs"],
    )
    assert "does not answer" in done.err


def test_a_store_that_speaks_http_alone(tmp_path: Path, moto: Server) -> None:
    host = moto.endpoint_url.removeprefix("http://")
    sbench = Sbench(tmp_path, moto.environment)
    done = sbench("write", "--endpoint-url", f"https://{host}", "--bucket", "bbb")
    assert (done.code, done.err.splitlines()) == (
        5,
        [
            f"sbench: {host} does not speak https",
            f"hint: --endpoint-url http://{host} if it speaks http",
        ],
    )


def test_a_bucket_that_is_not_there(tmp_path: Path, moto: Server) -> None:
    sbench = Sbench(tmp_path, moto.environment)
    done = sbench("write", "--endpoint-url", moto.endpoint_url, "--bucket", "nobodys")
    assert (done.code, *done.err.splitlines()) == (
        5,
        "sbench: bucket 'nobodys' does not exist",
        "hint: sbench write --create-bucket creates it, or name another --bucket",
    )


def test_credentials_that_are_missing_or_wrong(tmp_path: Path, embedded: Server) -> None:
    where = ("--endpoint-url", embedded.endpoint_url, "--bucket", embedded.bucket)
    none = Sbench(tmp_path, {})("write", *where)
    assert (none.code, none.err.splitlines()[0]) == (5, "sbench: no credentials found")
    wrong = Sbench(tmp_path, KEYS)("write", *where)
    assert wrong.code == 5
    assert "refuses these credentials" in wrong.err


@pytest.mark.parametrize("where", [(), ("--endpoint-url", "http://127.0.0.1:1")])
@pytest.mark.parametrize(
    ("variable", "value", "why"),
    [
        ("AWS_PROFILE", "nobodys", "no credentials found: The config profile (nobodys)"),
        ("AWS_CONFIG_FILE", "config", "the AWS configuration cannot be read: Unable to parse"),
    ],
)
def test_a_profile_that_cannot_be_read(
    tmp_path: Path, where: tuple[str, ...], variable: str, value: str, why: str
) -> None:
    """For any location of the bucket, and before any request."""
    (tmp_path / "config").write_text("[oops")
    done = Sbench(tmp_path, {variable: value})("write", *where, "--bucket", "b", "--mb", 1)
    assert done.code == 5
    assert done.err.startswith(f"sbench: {why}")


def test_more_bytes_than_the_disk_has(sbench: Sbench) -> None:
    done = sbench("write", "--number", 1800, "--mb", 200_000)
    assert done.code == 2
    first, hint = done.err.splitlines()
    assert first.startswith("sbench: 1,800 objects of 195.3 GiB are 343.32 TiB; the embedded store")
    assert all(way in hint for way in ("--number", "--endpoint-url", "--bucket", "--executor"))


def test_a_name_that_is_taken(sbench: Sbench) -> None:
    assert sbench("write", "--number", 1, "--mb", 1, "--name", "w").code == 0
    done = sbench("write", "--number", 1, "--mb", 1, "--name", "w")
    assert (done.code, done.err.splitlines()[0]) == (
        8,
        "sbench: sbench-runs/w already holds a run",
    )


def test_settings_that_are_wrong(anywhere: Sbench) -> None:
    settings = anywhere.directory / "sbench.toml"
    settings.write_text("[write]\nbukket = 1\n")
    done = anywhere("--config", "sbench.toml", "write")
    assert (done.code, "has no flag 'bukket'" in done.err) == (2, True)
    settings.write_text("= 3")
    for named in ((), ("--config", "sbench.toml")):
        assert "cannot read sbench.toml" in anywhere(*named, "write").err
    assert "file nowhere.toml does not exist" in anywhere("write", SBENCH_CONFIG="nowhere.toml").err
    for line, says in (
        ("prices = 3", ": prices must be text"),
        ('mb = ["1", "2"]', ": mb must be one value"),
        ('bucket = "\\u001b[2J"', ": bucket has characters that cannot be printed"),
    ):
        settings.write_text(f"[write]\n{line}\n")
        done = anywhere("write", SBENCH_CONFIG="sbench.toml")
        assert (done.code, says in done.err) == (2, True), done


def test_a_disk_that_fills_up_during_the_run(sbench: Sbench) -> None:
    # ulimit -f makes writes beyond 24 KiB fail, only in this process and its children: the live
    # board of four workers fits, the records do not. The store is another process, so it continues.
    words = "write --number 40 --concurrency 4 --mb 1 --format json"
    command = f"ulimit -f 24; exec {' '.join(COMMAND)} {words}"
    # Python up to 3.13 keeps a compiled module that it could not write whole (gh-126606): it
    # would break the environment that the tests run in.
    keep_out = {"PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=sbench.directory,
        env={**os.environ, **sbench.environment, **keep_out},
        capture_output=True,
        text=True,
        check=False,
    )
    report = json.loads(done.stdout.splitlines()[-1])
    assert (report["ok"], report["requested"]) == (40, 40)
    assert done.returncode == 8
    assert "the disk is full" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_way_out_of_a_bug_is_named(sbench: Sbench) -> None:
    # A home for run directories that is a file: an error that no check foresees.
    (sbench.directory / "file").write_text("")
    done = sbench("write", "--number", 1, "--mb", 1, "--run-dir", "file/x", "--name", "n")
    assert done.code == 8
    assert "cannot write the run directory" in done.err
