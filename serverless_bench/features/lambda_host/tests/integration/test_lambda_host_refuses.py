"""The Lambda host runs code for this user, and other users who can connect have no access."""

import base64
import io
import json
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from tests.clouds.aws_clients import open_client
from tests.clouds.lambda_hosts import LambdaHost, running_host
from tests.commands.other_user import CLOSED, Stranger
from tests.commands.processes import unix_sockets
from tests.stores.servers import DIRECT

HANDLER = """
import os
def handler(event, context):
    return {"event": event, "api": os.environ["AWS_LAMBDA_RUNTIME_API"], "pid": os.getpid()}
"""
INVOKE = "/2015-03-31/functions/sbench-worker/invocations"
ASKED = [
    ("POST", INVOKE),
    ("POST", "/2015-03-31/functions"),
    ("PUT", "/2015-03-31/functions/sbench-worker/code"),
    ("GET", "/2015-03-31/functions/sbench-worker"),
    ("DELETE", "/2015-03-31/functions/sbench-worker"),
    ("POST", "/2018-10-31/layers/planted/versions"),
    ("POST", "/sbench/environments"),
    ("PUT", "/sbench/faults"),
    ("GET", "/sbench/status"),
    ("POST", "/"),
]


@pytest.fixture(scope="module")
def host(open_place: Path) -> Iterator[LambdaHost]:
    code = open_place / "code"
    code.mkdir()
    (code / "app.py").write_text(HANDLER)
    # A directory that anybody could read.
    where = {"TMPDIR": str(open_place), "SBENCH_TEST": "here"}
    with running_host(where, ["--code", code, "--handler", "app.handler"]) as running:
        yield running


def bare(host: LambdaHost) -> str:
    """Its address without the token."""
    parts = urlsplit(host.url)
    return f"{parts.scheme}://{parts.netloc}"


def invoke(host: LambdaHost, event: object = "mine") -> dict[str, object]:
    variables = host.environment
    client = open_client(
        "lambda",
        endpoint_url=host.url,
        region_name=variables["AWS_DEFAULT_REGION"],
        aws_access_key_id=variables["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=variables["AWS_SECRET_ACCESS_KEY"],
    )
    answer = client.invoke(FunctionName="sbench-worker", Payload=json.dumps(event))
    assert "FunctionError" not in answer
    found: dict[str, object] = json.load(answer["Payload"])
    return found


def zipped() -> str:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("app.py", HANDLER)
    return base64.b64encode(data.getvalue()).decode()


BODY = json.dumps(
    {"FunctionName": "planted", "Handler": "app.handler", "Code": {"ZipFile": zipped()}}
)


def test_another_user_cannot_invoke_even_with_the_token(host: LambdaHost, nobody: Stranger) -> None:
    before = host.status()
    for method, path in ASKED:
        # The token could have been seen somewhere.
        for url in (bare(host), host.url):
            assert nobody.request(f"{url}{path}", method, BODY)[0] in CLOSED, (method, path)
    assert host.status() == before


def test_requests_without_the_token_are_refused(host: LambdaHost) -> None:
    for method, path in ASKED:
        asked = urllib.request.Request(f"{bare(host)}{path}", BODY.encode(), method=method)
        with pytest.raises(urllib.error.HTTPError) as refused:
            DIRECT.open(asked)
        with refused.value as answer:
            assert answer.status == 403
            assert b"the token is missing" in answer.read()


@pytest.mark.parametrize("header", [("Host", "rebound.example"), ("Origin", "http://localhost")])
def test_a_web_page_cannot_invoke(host: LambdaHost, header: tuple[str, str]) -> None:
    asked = urllib.request.Request(f"{host.url}{INVOKE}", b'"page"', dict([header]))
    with pytest.raises(urllib.error.HTTPError) as refused:
        DIRECT.open(asked)
    with refused.value as answer:
        assert answer.status == 403
        assert b"from web pages" in answer.read()


def test_no_event_is_taken_and_no_answer_given_by_others(
    host: LambdaHost, nobody: Stranger
) -> None:
    api = f"http://{invoke(host)['api']}/2018-06-01/runtime"
    for method, path in (
        ("GET", "/invocation/next"),
        ("POST", "/invocation/1/response"),
        ("POST", "/invocation/1/error"),
        ("POST", "/init/error"),
    ):
        assert nobody.request(f"{api}{path}", method, '"planted"')[0] in CLOSED
        page = urllib.request.Request(
            f"{api}{path}", b'"page"', {"Host": "rebound.example"}, method=method
        )
        with pytest.raises(urllib.error.HTTPError) as refused:
            DIRECT.open(page)
        with refused.value as answer:
            assert answer.status == 410
    assert invoke(host, "again")["event"] == "again"


def test_another_user_has_no_access_to_a_function(
    host: LambdaHost, nobody: Stranger, open_place: Path
) -> None:
    pid = int(str(invoke(host)["pid"]))
    (scratch,) = open_place.glob("sbench-lambda-*")
    assert nobody.reaches(scratch) == []
    for each in (pid, host.pid):
        assert nobody.kill(each) == "PermissionError"
        assert nobody.reaches(f"/proc/{each}/environ") == []
        assert unix_sockets(each) == []
        token = urlsplit(host.url).path.strip("/")
        assert token not in " ".join(psutil.Process(each).cmdline())
