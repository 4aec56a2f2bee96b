"""The Lambda host as its clients see it: unmodified botocore, genuine ``awslambdaric``."""

import base64
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from tests.clouds.aws_clients import open_client
from tests.clouds.lambda_hosts import NAME, LambdaHost, running_host
from tests.commands.command import COMMAND
from tests.commands.processes import PATIENCE_S, Family, until
from tests.stores.servers import credentials

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self").exists(), reason="functions need Linux"),
    pytest.mark.on_change(
        "serverless_bench/features/lambda_host", "serverless_bench/features/loopback/listener.py"
    ),
]

APP = """
import os, pathlib, sys, threading

def handler(event, context):
    print("did", event.get("do"))
    if event.get("note"):
        with open(event["note"], "a") as notes:
            notes.write(context.aws_request_id + "\\n")
    match event.get("do"):
        case "raise": raise ValueError("boom")
        case "exit": os._exit(3)
        case "hang": threading.Event().wait()
        case "big": return "x" * 7_000_000
        case "path": return sys.path
        case "environment": return dict(os.environ)
        case "groups": return pathlib.Path("/proc/self/cgroup").read_text()
        case "eat": return len(b"x" * (event["mib"] << 20))
        case "wait":
            while not pathlib.Path(event["file"]).exists():
                threading.Event().wait(0.01)
    return {"pid": os.getpid(), "left_ms": context.get_remaining_time_in_millis()}
"""


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("code")
    (directory / "app.py").write_text(APP)
    (directory / "broken.py").write_text("import nothing_of_that_name\n")
    return directory


Hosts = Callable[..., Any]


@pytest.fixture
def hosts(code: Path) -> Hosts:
    @contextmanager
    def start(*flags: str | float, environment: Any = None) -> Iterator[LambdaHost]:
        own: list[str | Path | float] = ["--code", code, "--handler", "app.handler", *flags]
        with running_host(environment, own) as host:
            yield host

    return start


@pytest.fixture(scope="module")
def shared(code: Path) -> Iterator[LambdaHost]:
    flags: list[str | Path | float] = ["--code", code, "--handler", "app.handler", "--timeout", 30]
    with running_host(flags=flags) as host:
        yield host


def client(host: LambdaHost, service: str = "lambda", retries: int = 0) -> Any:
    config = Config(retries={"total_max_attempts": retries + 1}, max_pool_connections=32)
    with credentials(host.environment):
        return open_client(service, config=config)


def invoke(host: LambdaHost, function: str = NAME, **event: Any) -> tuple[str, Any]:
    answer = client(host).invoke(FunctionName=function, Payload=json.dumps(event))
    return answer.get("FunctionError", ""), json.load(answer["Payload"])


def send(host: LambdaHost, **event: Any) -> None:
    post(client(host), **event)


def post(caller: Any, **event: Any) -> None:
    payload = json.dumps(event)
    told = caller.invoke(FunctionName=NAME, InvocationType="Event", Payload=payload)
    assert told["StatusCode"] == 202


def idle(host: LambdaHost) -> dict[str, Any]:
    """The status after all deliveries."""

    def settled() -> dict[str, Any]:
        status = host.status()
        return {} if status["running"] or status["queued"] else status

    return until(settled)


def refused(call: Callable[[], object]) -> tuple[int, str, dict[str, Any]]:
    with pytest.raises(ClientError) as caught:
        call()
    told: Any = caught.value.response
    return told["ResponseMetadata"]["HTTPStatusCode"], told["Error"]["Code"], told


def test_an_environment_is_reused_and_has_lambdas_variables(shared: LambdaHost) -> None:
    first, second = (invoke(shared)[1] for _ in range(2))
    assert first["pid"] == second["pid"]
    assert 0 < first["left_ms"] <= 30_000
    _, told = invoke(shared, do="environment")
    assert told["AWS_LAMBDA_FUNCTION_NAME"] == NAME
    assert told["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"] == "1769"
    assert told["AWS_ACCESS_KEY_ID"] == shared.environment["AWS_ACCESS_KEY_ID"]
    assert told["_HANDLER"] == "app.handler"
    assert "SBENCH_STORE_DIR" not in told


def test_a_function_only_sees_its_code_and_the_runtime(shared: LambdaHost, code: Path) -> None:
    _, path = invoke(shared, do="path")
    assert path[0] == str(code)
    assert not [p for p in path if "site-packages" in p]


@pytest.mark.parametrize("name", [NAME, f"123456789012:function:{NAME}", f"{NAME}:$LATEST", "arn"])
def test_a_function_has_many_names(shared: LambdaHost, name: str) -> None:
    if name == "arn":
        name = f"arn:aws:lambda:us-east-1:123456789012:function:{NAME}"
    assert invoke(shared, name)[0] == ""


def test_the_answer_has_the_log(shared: LambdaHost) -> None:
    answer = client(shared).invoke(FunctionName=NAME, LogType="Tail", Payload=b'{"do": "log"}')
    log = base64.b64decode(answer["LogResult"]).decode()
    request = answer["ResponseMetadata"]["RequestId"]
    assert answer["ExecutedVersion"] == "$LATEST"
    for line in (f"START RequestId: {request}", "did log", "REPORT", "Max Memory Used"):
        assert line in log


def test_a_dry_run_runs_no_function(shared: LambdaHost) -> None:
    before = shared.status()["delivered"]
    told = client(shared).invoke(FunctionName=NAME, InvocationType="DryRun")
    assert told["StatusCode"] == 204
    assert shared.status()["delivered"] == before


@pytest.mark.parametrize(
    ("event", "kind", "message"),
    [
        ({"do": "raise"}, "ValueError", "boom"),
        ({"do": "exit"}, "Runtime.ExitError", "exit status 3"),
        ({"do": "big"}, "Function.ResponseSizeTooLarge", "exceeded maximum allowed payload"),
    ],
)
def test_a_function_fails(
    shared: LambdaHost, event: dict[str, Any], kind: str, message: str
) -> None:
    error, told = invoke(shared, **event)
    assert (error, told["errorType"]) == ("Unhandled", kind)
    assert message in told["errorMessage"]
    assert invoke(shared)[0] == ""


def test_a_function_runs_out_of_time(hosts: Hosts) -> None:
    with hosts("--timeout", 3) as host:
        error, told = invoke(host, do="hang")
        assert (error, told["errorType"]) == ("Unhandled", "Sandbox.Timedout")
        assert "Task timed out after 3.00 seconds" in told["errorMessage"]
        assert invoke(host)[0] == ""
        assert host.status()["timeouts"] == 1


def test_a_handler_that_cannot_be_imported_is_reported(code: Path) -> None:
    with running_host(flags=["--code", code, "--handler", "broken.handler"]) as host:
        error, told = invoke(host)
        assert (error, told["errorType"]) == ("Unhandled", "Runtime.ImportModuleError")
        assert "nothing_of_that_name" in told["errorMessage"]


def test_requests_are_refused_like_by_lambda(shared: LambdaHost) -> None:
    asking = client(shared)
    status, code, _ = refused(lambda: asking.invoke(FunctionName="nobody"))
    assert (status, code) == (404, "ResourceNotFoundException")
    status, code, _ = refused(lambda: asking.invoke(FunctionName=NAME, Qualifier="7"))
    assert (status, code) == (404, "ResourceNotFoundException")
    status, code, _ = refused(lambda: asking.invoke(FunctionName=NAME, Payload=b"{"))
    assert (status, code) == (400, "InvalidRequestContentException")


@pytest.mark.parametrize(("kind", "mib"), [("RequestResponse", 6), ("Event", 1)])
def test_a_payload_can_be_too_large(shared: LambdaHost, kind: str, mib: int) -> None:
    large = json.dumps("x" * (mib << 20)).encode()
    asking = client(shared)
    status, code, _ = refused(
        lambda: asking.invoke(FunctionName=NAME, InvocationType=kind, Payload=large)
    )
    assert (status, code) == (413, "RequestTooLargeException")


def test_the_concurrency_wall_refuses_calls_and_lets_events_wait(
    hosts: Hosts, tmp_path: Path
) -> None:
    go, notes = tmp_path / "go", tmp_path / "notes"
    with hosts("--concurrency", 2) as host:
        for _ in range(5):
            send(host, do="wait", file=str(go), note=str(notes))
        until(lambda: host.status()["ready"] == 2)
        status, code, told = refused(lambda: client(host).invoke(FunctionName=NAME))
        assert (status, code) == (429, "TooManyRequestsException")
        assert told["Reason"] == "ConcurrentInvocationLimitExceeded"
        assert (host.status()["queued"], host.status()["running"]) == (3, 2)
        go.touch()
        done = idle(host)
        assert (done["succeeded"], done["peak_running"], done["cold_starts"]) == (5, 2, 2)
        assert len(set(notes.read_text().split())) == 5


def test_a_reserved_function_has_its_own_wall(hosts: Hosts) -> None:
    with hosts("--reserved", 0) as host:
        status, _, told = refused(lambda: client(host).invoke(FunctionName=NAME))
        assert (status, told["Reason"]) == (
            429,
            "ReservedFunctionConcurrentInvocationLimitExceeded",
        )


def test_requests_have_a_rate(hosts: Hosts) -> None:
    with hosts("--request-rate", 0.001, "--burst", 2) as host:
        for _ in range(2):
            send(host)
        _, _, told = refused(lambda: send(host))
        assert told["Reason"] == "CallerRateLimitExceeded"
        assert host.status()["throttled"] == 1


def test_botocore_tries_a_throttled_request_again(hosts: Hosts) -> None:
    with hosts("--throttle", "index=7") as host:
        told = client(host, retries=2).invoke(FunctionName=NAME, Payload=b'{"index": 7}')
        assert told["ResponseMetadata"]["RetryAttempts"] == 1
        assert host.status()["throttled"] == 1


def test_faults_are_injected_by_script_and_counted(hosts: Hosts, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    with hosts() as host:
        host.set_faults(
            {
                "duplicate": {"index": [1]},
                "drop": {"index": [2]},
                "late": {"index": [3]},
                "cut": {"index": [4], "launch": 0},
                "kill": {"index": [5]},
            }
        )
        for index in (0, 1, 2, 3, 5):
            send(host, index=index, note=str(notes))
        with pytest.raises(BotoCoreError):
            send(host, index=4, launch=0, note=str(notes))
        send(host, index=4, launch=1, note=str(notes))
        done = idle(host)
        assert len(set(notes.read_text().split())) == len(notes.read_text().split()) - 1
        assert {
            name: done[name] for name in ("duplicated", "dropped", "late", "cut", "killed")
        } == {
            "duplicated": 1,
            "dropped": 1,
            "late": 1,
            "cut": 1,
            "killed": 1,
        }
        assert (done["delivered"], done["held"], done["exits"]) == (6, 1, 1)
        assert host.release() == 1
        assert idle(host)["delivered"] == 7


def test_failed_events_are_redelivered_as_often_as_set(hosts: Hosts, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    with hosts("--event-retries", 2, "--retry-delay", 0) as host:
        send(host, do="raise", note=str(notes))
        until(lambda: host.status()["retried"] == 2)
        idle(host)
        requests = notes.read_text().split()
        assert (len(requests), len(set(requests))) == (3, 1)


def test_an_old_event_is_dropped(hosts: Hosts, tmp_path: Path) -> None:
    go = tmp_path / "go"
    with hosts("--concurrency", 1, "--event-age", 1) as host:
        send(host, do="wait", file=str(go))
        until(lambda: host.status()["running"] == 1)
        send(host)
        until(lambda: host.status()["expired"] == 1)
        go.touch()
        assert idle(host)["delivered"] == 1


def test_memory_is_limited_where_this_machine_can(hosts: Hosts) -> None:
    with hosts("--memory", 128) as host:
        limits = next(line for line in host.startup_output if line.startswith("limits:"))
        error, told = invoke(host, do="eat", mib=300)
        assert error == "Unhandled"
        if "cgroup" in limits:
            assert "signal: killed" in told["errorMessage"]
        else:
            assert told["errorType"] == "MemoryError"
        assert invoke(host, do="eat", mib=1) == ("", 1 << 20)


def test_cpus_are_limited_where_this_machine_can(hosts: Hosts) -> None:
    with hosts("--memory", 442, "--cpu-limit") as host:
        limits = next(line for line in host.startup_output if line.startswith("limits:"))
        groups = invoke(host, do="groups")[1].splitlines()
        mine = [line for line in groups if f"sbench-lambda-{host.pid}" in line]
        assert bool(mine) == ("cgroup v" in limits)
        for controllers, path in (line.split(":")[1:] for line in mine):
            if controllers == "cpu":
                quota = Path("/sys/fs/cgroup/cpu", path.lstrip("/"), "cpu.cfs_quota_us")
                # If the machine shows the groups under the same path.
                assert not quota.exists() or int(quota.read_text()) == 24_986


@pytest.mark.parametrize("flags", [(), ("--fresh",)])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_process_and_no_file_remains_after_the_host(
    hosts: Hosts, tmp_path: Path, flags: tuple[str, ...], number: signal.Signals
) -> None:
    family = Family()
    own = ("--pass", next(iter(family.mark)), *flags)
    room = tmp_path / "tmp"
    room.mkdir()
    with hosts(*own, environment={**family.mark, "TMPDIR": str(room)}) as host:
        for _ in range(3):
            send(host, do="wait", file=str(tmp_path / "never"))
        until(lambda: host.status()["ready"] == 3)
        assert len(family.members()) == 5  # and the fork server
        os.kill(host.pid, number)
        until(family.gone)
        assert not list(room.iterdir())


def test_environments_die_with_their_fork_server_and_the_next_call_has_another(
    hosts: Hosts,
) -> None:
    family = Family()
    with hosts(environment=family.mark) as host:
        before = invoke(host)[1]["pid"]
        psutil.Process(before).parent().kill()  # type: ignore[union-attr]
        until(lambda: not psutil.pid_exists(before))
        until(lambda: host.status()["alive"] == 0)
        assert invoke(host)[1]["pid"] != before


def test_fifty_are_alive_at_once(hosts: Hosts, tmp_path: Path) -> None:
    go = tmp_path / "go"
    with hosts() as host, ThreadPoolExecutor(8) as threads:
        caller = client(host)
        list(threads.map(lambda _: post(caller, do="wait", file=str(go)), range(50)))
        until(lambda: host.status()["ready"] == 50)
        memory = host.status(memory=True)["memory"]
        assert memory["environments"] == 50
        assert memory["pss_kib_each"] < memory["rss_kib_each"]
        go.touch()
        assert idle(host)["succeeded"] == 50


def test_a_command_gets_the_address_and_gives_its_exit_code(code: Path) -> None:
    look = (
        "import os, sys, urllib.request as u;"
        "u.urlopen(os.environ['AWS_ENDPOINT_URL_LAMBDA'] + '/sbench/status'); sys.exit(7)"
    )
    done = subprocess.run(
        [*COMMAND, "lambda-host", "--code", code, "--", COMMAND[0], "-c", look],
        env={**os.environ, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (7, "")


@pytest.mark.parametrize(
    "flags",
    [
        ("--memory", "64"),
        ("--timeout", "901"),
        ("--throttle", "2"),
        ("--drop", "colour=red"),
        ("--port", "99999"),
        ("--burst", "0"),
        ("--code", "/no/such/directory"),
        ("--event-age", "0"),
    ],
)
def test_a_wrong_flag_is_one_line(flags: tuple[str, str]) -> None:
    done = subprocess.run(
        [*COMMAND, "lambda-host", *flags],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("sbench: ")
    assert flags[0] in done.stderr
    assert "Traceback" not in done.stderr
