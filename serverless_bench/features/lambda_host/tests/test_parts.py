"""The parts of the Lambda host that need no process and no connection."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.lambda_host.counters import (
    ACCOUNT,
    RESERVED,
    SCALING,
    ConcurrencyCounters,
)
from serverless_bench.features.lambda_host.functions import LambdaFunction, make_runtime
from serverless_bench.features.lambda_host.pool import ForkClient
from serverless_bench.features.lambda_host.settings import (
    FaultRule,
    HostSettings,
    InvokeFault,
    InvokeFaultPlan,
    arn,
)


def event(index: int, launch: int = 0) -> bytes:
    return json.dumps({"index": index, "launch": launch}).encode()


def hits(rule: FaultRule, payloads: list[bytes], seed: int = 0) -> list[bool]:
    plan = InvokeFaultPlan(seed, {InvokeFault.DROP: rule})
    return [InvokeFault.DROP in plan.decide(payload) for payload in payloads]


def test_a_listed_invocation_is_hit_once_and_no_other() -> None:
    rule = FaultRule.parse("index=3,5 launch=0")
    assert hits(rule, [event(i) for i in (3, 4, 5, 3)]) == [True, False, True, False]
    assert hits(rule, [event(3, launch=1)]) == [False]
    assert hits(FaultRule.parse("index=3 times=2"), [event(3)] * 3) == [True, True, False]


@given(st.permutations(range(200)), st.integers(0, 9))
def test_faults_do_not_depend_on_the_order_of_requests(order: list[int], seed: int) -> None:
    plain = hits(FaultRule(share=0.3), [event(i) for i in range(200)], seed)
    mixed = hits(FaultRule(share=0.3), [event(i) for i in order], seed)
    assert [plain[i] for i in order] == mixed


def test_a_share_is_a_share_also_of_events_of_others() -> None:
    assert 250 < sum(hits(FaultRule(share=0.3), [b"[]"] * 1000)) < 350
    assert 250 < sum(hits(FaultRule(share=0.3), [event(1)] * 1000)) < 350
    assert not any(hits(FaultRule(share=0.0), [b"{}"] * 100))
    assert all(hits(FaultRule(share=1.0), [b"7"] * 100))


@pytest.mark.parametrize("text", ["2", "-1", "x", "index=a", "colour=red", "0.1 times=0"])
def test_a_wrong_rule_is_reported(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        FaultRule.parse(text)
    assert caught.value.hint


def test_reserved_concurrency_is_not_shared() -> None:
    barrier = ConcurrencyCounters(3)
    barrier.reserved["a"] = 1
    barrier.enter("a", 0)
    assert barrier.refusal("a", 0) == RESERVED
    for _ in range(2):
        assert not barrier.refusal("b", 0)
        barrier.enter("b", 0)
    assert barrier.refusal("c", 0) == ACCOUNT
    barrier.leave("b")
    assert not barrier.refusal("c", 0)


@pytest.mark.parametrize("copies", [1, 5])
def test_every_function_has_a_launch_rate_of_its_own(copies: int) -> None:
    """AWS's figures: 1,000 at once and 100 per second, for each function."""
    limits = ConcurrencyCounters(10_000, launch_per_s=100.0, launch_burst=1000)
    names = [f"f{number}" for number in range(copies)]
    launched = 0
    for second, in_all in ((0, 1000), (1, 1100), (4, 1400)):
        for name in names:
            while not limits.refusal(name, second * NS_PER_S):
                limits.enter(name, second * NS_PER_S)
                launched += 1
        assert launched == copies * in_all
    # An ended invocation leaves its environment to the next one, and a quota limits all functions.
    limits.leave("f0")
    assert not limits.refusal("f0", 4 * NS_PER_S)
    limits.enter("f0", 4 * NS_PER_S)
    assert limits.refusal("f0", 4 * NS_PER_S) == SCALING
    limits.account = copies * 1400
    assert limits.refusal("f0", 5 * NS_PER_S) == ACCOUNT


def test_the_path_has_the_function_then_its_layers_then_the_runtime(tmp_path: Path) -> None:
    function = LambdaFunction(
        name="f",
        arn=arn("us-east-1", "f"),
        handler="app.handler",
        code=tmp_path / "code",
        layers=(tmp_path / "one", tmp_path / "two"),
    )
    found = function.fork_settings(tmp_path)
    order = [Path(path).relative_to(tmp_path).parts for path in found["paths"]]
    assert [parts[0] for parts in order] == ["code", "two", "one", "two", "one", "runtime"]
    assert found["last"] == []
    assert function.interpreter()[1:3] == ["-I", "-S"]


def test_the_variables_are_those_of_lambda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "me")
    monkeypatch.setenv("MINE", "1")
    function = LambdaFunction(
        name="f",
        arn=arn("us-east-1", "f"),
        handler="app.handler",
        environment={"MODE": "test", "AWS_LAMBDA_FUNCTION_NAME": "no"},
        memory_mib=512,
    )
    found = function.variables(HostSettings(), "2026/11/21/[$LATEST]0", "127.1.0.1:9")
    assert found["AWS_LAMBDA_FUNCTION_NAME"] == "f"
    assert found["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"] == "512"
    assert (found["AWS_ACCESS_KEY_ID"], found["MODE"], found["TZ"]) == ("me", "test", ":UTC")
    assert "MINE" not in found


def test_the_runtime_only_has_the_packages_of_aws(tmp_path: Path) -> None:
    names = {path.name for path in make_runtime(tmp_path).iterdir()}
    assert {"awslambdaric", "simplejson", "botocore", "urllib3"} <= names
    assert not {"numpy", "lithops", "serverless_bench"} & names
    assert all((tmp_path / name).exists() for name in names)


class ShortLived(ForkClient):
    """A fork server with processes that end before their start is reported."""

    async def _start(self) -> None:
        self.lines = asyncio.StreamReader()
        self._reading = asyncio.create_task(self._read(self.lines))

    def _send(self, message: dict[str, Any]) -> None:
        values = {"fork": message["fork"], "pid": 7}, {"pid": 7, "status": 3}
        self.lines.feed_data(b"".join(json.dumps(one).encode() + b"\n" for one in values))


def test_an_ended_process_is_reported_with_its_status(tmp_path: Path) -> None:
    function = LambdaFunction(name="f", arn="", handler="app.handler")

    async def fork() -> tuple[int, int]:
        pid, exited = await ShortLived(function, tmp_path, tmp_path / "log").fork({})
        return pid, await exited

    assert asyncio.run(fork()) == (7, 3)


def test_the_command_line_module_does_not_need_the_servers_library() -> None:
    module = "serverless_bench.features.lambda_host.command"
    code = f"import sys, {module}; sys.exit('aiohttp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
