"""A company network: AWS is only reachable through a proxy that inspects TLS.

moto and the Lambda host stand for AWS behind it, under AWS's own names. Connections that bypass the
proxy reach no server.
"""

from collections.abc import Iterator
from pathlib import Path

import certifi
import pytest

from tests.clouds.lambda_hosts import NAME, LambdaHost, running_host
from tests.commands.command import Apart, Sbench
from tests.contract.declared import clients_without
from tests.house.members import uses
from tests.stores.network import InspectingProxy, refusing_proxy
from tests.stores.servers import KEYS, Server

S3 = "test.s3.us-east-1.amazonaws.com"
pytestmark = pytest.mark.on_change(
    "serverless_bench/clients",
    "serverless_bench/executors",
    "serverless_bench/features/aws",
    "serverless_bench/features/awscrt",
    "serverless_bench/features/minio",
    "serverless_bench/features/obstore",
    "serverless_bench/features/s3dlio",
    "serverless_bench/features/s3torchconnector",
)

JOB = ("--bucket", "test", "--number", 2, "--size", "1MiB", "--format", "json")
FUNCTION = ("--executor", "lambda", "--function", NAME)
PROXIED = clients_without("ignores_proxies")


@pytest.fixture(scope="module")
def host(moto: Server) -> Iterator[LambdaHost]:
    with running_host({**KEYS, "AWS_ENDPOINT_URL_S3": moto.endpoint_url}) as running:
        yield running


@pytest.fixture(scope="module")
def proxy(
    moto: Server, host: LambdaHost, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[InspectingProxy]:
    stand_ins = {"": moto.endpoint_url, "lambda.": host.url}
    with InspectingProxy(tmp_path_factory.mktemp("proxy"), stand_ins) as running:
        yield running


@pytest.fixture
def company(proxy: InspectingProxy, tmp_path: Path) -> Apart:
    """The command in a process of its own: libraries look for proxies and certificates once."""
    proxy.asked.clear()
    variables = {
        **KEYS,
        "AWS_REGION": "us-east-1",
        "AWS_CA_BUNDLE": str(proxy.ca),
        # The form that most people use.
        "HTTPS_PROXY": f"user:word@{proxy.url.removeprefix('http://')}",
    }
    return Apart(tmp_path, variables)


@pytest.mark.parametrize("client", PROXIED)
def test_a_client_goes_through_the_proxy(
    company: Apart, proxy: InspectingProxy, client: str
) -> None:
    wrote = company("write", *JOB, "--client", client, "--name", client)
    assert wrote.code == 0, wrote.err
    keys = f"sbench-runs/{client}/keys.txt"
    read = company("read", *JOB[:2], "--key-file", keys, "--client", client, "--format", "json")
    assert read.code == 0, read.err
    assert read.json["failed"] == 0
    cleaned = company("clean", f"sbench-runs/{client}")
    assert (cleaned.code, cleaned.err) == (0, ""), cleaned.out
    assert S3 in proxy.asked or "s3.us-east-1.amazonaws.com" in proxy.asked


@pytest.mark.parametrize("executor", ["dask", "lithops"])
def test_functions_on_this_machine_go_through_the_proxy(
    company: Apart, proxy: InspectingProxy, executor: str
) -> None:
    done = company("write", *JOB, "--executor", executor)
    assert done.code == 0, done.err


def test_lambda_is_invoked_through_the_proxy(
    company: Apart, proxy: InspectingProxy, host: LambdaHost, moto: Server
) -> None:
    # A token identifies the host; its functions bypass the proxy, like those of AWS.
    token = host.url.rpartition("/")[2]
    places = {
        "AWS_ENDPOINT_URL_LAMBDA": f"https://lambda.us-east-1.amazonaws.com/{token}",
        "AWS_ENDPOINT_URL_S3": moto.endpoint_url,
    }
    done = company("write", *JOB, *FUNCTION, **places)
    assert done.code == 0, done.err
    assert "lambda.us-east-1.amazonaws.com" in proxy.asked


@uses("executor workers")
def test_workers_find_their_events_through_the_proxy(
    company: Apart, proxy: InspectingProxy
) -> None:
    control = ("s3://test/control",)
    worker = company.start("worker", "--control", *control)
    done = company("write", *JOB, "--executor", "workers", "--control-prefix", *control)
    worker.terminate()
    _, text = worker.communicate()
    assert done.code == 0, (done.err, text)


def test_the_doctor_names_the_proxy(company: Apart, proxy: InspectingProxy) -> None:
    done = company("doctor", "--bucket", "test", "--write-test")
    shown = f"ok    proxy: s3.amazonaws.com is reached through {proxy.url}\n"
    assert shown in done.out, done.out
    assert "word" not in done.out
    assert "ok    identity: arn:aws:" in done.out
    assert "sts.us-east-1.amazonaws.com" in proxy.asked
    past = company("doctor", NO_PROXY="s3.amazonaws.com")
    assert "s3.amazonaws.com is reached" not in past.out
    assert "sts.amazonaws.com is reached" in past.out


COMMANDS = {
    "a store": (5, ("write", *JOB, "--endpoint-url", "https://s3.us-east-1.amazonaws.com")),
    "a bucket": (5, ("write", *JOB)),
    "a function": (4, ("write", *JOB, *FUNCTION, "--control-prefix", "s3://test/control")),
    "a worker": (5, ("worker", "--control", "s3://test/control")),
    "a stack": (4, ("write", *JOB, "--executor", "lambda", "--stack", "any")),
}
Words = tuple[str | int, ...]


@pytest.fixture(params=COMMANDS)
def command(request: pytest.FixtureRequest) -> tuple[int, Words]:
    return COMMANDS[request.param]


@pytest.fixture
def company_with_a_store(company: Apart, command: tuple[int, Words], moto: Server) -> Apart:
    """With a bucket inside the network, for tests that use a bucket first and then Lambda."""
    inside = {"AWS_ENDPOINT_URL_S3": moto.endpoint_url} if "--function" in command[1] else {}
    return Apart(company.directory, {**company.environment, **inside})


def refusal(company: Apart, command: tuple[int, Words], **variables: str) -> str:
    code, words = command
    done = company(*words, **variables)
    assert done.code == code, done
    *_, problem, hint = done.err.splitlines()
    assert (problem[:8], hint[:6]) == ("sbench: ", "hint: ")
    return f"{problem}\n{hint}"


def test_an_authority_that_is_not_trusted_is_named(
    company_with_a_store: Apart, command: tuple[int, Words]
) -> None:
    text = refusal(company_with_a_store, command, AWS_CA_BUNDLE=certifi.where())
    assert "certificate" in text
    assert "hint: set AWS_CA_BUNDLE=FILE to the certificate of its authority" in text
    assert text.endswith(f"{certifi.where()} lacks it"), text


def test_a_bundle_that_is_not_there_is_named(
    company_with_a_store: Apart, command: tuple[int, Words]
) -> None:
    text = refusal(company_with_a_store, command, AWS_CA_BUNDLE="/nowhere/ca.pem")
    assert "/nowhere/ca.pem" in text
    assert "hint: set AWS_CA_BUNDLE=FILE" in text, text


def test_a_proxy_that_is_not_there_is_named(
    company_with_a_store: Apart, command: tuple[int, Words]
) -> None:
    text = refusal(company_with_a_store, command, HTTPS_PROXY="http://user:word@127.0.0.1:1")
    assert "127.0.0.1:1" in text
    assert "hint: check HTTPS_PROXY" in text, text
    assert "word@127" not in text


def test_a_proxy_that_wants_a_password_says_so(
    company_with_a_store: Apart, command: tuple[int, Words]
) -> None:
    with refusing_proxy() as other:
        text = refusal(company_with_a_store, command, HTTPS_PROXY=f"127.0.0.1:{other.port}")
    assert " 407" in text
    assert "hint: check HTTPS_PROXY" in text, text


def test_a_store_of_this_machine_is_reached_past_the_proxy(sbench: Sbench) -> None:
    there = "http://127.0.0.1:1"
    done = sbench.apart(
        "write", "--number", 1, "--size", "1MiB", HTTP_PROXY=there, http_proxy=there
    )
    assert done.code == 0, done.err
