"""``sbench why`` as a user runs it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import serverless_bench as sb
from serverless_bench.analysis.summary import summarize
from serverless_bench.job.interventions import BASE
from serverless_bench.process import environment
from serverless_bench.reporters.definitions import definitions
from serverless_bench.reporters.page.run import page
from serverless_bench.rundir.run import load_run
from serverless_bench.statistics.cause import BoundBy
from tests.clouds.dask_clusters import running_cluster
from tests.clouds.lambda_hosts import NAME, running_host
from tests.commands.command import Apart, Call, Done, Sbench, end_started
from tests.stores.servers import KEYS, loopback

JOB = ("--number", 2, "--concurrency", 2, "--size", "16KiB", "--objects", 2)
TOO_BUSY = ("need more time than", "too short for these requests", "did not run at the same time")
"""How `why` refuses a job whose requests take too long for blocks: here, by a busy machine."""


def asked(call: Callable[[], Done]) -> Done:
    """Return what a call of `why` printed; skip the test if it is refused for a busy machine."""
    done = call()
    if done.code == 2 and any(words in done.err for words in TOO_BUSY):
        pytest.skip(f"the machine is too busy: {done.err}")
    return done


def test_it_is_a_run_in_blocks_and_an_answer(sbench: Sbench, tmp_path: Path) -> None:
    with loopback("--latency", "fixed:30ms", log=tmp_path / "log") as store:
        at = ("--endpoint-url", store.endpoint_url, "--bucket", store.bucket)
        words = ("why", "write", *JOB, *at, "--budget", "24s", "--name", "w", "--format", "json")
        done = asked(lambda: sbench(*words))
        assert done.code in {0, 10}, done.err
        assert sbench(*words[:-2], "--format", "text").code == 8
    told = done.json
    # tests/verdicts/why.py measures how often it is right; a busy machine may be undecided.
    assert told["cause"] in ([], [BoundBy.LATENCY], [BoundBy.PROCESSOR], [BoundBy.MACHINE])
    assert done.err.startswith("takes about 27 s\nblocks of ")
    assert told["not_carried_out"] == []
    defined = definitions()
    assert told.keys() == defined["why"].keys()
    assert {tuple(change) for change in told["changes"].values()} == {tuple(defined["why_change"])}
    assert {tuple(block) for block in told["blocks"]} == {tuple(defined["why_block"])}
    assert told["changes"]["bytes"]["expected"] == -0.5
    assert {row["change"] for row in told["blocks"]} == {BASE, *told["changes"]}
    run = load_run(sbench.directory / "sbench-runs" / "w" / "blocks")
    assert run.functions["extra_operations"].min() > 0
    assert run.functions["tax_ns"].min() > 0
    assert run.functions["hold_ns"].min() > 0
    # Every byte is accounted for, half objects and the additional thread's, too.
    sizes = set((run.operations["bytes"]).tolist())
    assert sizes == {16384, 8192}
    assert set(run.functions["deviation"]) == {None}
    ledger = (run.path / "ledger.txt").read_text().splitlines()
    assert len(ledger) == len(set(ledger)) == 2 * (3 + 2)
    assert set(run.keys()) <= set(ledger)


def test_python_users_get_the_same_and_a_run_is_reused(tmp_path: Path) -> None:
    with loopback(log=tmp_path / "log") as store, environment(KEYS):
        target = sb.Target(bucket=store.bucket, endpoint_url=store.endpoint_url)
        writing = sb.JobSpec(workload="write", target=target, number=2, concurrency=2, size=4096)
        with pytest.raises(
            sb.SbenchError, match=r"7 changes in blocks of .* need more time than 1"
        ):
            sb.why(writing, tmp_path / "why", budget_s=1)
        with pytest.raises(sb.SbenchError, match="too short for these requests"):
            sb.why(writing, tmp_path / "why", resume=True, block_s=1e-5)
    assert [path.name for path in (tmp_path / "why").iterdir()] == ["pilot"]


FAILS_LATER = """
calls = 0

def main(tools):
    global calls
    tools.put(tools.new_key(0))
    calls += 1
    if tools.index == 1 and calls == 200:
        raise ValueError("enough")
"""
"""Answers take 20 ms: in the 3 s of the pilot run it cannot get as far, in the blocks it does."""


def test_a_function_that_fails_ends_the_blocks(sbench: Sbench, tmp_path: Path) -> None:
    (sbench.directory / "own.py").write_text(FAILS_LATER)
    with loopback("--latency", "fixed:20ms", log=tmp_path / "log") as store:
        at = ("--endpoint-url", store.endpoint_url, "--bucket", store.bucket, "--size", "1KiB")
        words = ("why", "call", "own.py:main", "--number", 2, *at, "--budget", "17s")
        done = asked(lambda: sbench(*words))
    assert done.code in {0, 10}, done.err
    if "functions failed" not in done.out:
        pytest.skip("the machine is too busy: fewer than 200 requests in 17 s")
    assert "1 of 2 functions failed or lost; blocks after the first are left out" in done.out


@contextmanager
def on(executor: str, directory: Path, target: sb.Target) -> Iterator[dict[str, Any]]:
    """Yield the fields of a job whose functions another program runs."""
    control = {"executor": executor, "control": replace(target, prefix="control/"), "probe": False}
    environ = {**KEYS, "AWS_EC2_METADATA_DISABLED": "true"}
    if executor == "dask":
        with running_cluster(directory / "cluster", environ, 2) as cluster:
            yield {**control, "scheduler": cluster.address}
    elif executor == "lambda":
        with running_host(environ) as host, environment({"AWS_ENDPOINT_URL_LAMBDA": host.url}):
            yield {**control, "function": (NAME,), "function_region": "us-east-1"}
    else:
        place = ("--control", f"s3://{target.bucket}/control/")
        for _ in range(2):
            Apart(directory, KEYS).start("worker", *place, "--endpoint-url", target.endpoint_url)
        yield control
        end_started()


@pytest.mark.parametrize("executor", ["workers", "dask", "lambda"])
def test_functions_elsewhere_make_all_changes(executor: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        flags = ("--check", "none", "--latency", "fixed:15ms")
        store = stack.enter_context(loopback(*flags, log=tmp_path / "log"))
        stack.enter_context(environment({**KEYS, "AWS_DEFAULT_REGION": "us-east-1"}))
        target = sb.Target(bucket=store.bucket, endpoint_url=store.endpoint_url, region="us-east-1")
        fields = stack.enter_context(on(executor, tmp_path, target))
        load = sb.Load(threads=2, layout="sharded:2")
        both: dict[str, Any] = {"number": 2, "concurrency": 2, "objects": 32, "size": 4096}
        job = sb.JobSpec(workload="write", target=target, load=load, **both, **fields)
        try:
            answer = sb.why(job, tmp_path / "why", budget_s=15, block_s=0.15, keep=True)
        except sb.SbenchError as error:
            if not any(words in str(error) for words in TOO_BUSY):
                raise
            pytest.skip(f"the machine is too busy: {error}")
    assert (answer.failed(), [*answer.rows]) == ([], [*answer.plan.changes])
    # The unused half of the prefixes is idle, and the page of the run has its blocks.
    run = load_run(answer.run.path, detail=False)
    assert "other half of prefixes idle" in page(summarize(run), run)


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (
            "7 changes in blocks of 250 ms need more time than 20 s",
            ("--budget", "20s", "--number", 2),
        ),
        ("7 changes in blocks of 3 s need more time than 60 s", ("--block", "3s", "--number", 2)),
        ("--number must be at least 2, got 1", ("--number", 1)),
        ("write takes no FILE.py:FUNCTION", ("own.py:f",)),
        ("inline runs one function at a time", ("--executor", "inline")),
        ("--concurrency must be at least 4, got 2", ("--number", 4, "--concurrency", 2)),
        ("--budget: 'soon' is not a duration", ("--budget", "soon")),
        ("No such option '--rate'", ("--rate", 3)),
        ("write has no --mix", ("--mix", "get=1")),
    ],
)
def test_wrong_flags_of_why_start_no_run(
    call: Call, words: str, arguments: Sequence[str | int]
) -> None:
    code, out, err = call("why", "write", "--size", "1KiB", *map(str, arguments))
    assert (code, out) == (2, "")
    assert words in err
    assert err.count("\n") == 2
