"""``sbench why`` as a user runs it."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

import serverless_bench as sb
from serverless_bench.base.process import environment
from serverless_bench.features.page.run import page
from serverless_bench.features.page.values import definitions
from serverless_bench.features.why import blocks
from serverless_bench.features.why.cause import BoundBy
from serverless_bench.features.why.interventions import BASE
from serverless_bench.metrics.summary import summarize
from serverless_bench.rundir.run import load_run
from tests.clouds.dask_clusters import running_cluster
from tests.clouds.lambda_hosts import NAME, running_host
from tests.commands.command import Apart, Call, Sbench, end_started
from tests.house.members import uses
from tests.stores.servers import KEYS, loopback
from tests.twice import two_of_three

RECORDED = Path(__file__).parents[5] / "tests" / "recorded"
JOB = ("--number", 2, "--concurrency", 2, "--size", "16KiB", "--objects", 2)


@pytest.fixture
def any_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no block be too short: a busy machine takes longer for requests than they last."""
    monkeypatch.setattr(blocks, "_GUARD", 1e-6)
    monkeypatch.setattr(blocks, "_LEAST_GAPS", 0)


@pytest.mark.usefixtures("any_block")
def test_it_is_a_run_in_blocks_and_an_answer(sbench: Sbench, tmp_path: Path) -> None:
    with loopback("--latency", "fixed:5ms", log=tmp_path / "log") as store:
        at = ("--endpoint-url", store.endpoint_url, "--bucket", store.bucket)
        words = ("why", "write", *JOB, *at, "--budget", "24s", "--name", "w", "--format", "json")
        done = sbench(*words)
        assert done.code in {0, 10}, done.err
        assert sbench(*words[:-2], "--format", "text").code == 8
    document = done.json
    assert set(document["cause"]) <= set(BoundBy)
    planned = "blocks of 250 ms: 9 for each of 7 changes"
    assert done.err.startswith(f"takes about 27 s\n{planned}\n")
    defined = definitions("write")
    assert document.keys() == defined["why"].keys()
    assert {tuple(change) for change in document["changes"].values()} == {
        tuple(defined["why_change"])
    }
    assert {tuple(block) for block in document["blocks"]} == {tuple(defined["why_block"])}
    assert document["changes"]["bytes"]["expected"] < 0
    assert {row["change"] for row in document["blocks"]} == {BASE, *document["changes"]}
    run = load_run(sbench.directory / "sbench-runs" / "w" / "blocks")
    check_changed(run)
    # Every byte is accounted for, half objects and the additional thread's, too.
    sizes = set((run.operations["bytes"]).tolist())
    assert sizes == {16384, 8192}
    assert set(run.functions["deviation"]) == {None}
    ledger = (run.path / "ledger.txt").read_text().splitlines()
    assert len(ledger) == len(set(ledger)) == 2 * (3 + 2)
    assert set(run.keys()) <= set(ledger)


def check_changed(run: sb.Run) -> None:
    """Check that all functions made the changes that they count."""
    for name in ("extra_operations", "tax_ns", "hold_ns"):
        assert run.functions[name].min() > 0, name


@pytest.mark.timing
@pytest.mark.full
def test_blocks_fit_the_requests_and_show_the_cause(tmp_path: Path) -> None:
    two_of_three(lambda: check_cause(Path(mkdtemp(dir=tmp_path))))


def check_cause(directory: Path) -> None:
    """Check blocks as short as the requests allow; its page has how often a cause is named."""
    with loopback("--latency", "fixed:30ms", log=directory / "log") as store:
        at = ("--endpoint-url", store.endpoint_url, "--bucket", store.bucket)
        words = ("why", "write", *JOB, *at, "--budget", "60s", "--format", "json")
        done = Sbench(directory, KEYS)(*words)
    assert done.code in {0, 10}, done.err
    document = done.json
    assert document["cause"] in ([], [BoundBy.LATENCY], [BoundBy.CPU], [BoundBy.MACHINE])
    assert document["not_carried_out"] == []
    assert document["changes"]["bytes"]["expected"] == -0.5


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


def test_the_job_of_a_run_is_repeated(sbench: Sbench, tmp_path: Path) -> None:
    with loopback(log=tmp_path / "log") as store:
        at = ("--endpoint-url", store.endpoint_url, "--bucket", store.bucket)
        write = ("write", *JOB, *at, "--threads", 2, "--name", "w", "--run-dir", "elsewhere")
        read = ("read", "--from", "elsewhere/w", "--number", 2, "--read-times", 2, "--name", "r")
        assert [sbench(*words).code for words in (write, read)] == [0, 0]
        for run in ("elsewhere/w", "r"):
            done = sbench("why", run, "--block", "0.00001", "--name", f"why-{run[-1]}")
            assert done.code == 2
            assert "too short for these requests" in done.err
    for saved, pilot in (("elsewhere/w", "why-w/pilot"), ("sbench-runs/r", "why-r/pilot")):
        before = load_run(sbench.directory / saved)
        after = load_run(sbench.directory / "sbench-runs" / pilot)
        assert after.job == replace(before.job, name="pilot", duration=3.0)
        given = set(before.keys()) - set(before.ledger())
        assert set(after.keys()) - set(after.ledger()) == given
        assert bool(given) is (before.job.workload == "read")


@pytest.mark.parametrize(
    ("run", "words", "arguments"),
    [
        ("write", "--mb is not for a run", ("--mb", "1")),
        ("write", "--from is not for a run", ("--from", "w")),
        ("write", "code is not for a run", ("own.py:f",)),
        ("imported-warp", "was imported", ()),
        ("custom", "its code is not saved", ()),
    ],
)
def test_a_run_that_cannot_be_repeated_is_refused(
    call: Call, run: str, words: str, arguments: Sequence[str]
) -> None:
    code, out, err = call("why", str(RECORDED / run), *arguments, "--trust")
    assert (code, out) == (2, "")
    assert words in err


FAILS_LATER = """
from pathlib import Path
from time import monotonic

began_s = 0.0

def main(tools):
    global began_s
    tools.put(tools.new_key(0))
    # The pilot run has another directory.
    if tools.index == 1 and Path("BLOCKS").exists():
        began_s = began_s or monotonic()
        if monotonic() > began_s + 4:
            raise ValueError("enough")
"""


@pytest.mark.usefixtures("any_block")
def test_a_function_that_fails_ends_the_blocks(sbench: Sbench, tmp_path: Path) -> None:
    own = FAILS_LATER.replace("BLOCKS", str(sbench.directory / "sbench-runs" / "f" / "blocks"))
    (sbench.directory / "own.py").write_text(own)
    with loopback(log=tmp_path / "log") as store:
        at = ("--endpoint-url", store.endpoint_url, "--bucket", store.bucket, "--size", "1KiB")
        short = ("--number", 2, "--budget", "10s", "--block", "0.1s", "--name", "f")
        done = sbench("why", "custom", "own.py:main", *short, *at)
    assert done.code in {0, 10}, done.err
    assert "1 of 2 functions failed or lost; blocks after the first are left out" in done.out


@contextmanager
def on(executor: str, directory: Path, target: sb.Target) -> Iterator[dict[str, Any]]:
    """Yield the fields of a job whose functions another program runs."""
    control = {"executor": executor, "control": replace(target, prefix="control/")}
    options: dict[str, Any] = {"probe": False}
    environ = {**KEYS, "AWS_EC2_METADATA_DISABLED": "true"}
    if executor == "dask":
        with running_cluster(directory / "cluster", environ, 2) as cluster:
            yield {**control, "options": {**options, "scheduler": cluster.address}}
    elif executor == "lambda":
        with running_host(environ) as host, environment({"AWS_ENDPOINT_URL_LAMBDA": host.url}):
            options |= {"function": (NAME,), "function_region": "us-east-1"}
            yield {**control, "options": options}
    else:
        place = ("--control", f"s3://{target.bucket}/control/")
        for _ in range(2):
            Apart(directory, KEYS).start("worker", *place, "--endpoint-url", target.endpoint_url)
        yield {**control, "options": options}
        end_started()


def why_on(executor: str, directory: Path, block_s: float) -> sb.Why:
    """Ask functions that another program runs, in a hundred blocks."""
    with ExitStack() as stack:
        flags = ("--check", "none", "--latency", "fixed:15ms")
        store = stack.enter_context(loopback(*flags, log=directory / "log"))
        stack.enter_context(environment({**KEYS, "AWS_DEFAULT_REGION": "us-east-1"}))
        target = sb.Target(bucket=store.bucket, endpoint_url=store.endpoint_url, region="us-east-1")
        fields = stack.enter_context(on(executor, directory, target))
        load = sb.Load(threads=2, layout="sharded:2")
        both: dict[str, Any] = {"number": 2, "concurrency": 2, "objects": 32, "size": 4096}
        job = sb.JobSpec(workload="write", target=target, load=load, **both, **fields)
        return sb.why(
            job, directory / "why", budget_s=100 * block_s + 1, block_s=block_s, keep=True
        )


EXECUTORS = ("workers", "dask", "lambda")


@uses("executor workers")
@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.usefixtures("any_block")
def test_functions_elsewhere_make_all_changes(executor: str, tmp_path: Path) -> None:
    answer = why_on(executor, tmp_path, 0.15)
    assert [*answer.rows] == [*answer.plan.changes]
    check_changed(answer.run)
    # The unused half of the prefixes is idle, and the page of the run has its elasticity.
    run = load_run(answer.run.path, detail=False)
    assert "other half of prefixes idle" in page(summarize(run), run)


@uses("executor workers")
@pytest.mark.timing
@pytest.mark.full
@pytest.mark.parametrize("executor", EXECUTORS)
def test_functions_elsewhere_change_as_much_as_asked_for(executor: str, tmp_path: Path) -> None:
    def check() -> None:
        try:
            answer = why_on(executor, Path(mkdtemp(dir=tmp_path)), 0.5)
        except sb.SbenchError as error:  # requests took too long for the blocks
            raise AssertionError(str(error)) from error
        assert answer.failed() == []

    two_of_three(check)


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
