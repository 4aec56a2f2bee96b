"""Expired credentials: one line before a run, patience during it, and a run that continues."""

from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from serverless_bench.base.clock import utc_stamp, wall_ns
from serverless_bench.base.errors import AccessDenied, ExecutorError
from serverless_bench.base.units import NS_PER_S
from serverless_bench.clients import open_client
from serverless_bench.executors.base import RunProgress
from serverless_bench.features.aws_lambda import client as aws_lambda_client
from serverless_bench.features.remote import thread_pool
from serverless_bench.job.target import Target, Transfer
from serverless_bench.rundir.run import load_run
from tests.clouds.lambda_hosts import KEYS, NAME, LambdaHost, lambda_client
from tests.commands.command import Done, Sbench
from tests.house.members import uses
from tests.stores.faulty import FaultServer, fails
from tests.stores.servers import credentials

linux = pytest.mark.skipif(not Path("/proc/self").exists(), reason="functions need Linux")

NOBODY = "http://127.0.0.1:1"
SSO = "sso_region = us-east-1\nsso_account_id = 123456789012\nsso_role_name = r\n"
START = "sso_start_url = https://sso.example/start\n"
CONFIGURED = {
    "a program that fails": "[default]\ncredential_process = false\n",
    "a program that is not there": "[default]\ncredential_process = /nonexistent/program\n",
    "a program that prints no JSON": "[default]\ncredential_process = echo no\n",
    "no login with SSO": f"[default]\n{START}{SSO}",
    "no login with an SSO session": f"[default]\nsso_session = s\n{SSO}[sso-session s]\n{START}"
    "sso_region = us-east-1\n",
    "no login": "[default]\nlogin_session = arn:aws:iam::123456789012:user/somebody\n",
    "a role that is refused": "[default]\nregion = us-east-1\nsource_profile = source\n"
    "role_arn = arn:aws:iam::123456789012:role/r\n"
    "[profile source]\naws_access_key_id = a\naws_secret_access_key = b\n",
}
EXPIRED = {**KEYS, "AWS_CREDENTIAL_EXPIRATION": "2026-01-01T00:00:00Z"}
"""In the format of `aws configure export-credentials --format env`."""
COMMANDS = {
    "write": ("write", "--bucket", "b"),
    "write to an endpoint": ("write", "--bucket", "b", "--endpoint-url", NOBODY),
    "plan": ("plan", "--stack", "s", "write"),
    "lambda": (
        *("write", "--executor", "lambda", "--function", "f"),
        *("--bucket", "b", "--endpoint-url", NOBODY),
    ),
}


def configured(directory: Path, text: str) -> dict[str, str]:
    """Return an environment with credentials from a configuration file."""
    (directory / "config").write_text(text)
    return {
        **dict.fromkeys(KEYS, ""),
        "AWS_CONFIG_FILE": str(directory / "config"),
        # Logins of the user are stored there.
        "HOME": str(directory),
    }


def refused(done: Done) -> str:
    """Return the line that states the problem; the second line is the hint."""
    assert done.code in {4, 5}, done.err
    line, hint = done.err.splitlines()
    assert line.startswith("sbench: the credentials cannot be used: "), done.err
    assert "aws sso login" in hint
    return line


@pytest.mark.parametrize("command", COMMANDS)
def test_exported_credentials_that_have_expired(sbench: Sbench, command: str) -> None:
    done = sbench(*COMMANDS[command], **EXPIRED)
    assert refused(done) == "sbench: the credentials cannot be used: they have expired"


def test_the_doctor_says_that_credentials_have_expired(sbench: Sbench) -> None:
    done = sbench("doctor", "--stack", "s", **EXPIRED)
    assert "credentials: the credentials cannot be used: they have expired" in done.out
    assert "this is a bug" not in done.err


@pytest.mark.parametrize(
    ("command", "kind"),
    [*(("write", kind) for kind in CONFIGURED), ("lambda", "a role that is refused")],
)
def test_credentials_that_cannot_be_had(
    sbench: Sbench, tmp_path: Path, command: str, kind: str
) -> None:
    environment = configured(tmp_path, CONFIGURED[kind])
    with FaultServer([fails(403, "ExpiredToken")] * 2) as sts:
        refused(sbench(*COMMANDS[command], AWS_ENDPOINT_URL_STS=sts.endpoint_url, **environment))


@uses("feature lambda_host")
@linux
def test_a_host_without_usable_credentials_says_so(sbench: Sbench, tmp_path: Path) -> None:
    environment = configured(tmp_path, CONFIGURED["a program that fails"])
    refused(sbench("lambda-host", "--", "true", **environment))


def test_boto3_as_a_client_is_denied_access() -> None:
    target = Target(client="boto3", bucket="b", endpoint_url=NOBODY)
    with (
        credentials(EXPIRED),
        closing(open_client(target, Transfer())) as client,
        pytest.raises(AccessDenied, match="expired"),
    ):
        client.list_keys("", "", Silent())


class Silent:
    """Ignores all events of an exchange."""

    def connected(self, remote: str, *, reused: bool) -> None: ...
    def moved(self, count: int) -> None: ...
    def sending(self, waiting: Callable[[], int]) -> None: ...
    def sent(self) -> None: ...
    def acknowledged(self, at_ns: int) -> None: ...
    def answered(self, status: int, headers: Mapping[str, str]) -> None: ...
    def first_byte(self) -> None: ...


EVENT = {"FunctionName": "f", "InvocationType": "Event", "Payload": b"{}"}
REFUSED = {"x-amzn-ErrorType": "ExpiredTokenException"}


def test_an_event_is_sent_again_until_credentials_are_good() -> None:
    progress, answers = RunProgress(), [fails(403, **REFUSED)] * 4
    with FaultServer(answers) as service, lambda_client(service.endpoint_url, progress) as client:
        _, refusals = client.invoke(lambda: EVENT, timeout_s=0)
    assert refusals == 4
    # The display of a terminal cuts the end.
    assert progress.notes[0].startswith("log in again: ")
    assert "credentials were refused (ExpiredTokenException)" in progress.notes[0]


def test_an_event_that_only_meets_bad_credentials_ends_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(aws_lambda_client, "_PATIENCE_S", 0.0)
    with (
        FaultServer([fails(403, **REFUSED)] * 9) as service,
        lambda_client(service.endpoint_url, RunProgress()) as client,
        pytest.raises(ExecutorError, match="credentials cannot be used") as raised,
    ):
        client.invoke(lambda: EVENT, timeout_s=60)
    assert "sbench resume" in raised.value.hint


SCRIPT = """#!/bin/sh
# Temporary credentials, looked for at each request: {times} times they have expired, once
# {records} records of the run have come.
expires={later}
if test "$(cat {run}/records.jsonl 2>/dev/null | wc -l)" -ge {records} \\
    && test "$(cat {looks} 2>/dev/null | wc -l)" -lt {times}; then
    echo >> {looks}
    expires=2026-01-01T00:00:00Z
fi
echo '{{"Version": 1, "AccessKeyId": "tester", "SecretAccessKey": "not-a-secret",'
echo '"SessionToken": "t", "Expiration": "'$expires'"}}'
"""
NUMBER = 20
WRITE = (
    *("write", "--executor", "lambda", "--function", NAME, "--bucket", "b", "--name", "w"),
    *("--number", NUMBER, "--concurrency", 4, "--size", "64KiB", "--start-timeout", 60),
)


def expiring(sbench: Sbench, *, records: int, times: int) -> dict[str, str]:
    """Return the environment of a driver with credentials that expire in the middle of a run."""
    script = sbench.directory / "renew"
    script.write_text(
        SCRIPT.format(
            records=records,
            times=times,
            run=sbench.directory / "sbench-runs" / "w",
            looks=sbench.directory / "looks",
            # So soon that botocore requests new ones at each request.
            later=utc_stamp(wall_ns() + 300 * NS_PER_S, separators=True),
        )
    )
    script.chmod(0o755)
    return configured(sbench.directory, f"[default]\ncredential_process = {script}\n")


@linux
def test_a_run_goes_on_when_credentials_come_back(
    sbench: Sbench, store: str, host: LambdaHost
) -> None:
    environment = {**host.environment, **expiring(sbench, records=4, times=12)}
    done = sbench(*WRITE, "--endpoint-url", store, "--format", "json", **environment)
    assert (done.code, done.json["ok"], done.json["lost"]) == (0, NUMBER, 0), done.err
    assert "they have expired" in done.err, "a note says why it took longer"
    assert not load_run(sbench.directory / "sbench-runs" / "w").waves


@linux
def test_a_run_whose_credentials_stay_expired_is_resumed_with_others(
    sbench: Sbench, store: str, host: LambdaHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {**host.environment, **expiring(sbench, records=4, times=10**9)}
    with monkeypatch.context() as patch:
        patch.setattr(thread_pool, "_TIMEOUT_S", 1.0)
        done = sbench(*WRITE, "--endpoint-url", store, **environment)
    assert done.code == 4, done.err
    line, hint = done.err.splitlines()[-2:]
    assert line == (
        "sbench: the control prefix cannot be read:"
        " the credentials cannot be renewed: they have expired"
    )
    assert "sbench resume" in hint
    assert f" of {NUMBER} functions ok" in done.out
    resumed = sbench("resume", "w", "--format", "json", **host.environment)
    assert (resumed.code, resumed.json["ok"], resumed.json["lost"]) == (0, NUMBER, 0)
