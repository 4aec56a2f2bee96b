"""Many functions through the Lambda host: concurrently, and in sequence."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.clouds.lambda_hosts import NAME, running_host
from tests.commands.command import Sbench
from tests.house.members import uses
from tests.stores.servers import Server, loopback

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self").exists(), reason="functions need Linux"),
    pytest.mark.on_change(
        "serverless_bench/features/lambda_host", "serverless_bench/features/loopback/listener.py"
    ),
]


@pytest.fixture
def store(tmp_path: Path, stack: ExitStack) -> Server:
    """A store that supports many concurrent writes on two CPUs."""
    return stack.enter_context(loopback(log=tmp_path / "loopback.log"))


def flags(store: Server) -> list[str]:
    executor = ["--executor", "lambda", "--function", NAME, "--format", "json"]
    return [*executor, "--endpoint-url", store.endpoint_url, "--bucket", store.bucket]


@uses("feature barrier")
@pytest.mark.parametrize(
    "number", [pytest.param(40, id="small"), pytest.param(1000, id="all", marks=pytest.mark.full)]
)
def test_all_functions_are_alive_at_once(tmp_path: Path, store: Server, number: int) -> None:
    environment = {**store.environment, "AWS_ENDPOINT_URL_S3": store.endpoint_url}
    with running_host(environment) as host:
        sbench = Sbench(tmp_path, {**store.environment, **host.environment})
        where = flags(store)
        keys = tmp_path / "keys"
        wrote = sbench(
            "write",
            *(*where, "--key-file", str(keys), "--number", str(number), "--mb", "4"),
            *("--barrier", "1", "--barrier-timeout", "600", "--start-timeout", "600"),
        )
        status = host.status(memory=True)
        read = sbench("read", *where, "--key-file", keys)
    assert (wrote.code, wrote.json["ok"]) == (0, number), wrote.err
    assert (status["peak_alive"], status["cold_starts"]) == (number, number)
    assert wrote.json["barrier"]["announced"] == number
    assert (read.code, read.json["ok"]) == (0, number), read.err
    assert read.json["verified_bytes"] == number * 4 * 2**20


@pytest.mark.parametrize(
    "number",
    [pytest.param(500, id="small"), pytest.param(10_000, id="all", marks=pytest.mark.full)],
)
def test_records_cost_few_requests(tmp_path: Path, store: Server, number: int) -> None:
    environment = {**store.environment, "AWS_ENDPOINT_URL_S3": store.endpoint_url}
    with running_host(environment, ["--scripted"]) as host:
        sbench = Sbench(tmp_path, {**store.environment, **host.environment})
        where = flags(store)
        wrote = sbench("write", *where, "--number", number, "--size", "1KiB")
    assert (wrote.code, wrote.json["ok"]) == (0, number), wrote.err
    found = wrote.json["deliveries"]
    assert found["received"] == number
    # One for each record, and the listings: at most three a second, however long they go on.
    assert found["requests_per_function"] <= 1.05 + 3 * wrote.json["makespan_s"] / number
