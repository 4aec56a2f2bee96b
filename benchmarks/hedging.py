"""What hedged reads bring and cost, and that other reads are no slower for them.

    python -m benchmarks.hedging [--reads 4000] [--rounds 6] [--before CHECKOUT]

The first table is of a store that delays the first request for one key in a hundred by 300 ms, with
and without ``hedge``, in turns. The second is of reads of 4 KiB without it, by this checkout and by
an earlier one, in turns.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.common import cpu_s, make_parser
from serverless_bench.base.clock import EpochClock, monotonic_ns
from serverless_bench.clients import open_client
from serverless_bench.features.loopback.process import served
from serverless_bench.job.keys import object_key
from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.job.target import Target, Transfer
from serverless_bench.worker.operation import measure
from serverless_bench.worker.operation_context import OperationContext
from serverless_bench.worker.retry import Retrier

SIZE: Final = 4096
BATCH: Final = 200
DELAY_S: Final = 0.3
KEYS: Final = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}


def keys() -> Iterator[str]:
    """Yield keys without end."""
    number = 0
    while True:
        yield object_key(prefix="sbench/", run_id="r", index=0, launch=0, number=number, size=SIZE)
        number += 1


def is_late(key: str) -> bool:
    """Return whether a key is one in a hundred."""
    return zlib.crc32(key.encode()) % 100 == 0


def read_all(url: str, reads: int) -> dict[str, float]:
    """Return what a read of a small object takes, in microseconds: of time, and of CPU.

    It is the least of many batches: other processes only add to it.
    """
    transfer, clock, rng = Transfer(), EpochClock(), random.Random(1)
    client = open_client(Target(bucket="any", endpoint_url=url), transfer)
    key = next(keys())
    spec = OperationSpec(kind=OperationKind.GET, key=key, size=SIZE)
    times, costs = [], []
    for _ in range(-(-reads // BATCH)):
        took, before_s = [], cpu_s()
        for _ in range(BATCH):
            retrier = Retrier(client, 4, monotonic_ns() + 10**12, rng)
            start_ns = monotonic_ns()
            measure(OperationContext(spec, transfer, retrier), clock)
            took.append(monotonic_ns() - start_ns)
        times.append(statistics.median(took) / 1e3)
        costs.append((cpu_s() - before_s) / BATCH * 1e6)
    return {"p50": min(times), "cpu": min(costs)}


def compare(before: Path, reads: int, rounds: int) -> None:
    """Print what reads take by two checkouts."""
    found: dict[str, list[dict[str, float]]] = {"before": [], "after": []}
    here = Path(__file__).resolve()
    roots = {"before": before.resolve(), "after": here.parents[1]}
    with served("--check", "none") as url:
        for number in range(rounds):
            for side in list(roots) if number % 2 else reversed(roots):
                command = [sys.executable, str(here), "--one", url, "--reads", str(reads)]
                environment = {**os.environ, **KEYS, "PYTHONPATH": str(roots[side])}
                done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
                found[side].append(json.loads(done.stdout))
    print("\n| 4 KiB reads without hedge | least p50 us | least core-us |\n| --- | ---: | ---: |")
    for side, rows in found.items():
        p50, cpu = (min(row[name] for row in rows) for name in ("p50", "cpu"))
        print(f"| {side} | {p50:.1f} | {cpu:.1f} |")
    for name in ("p50", "cpu"):
        pairs = zip(found["after"], found["before"], strict=True)
        ratios = sorted(after[name] / before[name] for after, before in pairs)
        middle = statistics.median(ratios)
        print(f"{name} after/before: {middle:.3f}, from {ratios[0]:.3f} to {ratios[-1]:.3f}")


def cut_tail(reads: int, rounds: int) -> None:
    """Print the latencies of a store with late responses, by hedge."""
    from serverless_bench import JobSpec, run_job, summarize
    from tests.stores.delaying import delaying

    print("| hedge | p50 ms | p99 ms | max ms | requests | second | won |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    # A late read more than one in a hundred, so that the 99th percentile is one of them.
    late = reads // 100 + 1
    found = {True: late, False: reads - late}
    chosen = []
    for key in keys():
        if found[is_late(key)]:
            found[is_late(key)] -= 1
            chosen.append(key)
        if not any(found.values()):
            break
    os.environ |= KEYS
    with served("--check", "none") as url, tempfile.TemporaryDirectory() as directory:
        for number in range(rounds):
            for hedge in (None, 0.05, "p95"):
                with delaying(url, is_late, hold_s=DELAY_S) as proxy:
                    job = JobSpec(
                        workload="read",
                        target=Target(bucket="any", endpoint_url=proxy.endpoint_url),
                        executor="inline",
                        number=1,
                        objects=len(chosen),
                        options={"hedge": hedge},
                    )
                    path = Path(directory) / f"{number}-{hedge}"
                    summary = summarize(run_job(job, path, keys=chosen))
                (row,) = (one for one in summary.latencies.by_kind if one.size_class is None)
                assert row.latency is not None
                times = (row.latency.percentiles_s[name] * 1e3 for name in ("p50", "p99", "max"))
                cells = " | ".join(f"{value:.1f}" for value in times)
                second = summary.parts.get("hedging")
                counts = (second.hedges, second.won) if second else (0, 0)
                attempts = summary.attempt_stats.attempts
                print(f"| {hedge} | {cells} | {attempts} | {counts[0]} | {counts[1]} |")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = make_parser(__doc__, reads=4000, rounds=6)
    made.add_argument("--before", type=Path, help="checkout to compare with; this one by default")
    made.add_argument("--one", help=argparse.SUPPRESS)
    return made


def main() -> None:
    """Run both parts."""
    asked = parser().parse_args()
    if asked.one:
        print(json.dumps(read_all(asked.one, asked.reads)))
        return
    reads, rounds = (200, 1) if asked.smallest else (asked.reads, asked.rounds)
    cut_tail(min(reads, 999), 1 if asked.smallest else 2)
    compare(asked.before or Path(__file__).parents[1], reads, rounds)


if __name__ == "__main__":
    main()
