"""What a report costs: load and reduce generated runs of 1,000 and 10,000 functions.

    python -m benchmarks.report

Each function has 100 operations with 8-point curves and one attempt each. Every size runs in
a process of its own, so that its peak memory is its own.
"""

import json
import resource
import subprocess
import sys
import tempfile
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.common import make_parser
from serverless_bench.analysis.summary import summarize
from serverless_bench.clock import monotonic_ns
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from serverless_bench.rundir.run import SCHEMA, load_run
from serverless_bench.units import NS_PER_S

OPERATIONS, POINTS = 100, 8


def generate(path: Path, functions: int) -> None:
    """Write a run directory whose figures are drawn from a seed."""
    draw = np.random.default_rng(7)
    path.mkdir()
    target = Target(bucket="generated", endpoint_url="http://generated")
    job = JobSpec(
        name="generated", workload="read", target=target, invocations=functions, concurrency=1000
    )
    header = {
        "schema": SCHEMA,
        "run_id": "generated",
        "created_ns": 0,
        "job": asdict(job),
        "provenance": {},
    }
    (path / "run.json").write_text(json.dumps(header))
    with (path / "records.jsonl").open("w") as lines:
        for index in range(functions):
            lines.write(json.dumps(outcome(index, draw)) + "\n")
        probe = [1_790_000_000 * NS_PER_S - 1, 1_790_000_000 * NS_PER_S, 1_789_999_999]
        lines.write(json.dumps({"end": {"saved": True, "probes": [probe]}}) + "\n")


def outcome(index: int, draw: np.random.Generator) -> dict[str, object]:
    """Return one function's line: 100 reads of 8 MB, one after the other."""
    origin = 1_790_000_000 * NS_PER_S + int(draw.integers(20 * NS_PER_S))
    steps = draw.integers(5_000_000, 20_000_000, (OPERATIONS, POINTS))
    start = origin + np.concatenate(([0], np.cumsum(steps.sum(axis=1))[:-1]))
    end = start + steps.sum(axis=1)
    every, nothing = range(OPERATIONS), [None] * OPERATIONS
    keys = [f"sbench/{draw.bytes(16).hex()}.8000000" for _ in every]
    record = {
        "run_id": "generated",
        "index": index,
        "launch": 0,
        "worker_id": f"worker/{index}",
        "cold_start": True,
        "version": "0",
        "python": "3",
        "start_ns": int(start[0]),
        "end_ns": int(end[-1]),
        "wall_start_ns": int(start[0]),
        "wall_end_ns": int(end[-1]),
        "cpu_user_s": 0.1,
        "cpu_sys_s": 0.1,
        "max_rss_bytes": 50_000_000,
        "error": None,
        "run_wait_ns": 1_000_000,
        "cpus": 2,
        "generator_bytes_per_s": 9_000_000_000,
        "operations": {
            "index": [*every],
            "kind": ["get"] * OPERATIONS,
            "key": keys,
            "size": [8_000_000] * OPERATIONS,
            "start_ns": start.tolist(),
            "end_ns": end.tolist(),
            "first_byte_ns": (start + 1_000_000).tolist(),
            "last_byte_sent_ns": nothing,
            "bytes": [8_000_000] * OPERATIONS,
            "verified_bytes": [8_000_000] * OPERATIONS,
            "bad_bytes": [0] * OPERATIONS,
            "bad_ranges": [0] * OPERATIONS,
            "payload_ns": [900_000] * OPERATIONS,
            "error": nothing,
        },
        "attempts": {
            "operation": [*every],
            "request": ["get"] * OPERATIONS,
            "part": [0] * OPERATIONS,
            "number": [0] * OPERATIONS,
            "start_ns": start.tolist(),
            "end_ns": end.tolist(),
            "wait_ns": [0] * OPERATIONS,
            "status": [200] * OPERATIONS,
            "error": nothing,
            "detail": nothing,
            "request_id": [draw.bytes(8).hex() for _ in every],
            "host_id": [draw.bytes(38).hex() for _ in every],
            "remote": ["192.0.2.1:443"] * OPERATIONS,
            "reused": [True] * OPERATIONS,
            "bytes": [8_000_000] * OPERATIONS,
            "answered_ns": (start + 500_000).tolist(),
            "date_s": (start // NS_PER_S).tolist(),
        },
        "steps": {
            "operation": [i for i in every for _ in range(POINTS)],
            "step_ns": steps.ravel().tolist(),
            "step_bytes": [1_000_000] * (OPERATIONS * POINTS),
        },
        "bad_ranges": {
            name: []
            for name in (
                *("operation", "key", "offset", "length", "bad_bytes", "found"),
                *("found_key_hash", "found_generation", "found_offset"),
            )
        },
    }
    return {"submitted_ns": int(start[0]), "collected_ns": int(end[-1]), "record": record}


def measure(path: Path) -> None:
    """Print one row: what loading and reducing the run costs this process."""
    before_ns = monotonic_ns()
    run = load_run(path, detail=False)
    loaded_ns = monotonic_ns()
    summary = summarize(run)
    done_ns = monotonic_ns()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    load_s, reduce_s = (loaded_ns - before_ns) / NS_PER_S, (done_ns - loaded_ns) / NS_PER_S
    size = (path / "records.jsonl").stat().st_size >> 20
    print(f"| {summary.ok} | {size} | {load_s:.2f} | {reduce_s:.2f} | {peak} |")
    assert summary.bytes == summary.ok * OPERATIONS * 8_000_000


parser = partial(make_parser, __doc__)


def main() -> None:
    """Make the table."""
    numbers = (10,) if parser().parse_args().smallest else (1_000, 10_000)
    print("| functions | MiB on disk | load s | reduce s | peak MiB |")
    print("| ---: | ---: | ---: | ---: | ---: |", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        for functions in numbers:
            path = Path(scratch) / str(functions)
            generate(path, functions)
            command = [sys.executable, "-m", "benchmarks.report", "--one", str(path)]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        measure(Path(sys.argv[2]))
    else:
        main()
