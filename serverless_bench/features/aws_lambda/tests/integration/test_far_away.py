"""A driver far from functions: many events are under way, each for little of a CPU."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from serverless_bench.features.aws.client import open_client
from serverless_bench.features.aws.lambda_events import send_event
from serverless_bench.features.loopback.server import serving
from tests.clouds.far_lambda import DELAY_S, FarLambda
from tests.clouds.lambda_hosts import NAME, running_host
from tests.commands.command import Sbench
from tests.stores.faulty import Exchange, FaultServer
from tests.stores.servers import KEYS, credentials

linux = pytest.mark.skipif(not Path("/proc/self").exists(), reason="functions need Linux")

NUMBER, TOGETHER = 300, 100
"""1,000 events a second, for 100 ms each."""


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    with serving() as server:
        yield server.endpoint_url


@linux
def test_as_many_events_are_under_way_as_the_round_trip_needs(sbench: Sbench, store: str) -> None:
    with running_host(flags=("--scripted", "--concurrency", NUMBER)) as host:
        with FarLambda(host.url, TOGETHER) as far:
            done = sbench(
                *("write", "--executor", "lambda", "--function", NAME, "--no-probe"),
                *("--bucket", "b", "--endpoint-url", store, "--number", NUMBER, "--size", "1KiB"),
                *("--concurrency", NUMBER, "--format", "json", "--name", "far"),
                **{**host.environment, "AWS_ENDPOINT_URL_LAMBDA": far.url},
            )
        assert (done.code, done.json["ok"], done.json["lost"]) == (0, NUMBER, 0), done.err
        assert host.status()["accepted"] == NUMBER
    run = json.loads((sbench.directory / "sbench-runs/far/run.json").read_text())
    assert run["limits"]["round_trip_s"] >= DELAY_S
    assert far.most_under_way >= TOGETHER


REFUSAL = b'{"Type":"User","message":"Rate Exceeded.","Reason":"CallerRateLimitExceeded"}'
ARN = "arn:aws:lambda:us-east-1:123456789012:function:f:live"


def test_an_event_is_the_request_that_botocore_makes() -> None:
    """Except for headers about its retries, and the rest of the user agent."""
    requests: list[tuple[str, str, dict[str, str], int]] = []

    def refuse(exchange: Exchange) -> bool:
        size = exchange.drain()
        signature = exchange.headers.pop("authorization").rpartition("Signature=")[0]
        exchange.headers["user-agent"] = exchange.headers["user-agent"].split()[0]
        del exchange.headers["x-amz-date"]
        others = {n: v for n, v in exchange.headers.items() if not n.startswith("amz-sdk-")}
        requests.append((exchange.method, exchange.path, others | {"by": signature}, size))
        error = {"x-amzn-ErrorType": "TooManyRequestsException"}
        exchange.say(429, REFUSAL, error)
        return True

    def error_of(send: Callable[[], object]) -> tuple[object, int, object]:
        with pytest.raises(ClientError) as raised:
            send()
        status = raised.value.response["ResponseMetadata"]["HTTPStatusCode"]
        return raised.value.response["Error"], status, raised.value.response.get("Reason")

    with FaultServer([refuse, refuse]) as server, credentials(KEYS):
        once = {"total_max_attempts": 1}
        api = open_client("lambda", endpoint_url=f"{server.endpoint_url}/host", retries=once)
        ours = error_of(lambda: send_event(api, ARN, b"{}"))
        theirs = error_of(
            lambda: api.invoke(FunctionName=ARN, InvocationType="Event", Payload=b"{}")
        )
    assert requests[0] == requests[1]
    assert ours == theirs
    assert ours[-1] == "CallerRateLimitExceeded"
