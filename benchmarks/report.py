"""Cost of large runs: collecting their records in the driver, loading and reducing them.

    python -m benchmarks.report

Generated runs of 1,000, 10,000 and, with ``--largest``, 100,000 functions. Each function has 100
operations with 8-point curves and one attempt each. The driver's code for collecting records makes
the run, from the bytes that a worker sends. Every run is reported on in a process of its own, so
that its peak memory is its own; times are CPU time.
"""

import json
import resource
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from benchmarks.common import cpu_s, make_parser, run_alone
from serverless_bench.base.units import NS_PER_S
from serverless_bench.executors.base import RunProgress, read_record
from serverless_bench.features.live.view import RunView
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from serverless_bench.metrics.summary import summarize
from serverless_bench.rundir.archive import Archive
from serverless_bench.rundir.record import TABLES, Lost, Outcome
from serverless_bench.rundir.rows import to_columns
from serverless_bench.rundir.run import load_run

OPERATIONS, POINTS = 100, 8
FIRST_NS = 1_790_000_000 * NS_PER_S


def collect(path: Path, functions: int) -> float:
    """Make a run directory, and return the CPU time of the driver in seconds."""
    target = Target(bucket="generated", endpoint_url="http://generated")
    job = JobSpec(
        name="generated",
        workload="read",
        target=target,
        number=functions,
        concurrency=functions,
        objects=OPERATIONS,
    )
    header = {"run_id": "generated", "created_ns": 0, "job": job.to_json(), "provenance": {}}
    view = RunView(job, functions, RunProgress())
    spent_s = 0.0
    keys = [key for index in range(functions) for key in keys_of(index)]
    with Archive(path, header=header, keys=keys) as archive:
        for index, sent in enumerate(records(functions)):
            before_s = cpu_s()
            result = read_record(sent, index, 0)
            if isinstance(result, Lost):
                raise SystemExit(result.cause)
            outcome = Outcome(
                submitted_ns=FIRST_NS - 1, collected_ns=FIRST_NS + 3600 * NS_PER_S, result=result
            )
            archive.append(outcome)
            view.add(outcome)
            spent_s += cpu_s() - before_s
        archive.closing["probes"] = [[FIRST_NS - 1, FIRST_NS, FIRST_NS // NS_PER_S - 1]]
    return spent_s


def records(functions: int) -> Iterator[bytes]:
    """Yield the bytes that each worker sends, with random figures from a seed."""
    draw = np.random.default_rng(7)
    for index in range(functions):
        yield orjson.dumps(record(index, draw))


def keys_of(index: int) -> list[str]:
    """Return the keys that a function reads."""
    return [f"sbench/{index:016x}{number:016x}.8000000" for number in range(OPERATIONS)]


def record(index: int, draw: np.random.Generator) -> dict[str, Any]:
    """Return one function's record: 100 reads of 8 MB in sequence."""
    origin = FIRST_NS + int(draw.integers(20 * NS_PER_S))
    steps = draw.integers(5_000_000, 20_000_000, (OPERATIONS, POINTS))
    start = origin + np.concatenate(([0], np.cumsum(steps.sum(axis=1))[:-1]))
    end = start + steps.sum(axis=1)
    every, nothing, zeros = range(OPERATIONS), [None] * OPERATIONS, [0] * OPERATIONS
    return {
        **{name: to_columns(kind, ()) for name, kind in TABLES.items()},
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
            "key": keys_of(index),
            "size": [8_000_000] * OPERATIONS,
            "start_ns": start.tolist(),
            "end_ns": end.tolist(),
            "first_byte_ns": (start + 1_000_000).tolist(),
            "last_byte_sent_ns": nothing,
            "bytes": [8_000_000] * OPERATIONS,
            "verified_bytes": [8_000_000] * OPERATIONS,
            "bad_bytes": zeros,
            "bad_ranges": zeros,
            "payload_ns": draw.integers(800_000, 900_000, OPERATIONS).tolist(),
            "error": nothing,
            "warmup": [False] * OPERATIONS,
            "offset": zeros,
            "generation": zeros,
            "count": [1] * OPERATIONS,
            "intended_ns": nothing,
        },
        "attempts": {
            "operation": [*every],
            "request": ["get"] * OPERATIONS,
            "part": zeros,
            "number": zeros,
            "start_ns": start.tolist(),
            "end_ns": end.tolist(),
            "wait_ns": zeros,
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
    }


def measure(path: Path) -> dict[str, float]:
    """Return the cost of loading and reducing the run in this process."""
    before_s = cpu_s()
    run = load_run(path, detail=False)
    loaded_s = cpu_s()
    summary = summarize(run)
    reduced_s = cpu_s()
    assert summary.bytes == summary.ok * OPERATIONS * 8_000_000
    return {
        "load_s": loaded_s - before_s,
        "reduce_s": reduced_s - loaded_s,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
    }


def parser() -> Any:
    """Return the parser of the command line."""
    made = make_parser(__doc__)
    made.add_argument("--largest", action="store_true", help="and 100,000 functions, 6 GB")
    return made


def main() -> None:
    """Make the table."""
    flags = parser().parse_args()
    numbers = (10,) if flags.smallest else (1_000, 10_000, *(100_000,) * flags.largest)
    print("| functions | MiB on disk | collect µs per operation | load s | reduce s | peak MiB |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        for functions in numbers:
            path = Path(scratch) / str(functions)
            collect_us = collect(path, functions) / functions / OPERATIONS * 1e6
            found = run_alone("benchmarks.report", path)
            size = (path / "records.jsonl").stat().st_size >> 20
            print(
                f"| {functions} | {size} | {collect_us:.1f} | {found['load_s']:.2f} |"
                f" {found['reduce_s']:.2f} | {found['peak_mib']} |",
                flush=True,
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(Path(sys.argv[2]))))
    else:
        main()
