"""Another user who only connects costs a server almost no time, and a run none."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from serverless_bench.base.clock import monotonic_ns
from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.loopback.server import LoopbackServer, serving
from serverless_bench.features.loopback.shaping import Shape
from serverless_bench.features.loopback.state import LoopbackSettings
from tests.clouds.lambda_hosts import NAME, running_host
from tests.commands.command import COMMAND, Sbench
from tests.commands.other_user import CROWD, Stranger
from tests.commands.processes import listening, until
from tests.stores.servers import KEYS

RUN_S = 2
SLOW = Shape(latency="fixed:200ms")
"""A long run with few requests, so that the server's load is not that of the run."""


@pytest.fixture
def store() -> Iterator[LoopbackServer]:
    with serving(LoopbackSettings(shape=SLOW)) as server:
        yield server


def started(files: int, directory: Path, *arguments: object) -> "subprocess.Popen[str]":
    """Start the command with so many open files allowed."""
    return subprocess.Popen(
        ["prlimit", f"--nofile={files}", *COMMAND, *map(str, arguments)],
        cwd=directory,
        env={**os.environ, **KEYS},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def write(url: str, *flags: object) -> list[str | int]:
    return [
        *("write", "--endpoint-url", url, "--bucket", "any", "--size", "1KiB", "--name", "w"),
        *("--number", 4, "--objects", 100, "--duration", RUN_S, "--format", "json"),
        *map(str, flags),
    ]


@contextmanager
def mostly_idle(pid: int) -> Iterator[None]:
    """Demand that a process takes less than a tenth of a CPU in the block."""
    process, before_ns = psutil.Process(pid), monotonic_ns()
    before = process.cpu_times()
    yield
    after, took_s = process.cpu_times(), (monotonic_ns() - before_ns) / NS_PER_S
    used_s = after.user + after.system - before.user - before.system
    assert used_s < took_s / 10, f"{used_s:.1f} s of CPU time in {took_s:.1f} s"


def test_a_crowd_costs_serve_neither_files_nor_time(tmp_path: Path, nobody: Stranger) -> None:
    server = started(256, tmp_path, "serve", "--latency", SLOW.latency)
    assert server.stdout is not None
    url = server.stdout.readline().split()[-1]
    try:
        with mostly_idle(server.pid):
            nobody.crowd(int(url.rpartition(":")[2]))
            done = Sbench(tmp_path, KEYS)(*write(url))
        assert (done.code, done.json["ok"]) == (0, 4), done.err
        until(lambda: nobody.turned_away() == CROWD)
    finally:
        server.terminate()
        server.communicate()


def test_a_crowd_costs_the_lambda_host_neither_files_nor_time(
    tmp_path: Path, store: LoopbackServer, nobody: Stranger
) -> None:
    with running_host(KEYS, ["--concurrency", 20], files=600) as host:
        ports = listening(host.pid)
        assert len(ports) == 2, "its own, and that of the Runtime API"
        flags = ("--executor", "lambda", "--function", NAME)
        with mostly_idle(host.pid):
            nobody.crowd(*ports)
            done = Sbench(tmp_path, {**KEYS, **host.environment})(
                *write(store.endpoint_url, *flags)
            )
        assert (done.code, done.json["ok"]) == (0, 4), done.err
        until(lambda: nobody.turned_away() == 2 * CROWD)
