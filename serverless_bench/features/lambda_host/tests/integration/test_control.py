"""The Lambda host besides Invoke: functions, layers, environments, scripts."""

import io
import json
import urllib.error
import urllib.request
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from serverless_bench.base.clock import wall_ns
from serverless_bench.driver.boto import open_s3
from serverless_bench.features.lambda_host.tests.integration.test_lambda_host import (
    client,
    idle,
    invoke,
)
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from tests.clouds.lambda_hosts import NAME, LambdaHost, running_host
from tests.commands.processes import PATIENCE_S
from tests.house.members import uses
from tests.stores.servers import DIRECT, Server, credentials

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self").exists(), reason="functions need Linux"),
    pytest.mark.on_change(
        "serverless_bench/features/lambda_host", "serverless_bench/features/loopback/listener.py"
    ),
]

APP = """
import os, threading
def handler(event, context):
    print("here", flush=True)
    match event:
        case "hang": threading.Event().wait()
        case "exit": os._exit(4)
    from helper import WORD
    return {"word": WORD, "mode": os.environ.get("MODE"), "pid": os.getpid()}
"""


def zipped(**files: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in files.items():
            archive.writestr(name.replace("__", "/") + ".py", text)
    return made.getvalue()


@pytest.fixture(scope="module")
def host() -> Iterator[LambdaHost]:
    with running_host(flags=["--scripted"]) as running:
        yield running


@pytest.fixture(scope="module")
def real() -> Iterator[LambdaHost]:
    with running_host() as running:
        yield running


def create(caller: Any, name: str, **more: Any) -> Any:
    return caller.create_function(
        FunctionName=name,
        Runtime="python3.11",
        Role="arn:aws:iam::123456789012:role/worker",
        Handler="app.handler",
        Code={"ZipFile": zipped(app=APP)},
        **more,
    )


def test_a_created_function_runs_with_its_layer_and_is_deleted(real: LambdaHost) -> None:
    caller = client(real)
    layer = caller.publish_layer_version(
        LayerName="words", Content={"ZipFile": zipped(python__helper="WORD = 'one'")}
    )
    made = create(
        caller,
        "mine",
        Layers=[layer["LayerVersionArn"]],
        Environment={"Variables": {"MODE": "a"}},
        Tags={"owner": "me"},
        MemorySize=256,
        Timeout=20,
    )
    assert (made["State"], made["MemorySize"]) == ("Active", 256)
    first = invoke(real, "mine")[1]
    assert (first["word"], first["mode"]) == ("one", "a")
    with pytest.raises(ClientError, match="ResourceConflict"):
        create(caller, "mine")
    assert caller.list_tags(Resource=made["FunctionArn"])["Tags"] == {"owner": "me"}
    names = [function["FunctionName"] for function in caller.list_functions()["Functions"]]
    assert set(names) == {NAME, "mine"}
    caller.update_function_configuration(
        FunctionName="mine", Environment={"Variables": {"MODE": "b"}}
    )
    second = invoke(real, "mine")[1]
    assert second["mode"] == "b"
    assert second["pid"] != first["pid"]
    caller.update_function_code(
        FunctionName="mine", ZipFile=zipped(app="def handler(e, c): return 7")
    )
    assert invoke(real, "mine") == ("", 7)
    caller.delete_function(FunctionName="mine")
    with pytest.raises(ClientError, match="ResourceNotFound"):
        caller.get_function(FunctionName="mine")


def test_a_function_may_be_called_function(host: LambdaHost) -> None:
    caller = client(host)
    made = create(caller, "function")
    for named in ("function", made["FunctionArn"]):
        assert caller.get_function_configuration(FunctionName=named)["Handler"] == "app.handler"
    caller.delete_function(FunctionName="function")


def test_layers_have_versions(host: LambdaHost) -> None:
    caller = client(host)
    for _ in range(2):
        document = caller.publish_layer_version(LayerName="l", Content={"ZipFile": zipped(a="")})
    assert document["Version"] == 2
    latest = caller.list_layers()["Layers"][0]["LatestMatchingVersion"]
    assert latest["LayerVersionArn"] == document["LayerVersionArn"]
    assert caller.get_layer_version(LayerName="l", VersionNumber=1)["Version"] == 1
    for version in (1, 2):
        caller.delete_layer_version(LayerName="l", VersionNumber=version)
    assert caller.list_layer_versions(LayerName="l")["LayerVersions"] == []
    assert caller.list_layers()["Layers"] == []


def test_quotas_and_event_settings_are_answered(host: LambdaHost) -> None:
    caller = client(host)
    limit = caller.get_account_settings()["AccountLimit"]
    assert limit["ConcurrentExecutions"] == limit["UnreservedConcurrentExecutions"] == 1000
    caller.put_function_concurrency(FunctionName=NAME, ReservedConcurrentExecutions=10)
    assert caller.get_function_concurrency(FunctionName=NAME) | {"ResponseMetadata": None} == {
        "ReservedConcurrentExecutions": 10,
        "ResponseMetadata": None,
    }
    assert caller.get_account_settings()["AccountLimit"]["UnreservedConcurrentExecutions"] == 990
    caller.delete_function_concurrency(FunctionName=NAME)
    document = caller.get_function_event_invoke_config(FunctionName=NAME)
    assert (document["MaximumRetryAttempts"], document["MaximumEventAgeInSeconds"]) == (0, 60)
    caller.put_function_event_invoke_config(FunctionName=NAME, MaximumRetryAttempts=1)
    document = caller.get_function_event_invoke_config(FunctionName=NAME)
    assert (document["MaximumRetryAttempts"], document["MaximumEventAgeInSeconds"]) == (1, 21_600)
    with pytest.raises(ClientError, match="InvalidParameterValue"):
        caller.put_function_event_invoke_config(FunctionName=NAME, MaximumRetryAttempts=9)
    assert caller.get_function_configuration(FunctionName=NAME)["MemorySize"] == 1769


def test_the_account_has_an_identity(host: LambdaHost) -> None:
    assert client(host, "sts").get_caller_identity()["Account"] == "123456789012"


def test_a_wrong_request_is_refused_with_a_reason(host: LambdaHost) -> None:
    caller = client(host)
    with pytest.raises(ClientError, match="Could not unzip"):
        caller.publish_layer_version(LayerName="l", Content={"ZipFile": b"no zip"})
    with pytest.raises(ClientError, match="does not exist"):
        create(caller, "f", Layers=["arn:aws:lambda:us-east-1:123456789012:layer:none:1"])
    with pytest.raises(ClientError, match="Handler is missing"):
        caller.create_function(FunctionName="f", Role="r" * 20, Code={"ZipFile": zipped(app=APP)})
    with pytest.raises(urllib.error.HTTPError, match="400"):
        host.set_faults({"colour": 1})
    with pytest.raises(ClientError) as caught:
        caller.list_aliases(FunctionName=NAME)
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 404


def ask(
    host: LambdaHost, method: str, path: str, body: bytes = b"", **headers: str
) -> tuple[int, Mapping[str, str], bytes]:
    own = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(
        host.url + "/sbench/environments" + path, data=body, method=method, headers=own
    )
    try:
        with DIRECT.open(request, timeout=PATIENCE_S) as answer:
            return answer.status, dict(answer.headers), answer.read()
    except urllib.error.HTTPError as exc:
        with exc:
            return exc.code, dict(exc.headers), exc.read()


def test_environments_on_request(real: LambdaHost, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    layer = tmp_path / "layer" / "python"
    layer.mkdir(parents=True)
    (layer / "helper.py").write_text("WORD = 'two'")
    asked = {
        "function": "theirs",
        "arn": "arn:theirs",
        "code": str(tmp_path),
        "layers": [str(layer.parent)],
        "handler": "app.handler",
        "environment": {"MODE": "c"},
        "memory_mib": 512,
    }
    status, _, document = ask(real, "POST", "", json.dumps(asked).encode())
    assert status == 201
    mine = "/" + json.loads(document)["id"]
    status, headers, document = ask(
        real, "POST", f"{mine}/invocations", b"{}", X_Sbench_Request_Id="r"
    )
    assert (status, json.loads(document)["word"], json.loads(document)["mode"]) == (200, "two", "c")
    assert "X-Amz-Function-Error" not in headers
    before = json.loads(document)["pid"]
    for event, kind, limit_s in (
        (b'"hang"', "Sandbox.Timedout", "0.3"),
        (b'"exit"', "Runtime.ExitError", "300"),
    ):
        status, headers, document = ask(
            real, "POST", f"{mine}/invocations", event, X_Sbench_Timeout_S=limit_s
        )
        assert (status, headers["X-Amz-Function-Error"]) == (200, "Unhandled")
        assert json.loads(document)["errorType"] == kind
    _, _, document = ask(real, "POST", f"{mine}/invocations", b"{}")
    assert json.loads(document)["pid"] != before
    _, _, logs = ask(real, "GET", f"{mine}/logs")
    # On a busy machine the one that hangs may be out of time before it says so.
    assert logs.count(b"here\n") in {3, 4}
    assert ask(real, "DELETE", mine)[0] == 204
    assert ask(real, "GET", f"{mine}/logs")[0] == 404
    (tmp_path / "app.py").write_text("import nothing_of_that_name")
    status, _, document = ask(real, "POST", "", json.dumps(asked).encode())
    assert (status, json.loads(document)["errorType"]) == (502, "Runtime.ImportModuleError")
    assert ask(real, "POST", "", b"{}")[0] == 400


@uses("workload noop")
def test_scripted_invocations_leave_the_same_objects_as_workers(
    embedded: Server, prefix: str
) -> None:
    target = Target(bucket=embedded.bucket, prefix=prefix, endpoint_url=embedded.endpoint_url)
    job = JobSpec(
        workload="noop",
        number=40,
        concurrency=40,
        size=1,
        target=target,
        control=replace(target, prefix=f"{prefix}control/"),
    )
    with running_host(embedded.environment, ["--scripted"]) as host:
        caller = client(host)
        for event in invocation_specs(job, run_id="run", created_ns=wall_ns()):
            payload = json.dumps(asdict(event))
            caller.invoke(FunctionName=NAME, InvocationType="Event", Payload=payload)
        done = idle(host)
    assert (done["succeeded"], done["cold_starts"]) == (40, 0)
    with credentials(embedded.environment):
        store = open_s3(target)
        document = store.list_objects_v2(Bucket=target.bucket, Prefix=f"{prefix}control/")
    kinds = Counter(
        found["Key"].removeprefix(prefix).split("/")[2] for found in document["Contents"]
    )
    assert kinds == {"claims": 40, "records": 40}
