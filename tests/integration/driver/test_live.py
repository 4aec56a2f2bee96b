"""A run is watched while it is under way: what is shown is what its records say in the end."""

import os
import pty
import re
import socket
import subprocess
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from serverless_bench.clock import repeated
from serverless_bench.driver.live.bound_now import UNKNOWN
from serverless_bench.driver.live.display import Display
from serverless_bench.driver.live.view import RunView
from serverless_bench.driver.run import run_job
from serverless_bench.executors.base import RunProgress
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from serverless_bench.rundir.run import Run, load_run
from tests.commands.command import COMMAND, Sbench
from tests.stores.servers import Server, credentials, free_port, loopback

FAULTS = ("--slowdown", "0.1", "--error", "0.05", "--reset-put", "0.1", "--reset-get", "0.1")
CLASSES = {"throttled": "throttled", "server_fault": "5xx", "connection_lost": "reset"}


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with loopback(*FAULTS, log=tmp_path_factory.mktemp("faulty") / "log") as server:
        yield server


@pytest.fixture
def faulty_sbench(tmp_path: Path, faulty: Server) -> Sbench:
    return Sbench(tmp_path, faulty.environment)


def samples(text: str) -> dict[tuple[str, ...], float]:
    return {
        (one.name, *one.labels.values()): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


def of_records(run: Run) -> dict[tuple[str, ...], float]:
    """Return what the metrics should say in the end, from the saved records."""
    found = Counter[tuple[str, ...]]()
    operations, attempts = run.operations, run.attempts
    names = ("function", "index", "kind", "warmup", "error")
    kinds = dict[tuple[int, int], str]()
    for function, index, kind, warmup, error in zip(*map(operations.get, names), strict=True):
        kinds[function, index] = shown = "warmup" if warmup else str(kind)
        found["sbench_operations_total", shown, "failed" if error else "ok"] += 1
    for of in zip(*map(attempts.get, ("function", "operation", "bytes")), strict=True):
        found["sbench_bytes_total", kinds[of[0], of[1]]] += int(of[2])
    for error in attempts["error"].tolist():
        if error is not None:
            found["sbench_failures_total", CLASSES[error]] += 1
    found["sbench_attempts_total",] = len(attempts["number"])
    found["sbench_retries_total",] = int((attempts["number"] > 0).sum())
    return {key: count for key, count in found.items() if count}


@pytest.mark.parametrize("executor", ["inline", "local"])
def test_metrics_in_a_file_end_as_the_records_say(
    faulty: Server, faulty_sbench: Sbench, executor: str
) -> None:
    done = faulty_sbench(
        *("mixed", "--endpoint-url", faulty.endpoint_url, "--bucket", "b", "--name", "w"),
        *("--executor", executor, "--number", 2, "--objects", 4, "--size", "20KB"),
        *("--operations", 40, "--threads", 2, "--retries", 1, "--format", "json"),
        *("--mix", "get=1,put=1,head=1", "--progress", "plain", "--metrics", "run.prom"),
    )
    assert done.code in {0, 6}, done
    found = samples((faulty_sbench.directory / "run.prom").read_text())
    expected = of_records(load_run(faulty_sbench.directory / "sbench-runs" / "w"))
    assert {key for key in expected if key[0] == "sbench_failures_total"}
    assert {key: found[key] for key in expected} == expected
    # What is not in the records is not in the metrics.
    more = {key for key, value in found.items() if value and key[0].endswith("_total")}
    assert more == set(expected)
    ended = {state: found["sbench_functions", state] for state in ("done", "failed", "running")}
    assert (ended["done"] + ended["failed"], ended["running"]) == (2, 0)
    # The log has it too, beside a report that stays what it is.
    assert done.json["requested"] == 2
    last = done.err.splitlines()[-1]
    assert last.startswith(tuple("0123456789")), done.err
    assert "finishing" in last
    assert f"retries {expected['sbench_retries_total',]:,}" in last


def test_metrics_are_on_a_port_while_it_runs(faulty: Server, tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    seen: list[dict[tuple[str, ...], float]] = []

    def scrape(_: object) -> None:
        with urllib.request.urlopen(f"http://{address}/metrics") as answer:
            seen.append(samples(answer.read().decode()))

    job = JobSpec(
        workload="write",
        target=Target(bucket="b", endpoint_url=faulty.endpoint_url),
        executor="inline",
        number=2,
        objects=3,
        size=10_000,
    )
    display = Display(style="none", metrics=address)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in faulty.environment.items():
            patch.setenv(name, value)
        run_job(job, tmp_path / "run", progress=display, on_outcome=scrape)
    ended = [one["sbench_functions", "done"] + one["sbench_functions", "failed"] for one in seen]
    assert ended == [1, 2]
    assert seen[0]["sbench_attempts_total",] < seen[1]["sbench_attempts_total",]
    with pytest.raises(OSError, match="refused"):
        scrape(None)


def test_a_port_that_is_taken_costs_the_metrics_and_not_the_run(sbench: Sbench) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
        done = sbench("write", "--number", 1, "--mb", 1, "--metrics", f":{port}", "--name", "w")
    assert done.code == 0, done.err
    assert f"note: no metrics: cannot listen on 127.0.0.1:{port}: Address already in" in done.err


def test_a_terminal_shows_the_view_and_keeps_nothing_of_it(
    faulty: Server, faulty_sbench: Sbench
) -> None:
    ours, theirs = pty.openpty()
    where = ("--endpoint-url", faulty.endpoint_url, "--bucket", "b", "--name", "t")
    how = ("--executor", "local", "--number", "2", "--size", "4KB", "--retries", "2")
    environment = {**os.environ, **faulty.environment, "TERM": "xterm", "COLUMNS": "60"}
    environment.pop("SBENCH_PROGRESS", None)
    process = subprocess.Popen(
        [*COMMAND, "write", *where, *how, "--duration", "3", "--rate", "200"],
        cwd=faulty_sbench.directory,
        env=environment,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # what a terminal says whose other end is closed
        while data := os.read(ours, 1 << 16):
            shown += data
    os.close(ours)
    out, _ = process.communicate()
    assert process.returncode in {0, 6}
    text = shown.decode()
    for word in ("functions", "2 running", "of 200/s asked for", "p50", "retries", "bound by"):
        assert word in text, text
    # Every line fits, and in the end the view is wiped off.
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).splitlines()
    assert max(map(len, lines)) <= 60
    assert text.rstrip("\r\n").endswith("\x1b[2K")
    assert b"functions" in out


@pytest.mark.parametrize(
    ("client", "flags", "says"),
    [("wire", ("--latency", "fixed:500"), True), ("boto3", (), False)],
    ids=["the store", "the client"],
)
def test_what_bounds_it_is_the_store_only_where_it_is(
    client: str, flags: tuple[str, ...], tmp_path: Path, *, says: bool
) -> None:
    """One store takes 0.5 s for an answer, more than a busy machine; the other one is fast."""
    with loopback(*flags, log=tmp_path / "log") as server, credentials(server.environment):
        job = JobSpec(
            workload="write",
            target=Target(bucket="b", endpoint_url=server.endpoint_url, client=client),
            executor="inline",
            number=1,
            concurrency=1,
            objects=1,
            size=4096,
            duration=2.5,
        )
        job = replace(job, load=replace(job.load, threads=4 if says else 1))
        live = RunProgress()
        view, seen = RunView(job, 1, live), Counter[str]()

        def look() -> None:
            seen[view.look().bound.partition(":")[0]] += 1

        with repeated(look, 0.1, name="looks"):
            run_job(job, tmp_path / "run", live=live, on_outcome=view.add)
    # Before a second has passed it is not known.
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
    live = RunProgress(stopped=True)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in faulty.environment.items():
            patch.setenv(name, value)
        run = run_job(replace(job, deadline=100.0), tmp_path / "run", live=live)
    # They would have written for a minute.
    assert len(run.operations["kind"]) <= 2 * 2
    assert not len(run.overdue["function"])
