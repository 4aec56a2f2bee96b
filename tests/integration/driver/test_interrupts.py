"""Signals and kills at random instants: what the store has seen is in the run, and in its report.

The store's log and listing are the request log. Ten of each are cheap; ``make full`` makes 200.
"""

import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import repeat
from pathlib import Path
from typing import Any

import orjson
import psutil
import pytest

from serverless_bench.base.errors import INTERRUPTED
from serverless_bench.driver import stopping
from serverless_bench.features.audit.sources import read_request_log
from serverless_bench.features.loopback.server import LoopbackServer, serving
from serverless_bench.features.loopback.state import LoopbackSettings
from serverless_bench.rundir.run import Run, load_run
from tests.commands.command import Apart, Sbench
from tests.commands.processes import PATIENCE_S, Family, until
from tests.stores.faulty import Exchange, FaultServer, works
from tests.stores.servers import KEYS

SIZE = ("--size", "20kB")
JOBS: dict[str, tuple[str | int, ...]] = {
    "write": ("write", *SIZE, "--objects", 3000, "--number", 6, "--concurrency", 2),
    "lasting write": ("write", *SIZE, "--objects", 5, "--number", 2, "--duration", "60s"),
    "parts": ("write", "--size", "12MB", "--part-size", "5MiB", "--objects", 50, "--number", 2),
    "mixed": ("mixed", *SIZE, "--number", 2, "--duration", "60s", "--threads", 3),
    "paced": ("mixed", *SIZE, "--number", 2, "--duration", "60s", "--rate", 100),
    "conditional": ("conditional", "--number", 2, "--operations", 5000),
    "shuffle": ("shuffle", "--mappers", 9, "--reducers", 20, "--size", "30MB", "--poll", "0.05s"),
    "barrier": ("write", *SIZE, "--objects", 3000, "--number", 2, "--barrier", 1),
}
SIGNALS = {
    signal.SIGINT: "Ctrl-C",
    signal.SIGTERM: "SIGTERM",
    signal.SIGHUP: "SIGHUP",
}


SEEDS = [pytest.param(seed, marks=() if seed < 10 else pytest.mark.full) for seed in range(200)]


def where(server: LoopbackServer) -> tuple[str, ...]:
    return ("--endpoint-url", server.endpoint_url, "--bucket", "any", "--name", "r")


def requests(server: LoopbackServer) -> int:
    return sum(server.state.statistics()["requests"].values())


@contextmanager
def once(condition: Callable[[], bool], number: signal.Signals) -> Iterator[None]:
    """Signal this process when the condition is true."""

    def send() -> None:
        until(lambda: over.is_set() or condition())
        if not over.is_set():
            os.kill(os.getpid(), number)

    over = threading.Event()
    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def records_of(run: Run) -> list[dict[str, Any]]:
    """Return the whole records of a run; the last line may be incomplete."""
    *lines, _ = (run.path / "records.jsonl").read_bytes().split(b"\n")
    return [data["record"] for line in lines if "record" in (data := orjson.loads(line))]


def acknowledged(run: Run, request_log: Path) -> Iterator[tuple[str, int, int]]:
    """Yield requests with their good answers: as the store saw them, and in the records."""
    # What the barrier needs is in the ledger, but is no operation.
    keys = {key for key in run.ledger() if "/barrier/" not in key}
    seen = Counter(r.operation for r in read_request_log(request_log) if r.key in keys and r.ok)
    counted = Counter[str]()
    for record in records_of(run):
        rows = record["attempts"]
        counted.update(r for r, e in zip(rows["request"], rows["error"], strict=True) if e is None)
    for request in ("put", "upload_part", "get"):
        yield request, seen[request], counted[request]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_report_after_a_signal_counts_what_the_store_has_seen(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    name = [*JOBS][seed % len(JOBS)]
    number = rng.choice([*SIGNALS])
    executor = rng.choice(["local", "local", "inline"])
    count, request_log = rng.randint(20, 120), tmp_path / "request_log"
    sbench = Sbench(tmp_path, KEYS)
    with (
        serving(LoopbackSettings(request_log=request_log)) as server,
        once(lambda: requests(server) >= count, number),
    ):
        command = (*JOBS[name], *where(server), "--executor", executor, "--format", "json")
        done = sbench(*command)
        server.state.request_log.settle()
        run = load_run(tmp_path / "sbench-runs" / "r")
        counts = [*acknowledged(run, request_log)]
        existing = set(server.state.objects.page("any", "", "", 10**6)[0])
    assert "Traceback" not in done.err
    assert done.code == INTERRUPTED, done.err
    assert done.json["stopped"]["by"] == SIGNALS[number]
    assert run.stopped is not None
    assert run.ended
    concurrency = run.job.max_concurrency * run.job.load.threads
    for request, seen, counted in counts:
        assert 0 <= seen - counted <= concurrency, (name, executor, request)
    assert existing <= {*run.ledger()}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_kill_loses_no_record_and_no_key(tmp_path: Path, family: Family, seed: int) -> None:
    rng = random.Random(seed)
    name = [*JOBS][seed % len(JOBS)]
    sbench = Apart(tmp_path, {**KEYS, **family.mark})
    with serving(LoopbackSettings()) as server:
        process = sbench.start(*JOBS[name], *where(server), "--executor", "local")
        count = rng.randint(20, 120)
        until(lambda: requests(server) >= count)
        victims = family.members() if rng.random() < 0.3 else []
        process.kill()
        for victim in victims:
            # It may have ended with its driver.
            with suppress(psutil.NoSuchProcess):
                victim.kill()
        process.communicate()
        until(family.gone)
        existing = set(server.state.objects.page("any", "", "", 10**6)[0])
    run = load_run(tmp_path / "sbench-runs" / "r")
    assert existing <= {*run.ledger()}
    arrived = int((run.functions["end_ns"] > 0).sum())
    assert arrived == len(records_of(run))


def test_what_does_not_arrive_in_time_is_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = threading.Event()

    def answers(exchange: Exchange) -> bool:
        if exchange.method != "PUT":
            return works(exchange)
        stuck.set()
        exchange.over.wait(PATIENCE_S)
        return False

    # Then another signal of the same kind is sent.
    monkeypatch.setattr(stopping, "_GRACE_S", dict.fromkeys(SIGNALS, 0.5))
    with FaultServer(repeat(answers)) as server, once(stuck.is_set, signal.SIGTERM):
        place = ("--endpoint-url", server.endpoint_url, "--bucket", "any", "--name", "r")
        done = Sbench(tmp_path, KEYS)("write", *SIZE, "--number", 2, *place)
    assert done.code == INTERRUPTED, done.err
    assert "not known" in done.out
    assert "no bytes were moved" not in done.out
    assert load_run(tmp_path / "sbench-runs" / "r").stopped is not None
