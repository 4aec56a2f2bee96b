"""The live view of a run in progress agrees with its records at the end."""

import os
import pty
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp

import pytest

from serverless_bench.base.clock import repeated
from serverless_bench.driver.run import run_job
from serverless_bench.executors.base import RunProgress
from serverless_bench.features.live.board import BoardTotals
from serverless_bench.features.live.bound_now import UNKNOWN
from serverless_bench.features.live.view import Look, RunView
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target, Transfer
from serverless_bench.job.workload import Load
from serverless_bench.rundir.record import Outcome
from serverless_bench.rundir.run import Run
from tests.commands.command import COMMAND, Sbench
from tests.stores.servers import Server, credentials, loopback
from tests.twice import two_of_three

FAULTS = ("--slowdown", "0.1", "--error", "0.05", "--reset-put", "0.1", "--reset-get", "0.1")
CLASSES = {"throttled": "throttled", "server_error": "5xx", "connection_error": "reset"}


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with loopback(*FAULTS, log=tmp_path_factory.mktemp("faulty") / "log") as server:
        yield server


@pytest.fixture
def faulty_sbench(tmp_path: Path, faulty: Server) -> Sbench:
    return Sbench(tmp_path, faulty.environment)


def of_records(run: Run) -> Counter[tuple[str, ...]]:
    """Return the expected counters at the end, from the saved records."""
    found = Counter[tuple[str, ...]]()
    operations, attempts = run.operations, run.attempts
    names = ("function", "index", "kind", "warmup", "error")
    kinds = dict[tuple[int, int], str]()
    for function, index, kind, warmup, error in zip(*map(operations.get, names), strict=True):
        kinds[function, index] = shown = "warmup" if warmup else str(kind)
        found["operations", shown] += 1
        found["failed", shown] += bool(error)
    for of in zip(*map(attempts.get, ("function", "operation", "bytes")), strict=True):
        found["bytes", kinds[of[0], of[1]]] += int(of[2])
    for error in attempts["error"].tolist():
        if error is not None:
            found["failures", CLASSES[error]] += 1
    found["attempts",] = len(attempts["number"])
    found["retries",] = int((attempts["number"] > 0).sum())
    return +found


def of_totals(totals: BoardTotals) -> Counter[tuple[str, ...]]:
    """Return the same from the counters."""
    found = Counter[tuple[str, ...]](
        {
            (name, key): count
            for name in ("operations", "failed", "bytes", "failures")
            for key, count in getattr(totals, name).items()
        }
    )
    found["attempts",], found["retries",] = totals.attempts, totals.retries
    return +found


@pytest.mark.parametrize("executor", ["inline", "local"])
def test_the_last_view_agrees_with_the_records(
    faulty: Server, tmp_path: Path, executor: str, capsys: pytest.CaptureFixture[str]
) -> None:
    mix = (("get", 1.0), ("put", 1.0), ("head", 1.0))
    job = JobSpec(
        workload="mixed",
        target=Target(bucket="b", endpoint_url=faulty.endpoint_url),
        executor=executor,
        number=2,
        objects=4,
        size=20_000,
        transfer=Transfer(retries=1),
        load=Load(mix=mix, operations=40, threads=2),
    )
    live, looks = RunProgress(), list[Look]()
    view = RunView(job, 2, live)

    def look(outcome: Outcome) -> None:
        view.add(outcome)
        looks.append(view.look())

    with credentials(faulty.environment):
        run = run_job(job, tmp_path / "run", progress="plain", live=live, on_outcome=look)
    expected = of_records(run)
    assert {key for key in expected if key[0] == "failures"}
    assert of_totals(looks[-1].totals) == expected
    ended = [one.functions["done"] + one.functions["failed"] for one in looks]
    assert (ended, looks[-1].functions["running"]) == ([1, 2], 0)
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith(tuple("0123456789")), last
    assert "finishing" in last
    assert f"retries {expected['retries',]:,}" in last


def test_a_terminal_shows_the_view_and_keeps_no_text_of_it(
    faulty: Server, faulty_sbench: Sbench
) -> None:
    ours, theirs = pty.openpty()
    where = ("--endpoint-url", faulty.endpoint_url, "--bucket", "b", "--name", "t")
    how = ("--executor", "local", "--number", "2", "--size", "4KB", "--retries", "2")
    environment = {**os.environ, **faulty.environment, "TERM": "xterm", "COLUMNS": "60"}
    environment.pop("SBENCH_PROGRESS", None)
    process = subprocess.Popen(
        [*COMMAND, "write", *where, *how, "--duration", "10", "--rate", "50"],
        cwd=faulty_sbench.directory,
        env=environment,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # error of a terminal with a closed other end
        while data := os.read(ours, 1 << 16):
            shown += data
    os.close(ours)
    out, _ = process.communicate()
    assert process.returncode in {0, 6}
    text = shown.decode()
    for word in ("functions", "2 running", "of 50/s", "p50", "retries", "bottleneck"):
        assert word in text, text
    # Every line fits, and in the end the view is wiped off.
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).splitlines()
    assert max(map(len, lines)) <= 60
    assert text.rstrip("\r\n").endswith("\x1b[2K")
    assert b"functions" in out


@pytest.mark.timing
@pytest.mark.parametrize(
    ("client", "flags", "says"),
    [
        pytest.param("wire", ("--latency", "fixed:500ms"), True, id="the store"),
        pytest.param("boto3", (), False, id="the client", marks=pytest.mark.full),
    ],
)
def test_the_store_is_only_named_if_it_is_the_bottleneck(
    client: str, flags: tuple[str, ...], tmp_path: Path, *, says: bool
) -> None:
    """One store takes 0.5 s for an answer, more than a busy machine; the other one is fast."""
    two_of_three(lambda: check_bound(client, flags, Path(mkdtemp(dir=tmp_path)), says=says))


def check_bound(client: str, flags: tuple[str, ...], tmp_path: Path, *, says: bool) -> None:
    with loopback(*flags, log=tmp_path / "log") as server, credentials(server.environment):
        job = JobSpec(
            workload="write",
            target=Target(bucket="b", endpoint_url=server.endpoint_url, client=client),
            executor="inline",
            number=1,
            concurrency=1,
            objects=1,
            size=4096,
            duration=6.0,
        )
        job = replace(job, load=replace(job.load, threads=4 if says else 1))
        live = RunProgress()
        view, seen = RunView(job, 1, live), Counter[str]()

        def look() -> None:
            seen[view.look().bound.partition(":")[0]] += 1

        with repeated(look, 0.1, name="looks"):
            run_job(job, tmp_path / "run", live=live, on_outcome=view.add)
    # It is unknown until a second has passed.
    assert seen[UNKNOWN], seen
    assert bool(seen["store or network"]) is says, seen


def test_functions_of_other_processes_are_stopped(faulty: Server, tmp_path: Path) -> None:
    job = JobSpec(
        workload="write",
        target=Target(bucket="b", endpoint_url=faulty.endpoint_url),
        executor="local",
        number=2,
        concurrency=2,
        objects=1,
        size=1000,
        duration=60.0,
    )
    live = RunProgress(stop_level=1)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in faulty.environment.items():
            patch.setenv(name, value)
        run = run_job(replace(job, deadline=100.0), tmp_path / "run", live=live)
    # They would have written for a minute.
    assert len(run.operations["kind"]) <= 2 * 2
    assert not len(run.dropped["function"])
