"""Functions that are not ready yet are waited for; permanent problems give one line with a hint."""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from urllib.parse import urlsplit

import botocore.session
import pytest

from serverless_bench.base.clock import wall_ns
from serverless_bench.base.errors import ExecutorError, StoreError
from serverless_bench.driver import boto
from serverless_bench.executors.base import RunProgress
from serverless_bench.features.aws.account import read_quota
from serverless_bench.features.aws.client import WAKING, remedy
from serverless_bench.features.aws_lambda import client as aws_lambda_client
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.target import Target
from tests.clouds.lambda_hosts import KEYS, NAME, LambdaHost, lambda_client
from tests.commands.command import Done, Sbench
from tests.data.own_functions import function_job
from tests.matrix.proxy import Proxy, Refusal, proxy_of
from tests.stores.faulty import Answer, Exchange, FaultServer, fails
from tests.stores.servers import credentials

linux = pytest.mark.skipif(not Path("/proc/self").exists(), reason="functions need Linux")
EVENT = {"FunctionName": "f", "InvocationType": "Event", "Payload": b"{}"}
EXPIRED = "Signature expired: 20261124T100000Z is now earlier than 20261124T110000Z"
PENDING = {"State": "Pending", "StateReasonCode": "Creating"}


def says(status: int, code: str, message: str = "scripted") -> Answer:
    """Answer as Lambda does."""

    def answer(exchange: Exchange) -> bool:
        exchange.drain()
        body = json.dumps({"message": message}).encode()
        exchange.say(status, body, {"x-amzn-ErrorType": code})
        return True

    return answer


def describes(**state: str) -> Refusal:
    """Answer GetFunctionConfiguration."""
    arn = f"arn:aws:lambda:us-east-1:123456789012:function:{NAME}"
    known = {"FunctionName": NAME, "FunctionArn": arn, "MemorySize": 1769, "Timeout": 900}
    return Refusal(200, json.dumps({**known, **state}).encode())


@pytest.mark.parametrize("code", sorted(WAKING))
def test_an_event_is_sent_again_until_the_function_is_ready(code: str) -> None:
    progress = RunProgress()
    with (
        FaultServer([says(409, code)] * 3) as service,
        lambda_client(service.endpoint_url, progress) as client,
    ):
        _, refusals = client.invoke(lambda: EVENT, timeout_s=0)
    assert refusals == 3
    (note,) = progress.notes
    assert note.startswith("function f was not ready; waiting for it: ")
    assert code in note


def test_a_function_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aws_lambda_client, "READY_S", 0.0)
    with (
        FaultServer([says(502, "ENINotReadyException")] * 9) as service,
        lambda_client(service.endpoint_url, RunProgress()) as client,
        pytest.raises(ExecutorError, match=r"not ready after 0 s: .*ENINotReady") as raised,
    ):
        client.invoke(lambda: EVENT, timeout_s=60)
    assert "doctor" in raised.value.hint


@pytest.mark.parametrize(
    ("status", "code", "hint"),
    [
        (502, "KMSAccessDeniedException", "kms:Decrypt"),
        (502, "InvalidRuntimeException", "runtime"),
        (502, "InvalidSubnetIDException", "VPC"),
        (502, "SubnetIPAddressLimitReachedException", "addresses"),
        (502, "ENILimitReachedException", "network interfaces"),
        (502, "InvalidZipFileException", "sam build"),
        (402, "ServiceQuotaExceededException", "Service Quotas"),
        (409, "SnapStartRegenerationFailureException", "SnapStart off"),
        (413, "RequestTooLargeException", "1 MB"),
    ],
)
def test_what_does_not_pass_ends_at_once_with_its_own_hint(
    status: int, code: str, hint: str
) -> None:
    with (
        FaultServer([says(status, code, "its own words")] * 9) as service,
        lambda_client(service.endpoint_url, RunProgress()) as client,
        pytest.raises(ExecutorError, match=f"{code}.*its own words") as raised,
    ):
        client.invoke(lambda: EVENT, timeout_s=0)
    assert hint in raised.value.hint
    assert len(service.seen) == 1


def test_every_error_of_lambda_in_botocore_is_classified() -> None:
    model = botocore.session.Session().get_service_model("lambda").operation_model("Invoke")
    shapes = {shape.name: shape.metadata["error"]["httpStatusCode"] for shape in model.error_shapes}
    passing = {"EC2ThrottledException", "EC2UnexpectedException", "ServiceException"}
    assert WAKING | passing <= set(shapes)
    faults = {code for code, status in shapes.items() if status in {402, 409} or status >= 500}
    others = faults - WAKING - passing - {"DurableExecutionAlreadyStartedException"}
    assert [code for code in others if not remedy(code)] == []
    assert [code for code in WAKING | passing if remedy(code)] == []


def test_a_function_that_could_not_be_made_is_not_waited_for() -> None:
    words = "The function is currently in the following state: Failed"
    failed = {"State": "Failed", "StateReasonCode": "SubnetOutOfIPAddresses"}
    body = describes(**failed).body
    answers = [
        says(409, "ResourceConflictException", words),
        lambda exchange: exchange.say(200, body) or True,
    ]
    with (
        FaultServer(answers) as service,
        lambda_client(service.endpoint_url, RunProgress()) as client,
    ):
        with pytest.raises(ExecutorError, match="state: Failed"):
            client.invoke(lambda: EVENT, timeout_s=60)
        with pytest.raises(ExecutorError, match="cannot run: Failed: SubnetOutOfIP") as raised:
            client.configuration("f")
    assert "free addresses" in raised.value.hint


@pytest.mark.parametrize("patient", [False, True])
def test_a_clock_that_is_off_is_named(monkeypatch: pytest.MonkeyPatch, *, patient: bool) -> None:
    monkeypatch.setattr(aws_lambda_client, "_PATIENCE_S", 0.0)
    progress, refusal = RunProgress(), says(403, "InvalidSignatureException", EXPIRED)
    with (
        FaultServer([refusal] * 9) as service,
        lambda_client(service.endpoint_url, progress, patient=patient) as client,
        pytest.raises(ExecutorError, match="Signature expired") as raised,
    ):
        client.invoke(lambda: EVENT, timeout_s=60)
    assert raised.value.hint.startswith("let NTP set this machine's clock")
    assert any("this machine's clock is off" in note for note in progress.notes) == patient


def test_a_clock_that_is_off_is_named_by_other_services_too() -> None:
    with (
        FaultServer([says(403, "InvalidSignatureException", EXPIRED)]) as service,
        credentials({**KEYS, "AWS_ENDPOINT_URL_LAMBDA": service.endpoint_url}),
        pytest.raises(ExecutorError) as raised,
    ):
        read_quota(region="us-east-1")
    assert raised.value.hint.startswith("let NTP")


@pytest.mark.parametrize(
    ("date", "words"),
    [
        ("Tue, 24 Nov 2020 10:00:00 GMT", "refuses this machine's clock (RequestTimeTooSkewed: "),
        ("", "refuses these credentials (403"),
    ],
)
def test_a_bucket_that_answers_head_says_it_by_the_date(date: str, words: str) -> None:
    """Such a response has no code."""
    with FaultServer([fails(403, Date=date)]) as store, credentials(KEYS):
        target = Target(bucket="b", endpoint_url=store.endpoint_url)
        with pytest.raises(StoreError, match=re.escape(words)), boto.explained(target):
            boto.open_s3(target).head_bucket(Bucket="b")


@pytest.fixture
def proxy(host: LambdaHost) -> Iterator[Proxy]:
    with proxy_of(host.url) as running:
        running.url += urlsplit(host.url).path
        yield running


def through(proxy: Proxy, host: LambdaHost) -> dict[str, str]:
    return {**host.environment, "AWS_ENDPOINT_URL_LAMBDA": proxy.url}


def write(sbench: Sbench, store: str, *flags: str | int, **environment: str) -> Done:
    lambdas = ("--executor", "lambda", "--function", NAME, "--bucket", "b", "--number", 2)
    return sbench("write", *lambdas, "--endpoint-url", store, "--size", "1B", *flags, **environment)


@linux
def test_a_stack_that_slept_is_waited_for_by_the_probe_and_by_events(
    sbench: Sbench, store: str, host: LambdaHost, proxy: Proxy
) -> None:
    states = iter([describes(**PENDING), describes(State="Active", LastUpdateStatus="InProgress")])
    asleep = Refusal(502, b"{}", {"x-amzn-ErrorType": "ResourceNotReadyException"})
    # Twice for the probe, which is then answered; later once for an event.
    answers = iter([asleep, asleep, None, asleep])

    def rule(method: str, path: str) -> Refusal | None:
        if path.endswith("/configuration"):
            return next(states, None)
        return next(answers, None) if path.endswith("/invocations") else None

    proxy.rule = rule
    done = write(sbench, store, "--format", "json", **through(proxy, host))
    assert (done.code, done.json["ok"], done.json["lost"]) == (0, 2, 0), done.err
    assert (next(states, None), next(answers, None), proxy.refused) == (None, None, 5)
    for words in (
        "waiting for it: Pending: Creating",
        "waiting for it: Active; LastUpdateStatus InProgress",
        "waiting for it: An error occurred (ResourceNotReadyException)",
    ):
        assert f"function {NAME} was not ready; {words}" in done.err


@linux
@pytest.mark.parametrize(
    ("level", "words", "hint", "state"),
    [
        ("warn", "Pending: Creating", "a run waits for it, up to 3 minutes", PENDING),
        ("warn", "Inactive: Idle", "a run waits", {"State": "Inactive", "StateReasonCode": "Idle"}),
        (
            "fail",
            "Failed: KMSKeyAccessDenied: no key",
            "kms:Decrypt",
            {
                "State": "Failed",
                "StateReasonCode": "KMSKeyAccessDenied",
                "StateReason": "no key",
            },
        ),
        (
            "warn",
            "Active; LastUpdateStatus Failed: InvalidSubnet",
            "name others",
            {
                "State": "Active",
                "LastUpdateStatus": "Failed",
                "LastUpdateStatusReasonCode": "InvalidSubnet",
            },
        ),
    ],
)
def test_the_doctor_says_it(
    sbench: Sbench,
    host: LambdaHost,
    proxy: Proxy,
    level: str,
    words: str,
    hint: str,
    state: dict[str, str],
) -> None:
    proxy.rule = lambda _, path: describes(**state) if path.endswith("/configuration") else None
    done = sbench("doctor", "--no-probe", "--function", NAME, **through(proxy, host))
    (line,) = [line for line in done.out.splitlines() if words in line]
    assert line.startswith(level)
    assert hint in line


@linux
def test_the_doctor_says_what_it_has_waited_for(
    sbench: Sbench, host: LambdaHost, proxy: Proxy
) -> None:
    answers = iter([Refusal(502, b"{}", {"x-amzn-ErrorType": "ResourceNotReadyException"})])
    proxy.rule = lambda _, path: next(answers, None) if path.endswith("/invocations") else None
    done = sbench("doctor", "--function", NAME, **through(proxy, host))
    (line,) = [line for line in done.out.splitlines() if "ResourceNotReadyException" in line]
    assert line.startswith("warn")
    assert "waiting for it" in line


@linux
@pytest.mark.parametrize("start_timeout", [60, 90])
def test_events_that_are_dropped_before_the_driver_gives_them_up_are_named(
    sbench: Sbench, store: str, host: LambdaHost, start_timeout: int
) -> None:
    done = write(sbench, store, "--start-timeout", start_timeout, **host.environment)
    assert done.code == 0, done.err
    words = f"Lambda drops events of {NAME} after 60 s, before the timeout of 90 s"
    assert (words in done.err) == (start_timeout == 90)


@linux
def test_an_event_carries_a_function_of_seven_hundred_kilobytes(host: LambdaHost) -> None:
    held = os.urandom(700_000)
    job = function_job(lambda _: held, target=Target(bucket="b"), number=1)
    (spec,) = invocation_specs(job, run_id="r", created_ns=wall_ns(), keys=())
    payload = json.dumps(asdict(spec)).encode()
    with lambda_client(host.url, RunProgress()) as client:
        answer, _ = client.invoke(
            lambda: {**EVENT, "FunctionName": NAME, "Payload": payload}, timeout_s=0
        )
    assert answer["StatusCode"] == 202
