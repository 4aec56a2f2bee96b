"""The probe: a problem with a function is one line, before any launch."""

import json
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import serverless_bench
from serverless_bench.base.clock import wall_ns
from serverless_bench.driver.run_keys import planned_keys
from serverless_bench.job.keys import new_run_id
from serverless_bench.rundir.digests import digest_of
from serverless_bench.rundir.run import load_run
from tests.clouds.lambda_hosts import NAME, LambdaHost, install, running_host
from tests.commands.command import Done, Sbench
from tests.data.runs import forge, long_ago
from tests.house.measures import sources
from tests.house.members import uses
from tests.matrix.proxy import Refusal, Rule, proxy_of, s3_refusal
from tests.stores.servers import loopback

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="functions need Linux")

HANDLER = "serverless_bench.features.remote.handler.handler"
ELF = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00\xb7\x00\x01\x00\x00\x00" + bytes(40)
"""The head of a library for another architecture (AArch64)."""
OTHER_ARCHITECTURE = "x86_64" if platform.machine() == "aarch64" else "arm64"


@pytest.fixture(scope="module")
def host() -> Iterator[LambdaHost]:
    with running_host(flags=["--share-packages"]) as running:
        yield running


def package(**changed: str) -> dict[str, bytes | str]:
    """Return the files of this package, some with a line more."""
    root = Path(serverless_bench.__file__).parent
    files: dict[str, bytes | str] = {}
    for path in sources(root):
        name = path.relative_to(root.parent).as_posix()
        files[name] = path.read_text() + changed.get(path.stem, "")
    return files


@contextmanager
def nothing_sent(host: LambdaHost) -> Iterator[None]:
    """Have no asynchronous event sent for the length of a block."""
    before = host.status()["events"]
    yield
    assert host.status()["events"] == before


def write(sbench: Sbench, host: LambdaHost, url: str, *flags: object, function: str = NAME) -> Done:
    arguments = ("--executor", "lambda", "--function", function, "--endpoint-url", url)
    more = ("--bucket", "b", "--number", 2, "--size", "64KiB", "--name", "w")
    return sbench("write", *arguments, *more, *map(str, flags), **host.environment)


def refusal(done: Done, *words: str) -> None:
    """One line states the problem, a second one the hint."""
    assert done.code == 4, done.err
    # With a trusted run from elsewhere, the output also names its servers.
    lines = [document for document in done.err.splitlines() if "was not made here" not in document]
    line, *hint = [document for document in lines if not document.startswith("note: ")]
    assert len(hint) == 1, done.err
    for word in words:
        assert word in line, line


def test_a_function_describes_itself_and_is_no_cold_start(sbench: Sbench, store: str) -> None:
    with running_host() as host:
        done = write(sbench, host, store, "--concurrency", 1, "--format", "json")
        status = host.status()
    assert done.code == 0, done.err
    assert (status["invokes"], status["events"], status["cold_starts"]) == (3, 2, 1)
    run = load_run(sbench.directory / "sbench-runs" / "w")
    (document,) = run.probed
    assert (document["name"], document["cold"], document["refused"]) == (NAME, True, "")
    assert (document["memory_mib"], document["region"], document["in_vpc"]) == (
        1769,
        "us-east-1",
        False,
    )
    assert document["requests"] == {"control": {"put": 2, "get": 1}, "data": {"put": 1}}
    report = done.json
    assert report["cold_starts"] == 0, "the probe's environment was warm"
    assert set(run.functions["worker_id"]) == {document["worker_id"]}
    assert report["bill"]["invocations"] == 3
    assert report["bill"]["overhead"]["probes"]["put"] == 1
    # Its objects are deleted immediately.
    assert not [key for key in run.ledger() if "/probe/" in key]


def test_without_the_probe_no_function_is_invoked(
    sbench: Sbench, store: str, host: LambdaHost
) -> None:
    before = host.status()
    assert write(sbench, host, store, "--no-probe").code == 0
    after = host.status()
    assert after["invokes"] - before["invokes"] == after["events"] - before["events"] == 2
    assert load_run(sbench.directory / "sbench-runs" / "w").probed == ()


def test_a_handler_that_cannot_be_imported(sbench: Sbench, store: str, host: LambdaHost) -> None:
    install(host, "broken", {"app.py": "import nothing_of_that_name\n"}, "app.handler")
    with nothing_sent(host):
        done = write(sbench, host, store, function="broken")
    refusal(done, "'broken' cannot start", "Runtime.ImportModuleError", "nothing_of_that_name")
    assert not (sbench.directory / "sbench-runs").exists(), "nothing was begun"


def test_another_cpu(sbench: Sbench, store: str, host: LambdaHost) -> None:
    files: dict[str, bytes | str] = {"app.py": "import native\n", "native.so": ELF}
    install(host, "foreign", files, "app.handler")
    with nothing_sent(host):
        done = write(sbench, host, store, function="foreign")
    refusal(done, "'foreign' cannot start", "native.so")
    assert "another architecture" in done.err


def test_stale_code(sbench: Sbench, store: str, host: LambdaHost) -> None:
    install(host, "stale", package(barrier="\n# older\n"), HANDLER)
    with nothing_sent(host):
        done = write(sbench, host, store, function="stale")
    refusal(done, "'stale' runs other code", "features/barrier/barrier.py")
    assert "sam deploy" in done.err
    assert write(sbench, host, store, "--no-probe", function="stale").code == 0


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('event["target"]', "cannot start: KeyError: 'target'"),
        ('{"hello": 1}', "does not support the probe"),
    ],
)
def test_another_version_of_sbench_is_refused(
    sbench: Sbench, store: str, host: LambdaHost, body: str, words: str
) -> None:
    name = f"other-{len(body)}"
    code = f"def handler(event, context):\n    return {body}\n"
    install(host, name, {"app.py": code}, "app.handler")
    with nothing_sent(host):
        refusal(write(sbench, host, store, function=name), words)


def test_a_function_that_ends_while_it_answers(
    sbench: Sbench, store: str, host: LambdaHost
) -> None:
    code = "import os\ndef handler(event, context):\n    print('last words')\n    os._exit(3)\n"
    install(host, "exits", {"app.py": code}, "app.handler")
    with nothing_sent(host):
        done = write(sbench, host, store, function="exits")
    refusal(done, "exit status 3")


@pytest.mark.parametrize(
    ("flag", "value", "words"),
    [("--memory", 3538, "has 1769 MB"), ("--arch", OTHER_ARCHITECTURE, "runs on ")],
)
def test_the_probe_follows_the_users_flags(
    sbench: Sbench, store: str, host: LambdaHost, flag: str, value: object, words: str
) -> None:
    with nothing_sent(host):
        done = write(sbench, host, store, flag, value)
    refusal(done, f"'{NAME}' {words}", f"{flag} says {value}")


def forgotten(path: Path, *functions: str) -> None:
    """Make a run look as if its driver had died before anything had begun."""
    header = json.loads((path / "run.json").read_text())
    # No claims or records of a run with this name exist, and no request for them was made.
    now_ns = wall_ns()
    header |= {"run_id": new_run_id(now_ns), "created_ns": now_ns, "probe": {"functions": []}}
    forge(path, header)
    keys = planned_keys(load_run(path), range(1))
    (path / "ledger.txt").write_text("".join(f"{key}\n" for key in keys))
    header["files"]["ledger.txt"] = digest_of(path / "ledger.txt").to_json()
    forge(path, header)
    (path / "records.jsonl").write_text("")
    invoking(path, *functions)


def invoking(path: Path, *functions: str) -> None:
    """Have a run go on with these functions."""
    header = json.loads((path / "run.json").read_text())
    header["job"]["function"] = functions
    forge(path, header)


def test_a_function_is_probed_again_before_a_resume(
    sbench: Sbench, store: str, host: LambdaHost
) -> None:
    assert write(sbench, host, store, "--memory", 1769).code == 0
    path = sbench.directory / "sbench-runs" / "w"
    install(host, "older", package(barrier="\n# older\n"), HANDLER)
    forgotten(path, "older")
    with nothing_sent(host):
        refusal(sbench("resume", "w", "--trust", **host.environment), "'older' runs other code")
    assert [one["name"] for one in load_run(path).probed] == ["older"], "it is billed all the same"
    forgotten(path, NAME)
    done = sbench("resume", "w", "--trust", "--format", "json", **host.environment)
    assert done.code == 0, done.err
    assert done.json["ok"] == 2
    assert [one["name"] for one in load_run(path).probed] == [NAME]
    assert done.json["bill"]["invocations"] == 3


@uses("feature check")
def test_the_stores_log_agrees_with_a_resumed_run(
    sbench: Sbench, host: LambdaHost, tmp_path: Path
) -> None:
    request_log = tmp_path / "request_log"
    with loopback("--request-log", str(request_log), log=tmp_path / "out") as server:
        assert write(sbench, host, server.endpoint_url, "--key-file", "keys").code == 0
        flags = ("--executor", "lambda", "--function", NAME, "--bucket", "b", "--name", "r")
        where = ("--endpoint-url", server.endpoint_url, "--key-file", "keys")
        done = sbench("read", *flags, *where, **host.environment)
        assert done.code == 0, done.err
        path = sbench.directory / "sbench-runs" / "r"
        install(host, "elder", package(barrier="\n# older\n"), HANDLER)
        forgotten(path, "elder")
        refusal(sbench("resume", "r", "--trust", **host.environment), "'elder' runs other code")
        invoking(path, NAME)
        assert sbench("resume", "r", "--trust", **host.environment).code == 0
        assert [one["name"] for one in load_run(path).probed] == ["elder", NAME]
        checked = sbench("check", "r", "--request-log", request_log)
    assert checked.code == 0, checked.out


def denied(method: str, part: str) -> Rule:
    """Refuse requests of one kind, like a policy."""

    def rule(asked: str, path: str) -> Refusal | None:
        return s3_refusal(403, "AccessDenied") if asked == method and part in path else None

    return rule


@pytest.mark.parametrize(
    ("method", "part", "words"),
    [
        ("PUT", "/claims/", "put if absent in bucket b"),
        ("PUT", "/records/", "put in bucket b"),
        ("PUT", "/probe/", "put in bucket b"),
        ("DELETE", "/probe/", "delete in bucket b"),
    ],
)
def test_missing_permissions_are_named(
    sbench: Sbench, store: str, host: LambdaHost, method: str, part: str, words: str
) -> None:
    flags = ("--executor", "lambda", "--function", NAME, "--bucket", "b", "--number", 2)
    mixed = ("--operations", 4, "--size", "64KiB", "--objects", 4, "--name", "w")
    with proxy_of(store) as proxy, nothing_sent(host):
        proxy.rule = denied(method, part)
        where = ("--endpoint-url", proxy.url)
        done = sbench("mixed", *flags, *mixed, *where, **host.environment)
    refusal(done, "lacks permissions that this job needs", words, "AccessDenied")
    # A mix deletes; the role of a stack's functions may only delete on request.
    assert ("AllowDelete=true" in done.err) == (method == "DELETE")


def test_a_read_only_needs_permission_to_read(sbench: Sbench, store: str, host: LambdaHost) -> None:
    assert write(sbench, host, store, "--key-file", "keys").code == 0
    with proxy_of(store) as proxy:
        proxy.rule = denied("PUT", "/b/sbench/")
        flags = ("--executor", "lambda", "--function", NAME, "--bucket", "b", "--name", "r")
        where = ("--endpoint-url", proxy.url, "--key-file", "keys")
        done = sbench("read", *flags, *where, **host.environment)
        assert done.code == 0, done.err
        proxy.rule = denied("GET", "/b/sbench/")
        done = sbench("read", *flags[:-1], "again", *where, **host.environment)
    refusal(done, "get in bucket b", "AccessDenied")


def test_undeletable_objects_of_the_probe_are_left_to_clean(
    sbench: Sbench, store: str, host: LambdaHost
) -> None:
    with proxy_of(store) as proxy:
        proxy.rule = denied("DELETE", "probe")
        assert write(sbench, host, proxy.url).code == 0
        run = load_run(sbench.directory / "sbench-runs" / "w")
        assert [key for key in run.ledger() if "/probe/" in key] == [f"sbench/{run.run_id}/probe/0"]
        proxy.rule = lambda *_: None
        long_ago(run.path)
        cleaned = sbench("clean", "sbench-runs/w", **host.environment)
    assert cleaned.code == 0, cleaned.err
    # A claim and a record each, those of the probe, and the stop object.
    assert "deleted 3 objects, 7 claims and records" in cleaned.out


def test_a_throttled_function_is_probed_again(sbench: Sbench, store: str) -> None:
    with running_host(flags=["--throttle", 0.5, "--seed", 3]) as host:
        assert write(sbench, host, store).code == 0
        assert host.status()["throttled"] > 0


def test_credentials_that_cannot_be_renewed_are_one_line(
    sbench: Sbench, store: str, host: LambdaHost, tmp_path: Path
) -> None:
    (tmp_path / "config").write_text("[default]\ncredential_process = false\n")
    environment: dict[str, Any] = {
        **host.environment,
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
        "AWS_ACCESS_KEY_ID": "",
        "AWS_SECRET_ACCESS_KEY": "",
    }
    flags = ("--executor", "lambda", "--function", NAME, "--endpoint-url", store, "--bucket", "b")
    with nothing_sent(host):
        done = sbench("write", *flags, "--number", 2, "--size", "64KiB", **environment)
    assert done.code in {4, 5}, done.err
    first, hint = done.err.splitlines()
    assert "the credentials cannot be used" in first
    assert "log in again" in hint


@uses("feature barrier")
def test_each_batch_of_a_small_quota_begins_together(sbench: Sbench, store: str) -> None:
    with running_host(flags=["--concurrency", 4]) as host:
        flags = ("--barrier", 1, "--barrier-timeout", 300, "--size", "8MiB", "--format", "json")
        done = write(sbench, host, store, "--number", 8, *flags)
    assert done.code == 0, done.err
    report = done.json
    run = load_run(sbench.directory / "sbench-runs" / "w")
    assert run.limits is not None
    assert (run.limits["asked"], run.limits["quota"], run.limits["effective"]) == (8, 4, 4)
    assert (run.job.concurrency, report["planned_concurrency"]) == (4, 4)
    barrier = report["barrier"]
    assert (barrier["expected"], barrier["announced"], barrier["late"]) == (8, 8, 0)
    # A batch starts when the one before it has ended.
    begun = run.functions["start_ns"] + run.functions["barrier_wait_ns"]
    index, ends = run.functions["index"], run.functions["end_ns"]
    assert begun[index >= 4].min() >= ends[index < 4].max()
    # Waiting for the quota is not a slow launch: a batch counts as submitted after its wait.
    submitted = run.functions["submitted_ns"]
    assert submitted[index >= 4].min() >= ends[index < 4].min()
    assert json.loads((run.path / "run.json").read_text())["job"]["concurrency"] == 4
