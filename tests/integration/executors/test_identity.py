"""One identity for all processes of a command: requested once, and renewed once."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from serverless_bench.driver.boto import configured_region
from tests.clouds.lambda_hosts import KEYS, NAME, LambdaHost
from tests.clouds.sts import sts
from tests.commands.command import Sbench
from tests.commands.terminal import on_terminal

pytestmark = pytest.mark.on_change(
    "launching functions",
    "serverless_bench/features/dask",
    "serverless_bench/features/lithops",
    "serverless_bench/features/workers",
)

linux = pytest.mark.skipif(not Path("/proc/self").exists(), reason="functions need Linux")

NUMBER = 200
JOB = ("--bucket", "b", "--number", NUMBER, "--size", "4KiB", "--format", "json")
ROLE = """[default]
region = us-east-1
source_profile = source
role_arn = arn:aws:iam::123456789012:role/r
mfa_serial = arn:aws:iam::123456789012:mfa/somebody
[profile source]
aws_access_key_id = source
aws_secret_access_key = source
"""
STS_KEYS = KEYS["AWS_ACCESS_KEY_ID"], KEYS["AWS_SECRET_ACCESS_KEY"]
PROMPT = "MFA code for"
RENEWED_S = 900
"""botocore renews credentials that are good for less than 15 minutes."""


def configured(home: Path, text: str) -> dict[str, str]:
    """Return the environment of a user with this AWS configuration and no exported keys."""
    (home / ".aws").mkdir(parents=True)
    (home / ".aws" / "config").write_text(text)
    path = home / ".aws" / "config"
    return {**dict.fromkeys(KEYS, ""), "HOME": str(home), "AWS_CONFIG_FILE": str(path)}


def with_mfa(
    home: Path, store: str, *lives_s: float, command: tuple[str | int, ...], **more: str
) -> tuple[Mapping[str, int], str, list[str]]:
    """Return the report of a run as a role with MFA, the terminal's text, and the codes entered."""
    environment = configured(home, ROLE)
    with sts(*STS_KEYS, *lives_s) as service:
        environment |= {**more, "AWS_ENDPOINT_URL_STS": service.url}
        code, out, shown = on_terminal(
            home,
            environment,
            *(*command, *JOB, "--endpoint-url", store),
            prompt=PROMPT,
            answer="123456",
        )
    assert code == 0, shown
    return json.loads(out), shown, service.codes


@linux
def test_a_role_with_mfa_asks_once_for_all_local_functions(tmp_path: Path, store: str) -> None:
    report, _, codes = with_mfa(tmp_path, store, 3600, command=("write",))
    assert (report["ok"], codes) == (NUMBER, ["123456"])


@linux
def test_a_role_with_mfa_asks_once_for_lambda(tmp_path: Path, store: str, host: LambdaHost) -> None:
    command = ("write", "--executor", "lambda", "--function", NAME, "--concurrency", 16)
    more = {"AWS_ENDPOINT_URL_LAMBDA": host.url}
    report, _, codes = with_mfa(tmp_path, store, 3600, command=command, **more)
    assert (report["ok"], codes) == (NUMBER, ["123456"])


@linux
def test_it_prompts_again_at_the_sessions_end_without_drawing(
    tmp_path: Path, store: str, host: LambdaHost
) -> None:
    environment = configured(tmp_path, ROLE)
    with sts(*STS_KEYS, RENEWED_S + 20, 3600) as service:
        code, out, shown = on_terminal(
            tmp_path,
            {
                **environment,
                "AWS_ENDPOINT_URL_STS": service.url,
                "AWS_ENDPOINT_URL_LAMBDA": host.url,
            },
            *("write", "--bucket", "b", "--number", 4, "--size", "4KiB", "--format", "json"),
            *("--executor", "lambda", "--function", NAME, "--duration", 30, "--rate", 4),
            *("--progress", "bar", "--endpoint-url", store),
            prompt=PROMPT,
            answer="123456",
        )
    assert (code, json.loads(out)["ok"]) == (0, 4), shown
    assert service.codes == ["123456"] * 2, shown
    # The view is wiped off before the second question, and drawn anew after its answer.
    before, asked = shown.rsplit("Enter MFA code", 1)
    assert before.endswith("\x1b[2K")
    question, _, after = asked.partition("\n")
    assert "functions" not in question
    assert "functions" in after


@linux
def test_a_role_is_kept_where_the_cli_keeps_it(tmp_path: Path, store: str) -> None:
    _, _, codes = with_mfa(tmp_path, store, 3600, command=("write",))
    assert len(codes) == 1
    kept = list((tmp_path / ".aws" / "cli" / "cache").iterdir())
    assert [path.stat().st_mode & 0o777 for path in kept] == [0o600]
    found = json.loads(kept[0].read_text())
    assert found["Credentials"]["AccessKeyId"] == KEYS["AWS_ACCESS_KEY_ID"]


@linux
@pytest.mark.parametrize(
    ("executor", "number", "how"),
    [
        ("local", NUMBER, ("--concurrency", NUMBER)),
        ("lambda", 16, ("--function", NAME)),
        ("dask", 8, ()),
    ],
)
def test_a_program_for_credentials_runs_once(
    sbench: Sbench,
    tmp_path: Path,
    store: str,
    host: LambdaHost,
    executor: str,
    number: int,
    how: tuple[str | int, ...],
) -> None:
    runs, program = tmp_path / "runs", tmp_path / "program"
    access, secret = KEYS.values()
    keys = {"Version": 1, "AccessKeyId": access, "SecretAccessKey": secret}
    program.write_text(f"#!/bin/sh\necho run >> {runs}\necho '{json.dumps(keys)}'\n")
    program.chmod(0o700)
    text = f"[default]\nregion = us-east-1\ncredential_process = {program}\n"
    environment = {**configured(tmp_path / "home", text), "AWS_ENDPOINT_URL_LAMBDA": host.url}
    done = sbench.apart(
        *("write", *JOB, "--number", number, "--name", "w", "--endpoint-url", store),
        *("--executor", executor, *how),
        **environment,
    )
    assert (done.code, done.json["ok"]) == (0, number), done.err
    assert runs.read_text() == "run\n"
    # With other executors it waits a minute for late deliveries.
    if executor == "local":
        assert sbench.apart("clean", "w", **environment).code == 0
        assert runs.read_text() == "run\n" * 2


def test_without_a_terminal_a_role_with_mfa_is_one_line(
    sbench: Sbench, tmp_path: Path, store: str
) -> None:
    done = sbench.apart("write", *JOB, "--endpoint-url", store, **configured(tmp_path, ROLE))
    assert done.code == 5
    assert done.err.splitlines()[0].endswith("there is no terminal to ask for an MFA code")


def test_the_region_is_that_of_the_aws_cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in configured(tmp_path, "[default]\nregion = eu-west-1\n").items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    assert configured_region() == "eu-west-1"
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-2")
    assert configured_region() == "eu-west-2"
    monkeypatch.setenv("AWS_REGION", "eu-west-3")
    assert configured_region() == "eu-west-3"
