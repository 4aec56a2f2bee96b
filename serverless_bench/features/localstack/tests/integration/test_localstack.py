"""LocalStack starts, only listens on loopback, and leaves no files."""

import base64
import io
import json
import os
import signal
import socket
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from serverless_bench.base.errors import StoreError
from serverless_bench.features.localstack.server import LocalStackInstallation, started
from tests.clouds.aws_clients import open_client
from tests.clouds.localstacks import running_localstack
from tests.clouds.sam import RUNTIME
from tests.commands.command import Apart
from tests.commands.other_user import CLOSED, stranger
from tests.commands.processes import PATIENCE_S, Family, until
from tests.stores.servers import DIRECT

pytestmark = pytest.mark.on_change(
    "serverless_bench/features/localstack",
    "serverless_bench/features/lambda_host",
    "serverless_bench/features/loopback/listener.py",
)

SERVER = "localstack.runtime.main"
TIMEOUT_S = 15
"""Enough for any function but the one that hangs, on a busy machine, too."""


@pytest.fixture
def alone(tmp_path: Path, family: Family) -> Apart:
    (tmp_path / "tmp").mkdir()
    return Apart(tmp_path, {"TMPDIR": str(tmp_path / "tmp"), **family.mark})


def servers(directory: Path) -> list[psutil.Process]:
    """LocalStacks that keep their files below a directory, without variables of the user."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if SERVER in " ".join(process.cmdline()):
                home = process.environ().get("HOME", "")
                found += [process] if home.startswith(str(directory)) else []
    return found


def test_it_only_listens_on_loopback_without_user_variables_and_ends(
    tmp_path: Path, family: Family
) -> None:
    values = {"AWS_PROFILE": "mine", "LOCALSTACK_AUTH_TOKEN": "secret", "DEBUG": "1"}
    with running_localstack({**family.mark, **values, "TMPDIR": str(tmp_path)}) as localstack:
        (server,) = servers(tmp_path)
        seen = server.environ()
        listening = [
            connection.laddr
            for connection in server.net_connections("tcp")
            if connection.status == psutil.CONN_LISTEN
        ]
        localstack.process.send_signal(signal.SIGTERM)
        assert localstack.process.wait(PATIENCE_S) == 0
    # The Lambda host has sockets, too, which its own tests check.
    assert [(ip, f"http://{ip}:{port}") for ip, port in listening] == [
        ("127.0.0.1", localstack.url)
    ]
    assert not set(values) & set(seen)
    assert seen["HOME"].startswith(str(tmp_path))
    assert family.gone()
    assert servers(tmp_path) == []
    assert [*tmp_path.glob("sbench-*")] == []


def test_kill_9_leaves_no_process_and_the_next_start_works(
    alone: Apart, family: Family, tmp_path: Path
) -> None:
    where = {**family.mark, "TMPDIR": str(tmp_path / "tmp")}
    with running_localstack(where) as localstack:
        assert len(servers(tmp_path)) == 1
        os.kill(localstack.process.pid, signal.SIGKILL)
        localstack.process.wait()
    until(lambda: family.gone() and not servers(tmp_path))
    left = {*(tmp_path / "tmp").glob("sbench-*")}
    (volume,) = (path for path in left if path.name.startswith("sbench-localstack-"))
    script = (
        "import os, urllib.request as r\n"
        "url = os.environ['AWS_ENDPOINT_URL']\n"
        "print(url, r.urlopen(url + '/_localstack/health').status)\n"
        "raise SystemExit(7)"
    )
    done = alone("localstack", "--", "python3", "-c", script, AWS_ENDPOINT_URL="http://elsewhere")
    assert done.code == 7, done.err
    url, status = done.out.split()
    assert url.startswith("http://127.0.0.1:")
    assert status == "200"
    assert family.gone()
    assert servers(tmp_path) == []
    assert {*(tmp_path / "tmp").glob("sbench-*")} == left - {volume}


def test_a_port_that_is_taken_is_an_error_of_one_line(alone: Apart) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
        done = alone("localstack", "--port", port)
    assert done.code == 2
    assert done.err.startswith(f"sbench: port {port} cannot be used")
    assert "hint: give another --port" in done.err


def test_an_environment_that_cannot_be_kept_is_an_error_of_one_line(
    alone: Apart, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    done = alone("localstack", SBENCH_LOCALSTACK_DIR=str(tmp_path / "file"))
    assert done.code == 5
    assert "cannot keep LocalStack in" in done.err


def test_its_last_output_is_in_the_error(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho Traceback\necho RuntimeError: it is broken\necho\nexit 3\n")
    python.chmod(0o755)
    broken, log = LocalStackInstallation(version="0", python=python), tmp_path / "log"
    with (
        started(broken, port=0, lambda_host="http://127.0.0.1:1", log=log) as localstack,
        pytest.raises(StoreError, match="ended with 3: RuntimeError: it is broken") as caught,
    ):
        until(localstack.ready)
    assert caught.value.hint == f"see {log}"


HANDLER = """
import os, sys, time
born = []
def handler(event, context):
    print("event", event, os.environ["COLOUR"], context.memory_limit_in_mb)
    if event == "raise":
        raise ValueError("no")
    if event == "exit":
        os._exit(3)
    if event == "hang":
        time.sleep(600)
    born.append(event)
    import layered
    return [len(born), layered.NAME, context.function_name]
"""


def zipped(**files: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, text in files.items():
            archive.writestr(name.replace("__", "/") + ".py", text)
    return data.getvalue()


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Lambda, with one function that has one layer."""
    with running_localstack() as localstack:
        values = localstack.environment
        made = open_client(
            "lambda",
            endpoint_url=localstack.url,
            region_name=values["AWS_DEFAULT_REGION"],
            aws_access_key_id=values["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=values["AWS_SECRET_ACCESS_KEY"],
        )
        layer = made.publish_layer_version(
            LayerName="layer", Content={"ZipFile": zipped(python__layered="NAME = 'layer'")}
        )
        made.create_function(
            FunctionName="tested",
            Runtime=RUNTIME,
            Handler="app.handler",
            Role="arn:aws:iam::000000000000:role/any",
            Code={"ZipFile": zipped(app=HANDLER)},
            Layers=[layer["LayerVersionArn"]],
            Timeout=TIMEOUT_S,
            MemorySize=256,
            Environment={"Variables": {"COLOUR": "blue"}},
        )
        yield made


def invoke(client: Any, event: str) -> tuple[Any, str | None, str]:
    answer = client.invoke(FunctionName="tested", Payload=json.dumps(event), LogType="Tail")
    log = base64.b64decode(answer.get("LogResult", "")).decode()
    return json.load(answer["Payload"]), answer.get("FunctionError"), log


def test_another_user_and_a_web_page_cannot_deploy(client: Any) -> None:
    url = client.meta.endpoint_url
    path = "/2015-03-31/functions/tested/invocations"
    with stranger() as nobody:
        for method, asked in (("POST", path), ("GET", "/_localstack/health"), ("PUT", "/bucket")):
            assert nobody.request(f"{url}{asked}", method, '"theirs"')[0] in CLOSED
    for name, value in (("Host", "rebound.example"), ("Origin", "http://localhost:8000")):
        page = urllib.request.Request(f"{url}{path}", b'"page"', {name: value})
        with pytest.raises(urllib.error.HTTPError) as refused:
            DIRECT.open(page)
        with refused.value as answer:
            assert (answer.status, answer.read()) == (
                403,
                b"this LocalStack rejects requests from web pages",
            )


def test_functions_run_and_stay_warm(client: Any) -> None:
    first, error, log = invoke(client, "a")
    assert (first[1:], error) == (["layer", "tested"], None)
    assert "event a blue 256" in log
    second, _, _ = invoke(client, "b")
    assert second[0] == first[0] + 1


@pytest.mark.parametrize(
    ("event", "says"),
    [
        ("raise", "no"),
        ("exit", "exit status 3"),
        ("hang", f"timed out after {TIMEOUT_S}.00 seconds"),
    ],
)
def test_functions_fail_and_are_replaced(client: Any, event: str, says: str) -> None:
    before, _, _ = invoke(client, "before")
    answer, error, log = invoke(client, event)
    assert error == "Unhandled"
    assert says in answer["errorMessage"]
    again, error, _ = invoke(client, "again")
    assert error is None
    # A failed function is a new process.
    assert again[0] == (before[0] + 1 if event == "raise" else 1), log


def test_a_function_that_cannot_be_imported_says_so(client: Any) -> None:
    client.create_function(
        FunctionName="broken",
        Runtime=RUNTIME,
        Handler="app.handler",
        Role="arn:aws:iam::000000000000:role/any",
        Code={"ZipFile": zipped(app="import not_there")},
    )
    answer = client.invoke(FunctionName="broken", Payload="{}")
    assert answer["FunctionError"] == "Unhandled"
    assert "not_there" in answer["Payload"].read().decode()
