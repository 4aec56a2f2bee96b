"""Memory and numbers: the small versions always, the promised ones with `make full`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from serverless_bench.base.clock import monotonic_ns
from tests.commands.command import COMMAND, Apart, Sbench
from tests.commands.processes import PATIENCE_S, Family, until
from tests.house.members import uses

MIB = 1 << 20
LIMIT = 200 * MIB


LAUNCH = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""
"""Print the size of a command's largest process. The command runs in a process of its own, because
a child of pytest has pytest's own size as its peak (exec keeps it).
"""


def peak_rss(sbench: Sbench, *arguments: object) -> tuple[int, dict[str, object]]:
    """Return the largest resident set of the driver and its workers, and the report."""
    done = subprocess.run(
        [sys.executable, "-c", LAUNCH, *COMMAND, *map(str, arguments), "--format", "json"],
        cwd=sbench.directory,
        env={**os.environ, **sbench.environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    report, kib = done.stdout.splitlines()[-2:]
    return int(kib) * 1024, json.loads(report)


@pytest.mark.parametrize(
    "mb", [pytest.param(200, id="small"), pytest.param(2000, marks=pytest.mark.full, id="2 GB")]
)
@pytest.mark.parametrize("client", [pytest.param("boto3", marks=pytest.mark.full), "wire"])
def test_memory_does_not_grow_with_the_object(sbench: Sbench, client: str, mb: int) -> None:
    how = ("--client", client, "--number", 2)
    peak, written = peak_rss(sbench, "write", "--mb", mb, "--key-file", "k", "--name", "w", *how)
    assert written["bytes"] == 2 * mb * MIB
    assert peak < LIMIT
    peak, read = peak_rss(sbench, "read", "--key-file", "k", *how)
    assert read["verified_bytes"] == read["bytes"] == 2 * mb * MIB
    assert peak < LIMIT
    sbench("clean", "sbench-runs/w")


@uses("feature barrier")
@pytest.mark.parametrize(
    "number", [pytest.param(60, id="small"), pytest.param(1000, marks=pytest.mark.full, id="1000")]
)
def test_many_workers_are_alive_at_once(sbench: Sbench, number: int) -> None:
    family = Family()
    marked = Apart(sbench.directory, {**sbench.environment, **family.mark})
    began_ns = monotonic_ns()
    process = marked.start(
        *("write", "--number", str(number), "--concurrency", str(number), "--mb", "1"),
        *("--format", "json", "--name", "w"),
        # They wait for each other, and then work for long enough to be seen.
        *("--barrier", "1", "--barrier-timeout", str(PATIENCE_S), "--duration", "2"),
    )
    # Each worker is a process of its own, and all of them exist at this moment.
    until(lambda: len(family.workers()) == number)
    alive_s = (monotonic_ns() - began_ns) / 1e9
    memory = sum(pss(worker.pid) for worker in family.workers())
    peak = memory
    while process.poll() is None:
        peak = max(peak, sum(pss(worker.pid) for worker in family.workers()))
    out, _ = process.communicate(timeout=PATIENCE_S)
    report = json.loads(out.splitlines()[-1])
    print(f"{number} workers after {alive_s:.1f} s, {memory >> 20} MiB, then {peak >> 20} MiB")  # noqa: T201
    assert (report["ok"], report["workers"], report["cold_starts"]) == (number,) * 3
    assert peak < number * 10 * MIB
    marked("clean", "sbench-runs/w")


def pss(pid: int) -> int:
    """Return a process's memory, with its proportional part of shared memory."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return int(text.split("Pss:")[1].split()[0]) * 1024
