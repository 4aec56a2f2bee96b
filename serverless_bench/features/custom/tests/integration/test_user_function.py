"""Functions of the user's own, on every executor and from the command line."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from serverless_bench import JobSpec, SbenchError, Target, resume_job, run_job, summarize
from serverless_bench.driver.cleanup import delete
from serverless_bench.features.custom.context import FunctionContext
from tests.clouds.lambda_hosts import running_host
from tests.commands.command import Sbench
from tests.data.own_functions import function_job
from tests.stores.servers import Server, credentials

SIZE = 300_000


@pytest.fixture
def target(embedded: Server, prefix: str) -> Target:
    return Target(bucket=embedded.bucket, prefix=prefix, endpoint_url=embedded.endpoint_url)


def copies(context: FunctionContext) -> None:
    key = context.new_key()
    context.put(key)
    half = context.get(key, 0, SIZE // 2)
    assert half == context.content(key).read(0, SIZE // 2)
    with context.measure("copy"):
        data = bytearray(half)
    data[1000] ^= context.index == 1
    context.verify(key, 0, data)
    if context.index == 2:
        context.get(context.new_key())


@pytest.mark.parametrize("executor", ["inline", "local", "lithops"])
def test_it_is_measured_verified_and_reported(
    executor: str, target: Target, tmp_path: Path, embedded: Server
) -> None:
    with credentials(embedded.environment):
        job = function_job(
            copies,
            target=target,
            executor=executor,
            number=3,
            concurrency=2,
            objects=2,
            size=SIZE,
        )
        run = run_job(job, tmp_path / "run")
        assert delete(target, run.ledger()).objects == 3
    found = summarize(run)
    assert (found.workload, found.ok, found.failed, found.withheld) == ("custom", 1, 2, ())
    # In the function that read a wrong byte, only that block has failed.
    assert found.verified_bytes == 2 * SIZE + SIZE // 2
    assert (found.corrupt_objects, found.bad_bytes) == (1, 1)
    assert (found.bad_ranges[0]["offset"], found.bad_ranges[0]["length"]) == (1000, 1)
    (missing, wrong) = sorted(found.errors, reverse=True)
    assert wrong == "corrupt"
    assert missing.startswith("function: NotFound: get: ")
    assert missing.endswith(f"(test_user_function.py:{copies.__code__.co_firstlineno + 10})")
    assert set(run.operations["kind"]) == {"put", "get", "get_range", "call"}
    assert len(run.ledger()) == 6


def test_a_run_directory_has_no_code(target: Target, tmp_path: Path, embedded: Server) -> None:
    def dies(context: FunctionContext) -> None:
        if context.index == 1 and context.launch == 0:
            os._exit(3)
        context.put(context.new_key())
        context.get(context.keys[0])

    settings: dict[str, Any] = {"number": 3, "concurrency": 3, "size": SIZE}
    with credentials(embedded.environment):
        given = run_job(
            JobSpec(workload="write", target=target, number=1, size=10),
            tmp_path / "given",
        ).keys()
        run = run_job(function_job(dies, target=target, **settings), tmp_path / "run", keys=given)
        assert (summarize(run).ok, summarize(run).lost) == (2, 1)
        assert run.job.load.code is None
        assert json.loads((run.path / "run.json").read_text())["job"]["load"]["code"] is None
        assert run.provenance["function"].startswith("sha256:")
        # The command has no code of the function, so it launches nothing.
        again = resume_job(run.path)
        assert (summarize(again).ok, again.waves) == (2, ())
        again = resume_job(run.path, function=dies)
    assert (summarize(again).ok, len(again.waves)) == (3, 1)
    # Two drivers came after the first one had ended; no function ran in between.
    (end, _), (_, start) = again.downtimes
    assert run.functions["collected_ns"].max() <= end
    assert 0 < summarize(again).paused_s <= (start - end) / 1e9
    assert again.keys()[0] == given[0]
    assert len(again.ledger()) == 4


def test_a_job_without_its_function_is_rejected(target: Target, tmp_path: Path) -> None:
    with pytest.raises(SbenchError, match="brings no function") as caught:
        run_job(JobSpec(workload="custom", target=target, number=1), tmp_path / "none")
    assert caught.value.exit_code == 2


OWN = """
from beside import NAME

def good(context):
    assert context.keys == ("given",)
    context.put(context.new_key())

def bad(context):
    data = context.content(NAME).read(0, 100)
    data[7] ^= 1
    with context.measure(NAME, bytes=100):
        pass
    if context.index:
        {}["nothing"]
    context.verify(NAME, 0, data)
"""


@pytest.fixture
def own(sbench: Sbench) -> Sbench:
    folder = sbench.directory / "mine"
    folder.mkdir()
    (folder / "own.py").write_text(OWN)
    (folder / "beside.py").write_text('NAME = "a block"\n')
    (sbench.directory / "keys.txt").write_text("given\n")
    return sbench


def test_the_command(own: Sbench) -> None:
    here = ("--number", 2, "--executor", "inline", "--format", "json")
    given = ("--size", "2KB", "--key-file", "keys.txt")
    good = own("custom", "mine/own.py:good", *given, *here)
    assert (good.code, good.json["ok"], good.json["bytes"]) == (0, 2, 4000), good.err
    bad = own("custom", "mine/own.py:bad", *here)
    assert (bad.code, bad.json["corrupt_objects"]) == (7, 1)
    assert bad.json["errors"] == {"corrupt": 1, "function: KeyError: 'nothing' (own.py:14)": 1}


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="functions need Linux")
@pytest.mark.parametrize(
    ("allowed", "why"),
    [
        ("1", "KeyError: 'nothing' (own.py:14)"),
        pytest.param("0", "refused: this worker does not run code", marks=pytest.mark.full),
    ],
    ids=["allowed", "not-allowed"],
)
def test_a_deployed_function_needs_permission(own: Sbench, allowed: str, why: str) -> None:
    environment = {**own.environment, "SBENCH_ALLOW_CODE": allowed}
    with running_host(environment, ["--pass", "SBENCH_ALLOW_CODE"]) as host:
        done = own(
            *("custom", "mine/own.py:bad", "--executor", "lambda", "--number", 2),
            *("--function", "sbench-worker"),
            **{**host.environment, **own.environment},
        )
    assert done.code == (7 if allowed == "1" else 6), done.err
    assert why in done.out
