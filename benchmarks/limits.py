"""Share of searches in which ``sbench limit`` reports an interval that contains the store's limit.

    python -m benchmarks.limits [--smallest]

First searches on calculated stores, then ten searches in sequence on loopback stores with such
limits: ten minutes on an idle machine. A store of 5,000 operations per second exceeds a machine
on which clients and store share two cores.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.common import make_parser
from serverless_bench.features.limit.tests.test_search import (
    SHAPES,
    WITH_A_LIMIT,
    WITHOUT,
    concluded,
)
from tests.stores.queues import Queue, Shares

_SBENCH = (sys.executable, "-m", "serverless_bench")
_SEARCHES = 200
_BLOCK_S = 1.5
_BUDGET_S = 26
_REAL = (
    *((Queue(per_s=200, servers=2, p99_s=0.05), "2:fixed:10ms"),) * 3,
    *((Queue(per_s=1000, servers=10, p99_s=0.05), "10:fixed:10ms"),) * 3,
    *((Queue(per_s=200, servers=1, p99_s=0.1, random=True), "1:exponential:5ms"),) * 4,
)


@contextmanager
def _store(queue: str) -> Iterator[str]:
    """Start a loopback store and yield its address."""
    command = (*_SBENCH, "serve", "--queue", queue)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()


def _real(queue: Queue, shape: str, seed: int, budget_s: int) -> str:
    arrivals = "poisson" if queue.random else "uniform"
    with tempfile.TemporaryDirectory() as folder, _store(shape) as url:
        done = subprocess.run(
            [
                *(*_SBENCH, "limit", "write", "--endpoint-url", url, "--bucket", "any"),
                *("--size", "1KiB", "--number", "2", "--threads", "24", "--objects", "24"),
                *("--p99", f"{queue.p99_s}s", "--arrivals", arrivals, "--seed", str(seed)),
                *("--lowest", "100", "--highest", "2000", "--block", f"{_BLOCK_S}s"),
                *("--budget", f"{budget_s}s", "--format", "json", "--run-dir", folder),
            ],
            env={**os.environ, "AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any"},
            capture_output=True,
            text=True,
            check=False,
        )
    found = json.loads(done.stdout.splitlines()[-1])
    truth = queue.limit_per_s
    low, high = found["low"] or 0, found["high"] or float("inf")
    hit = "yes" if low <= truth <= high else "no"
    ended = f"{found['ended']}, {found['blocks']}"
    return f"| {shape} | {truth:.1f} | {found['limit']} | {low} to {high} | {hit} | {ended} |"


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    return make_parser(__doc__ or "")


def main() -> None:
    """Print both tables."""
    smallest = parser().parse_args().smallest
    seeds, real, budget_s = (1, _REAL[:1], 2) if smallest else (_SEARCHES, _REAL, _BUDGET_S)
    print(
        "| store | truth in the interval | median half width | ended |\n| --- | --- | --- | --- |"
    )
    stores: dict[str, Queue | Shares] = {**SHAPES, **WITH_A_LIMIT, **WITHOUT}
    for name, store in stores.items():
        searches = [concluded(store, seed) for seed in range(seeds)]
        ended = Counter(limit.ended for _, limit in searches)
        known = " |"
        if (truth := store.limit_per_s) is not None:
            ends = [search.interval for search, _ in searches]
            hits = sum(low <= truth <= high for low, high in ends) / seeds
            width = sorted((high - low) / 2 / truth for low, high in ends)[seeds // 2]
            known = f"{hits:.1%} | {width:.1%}"
        counts = ", ".join(f"{word}: {count / seeds:.1%}" for word, count in ended.most_common())
        print(f"| {name} | {known} | {counts} |", flush=True)
    print("\n| --queue | truth | limit | interval | in it | ended, blocks |")
    print("| --- | --- | --- | --- | --- | --- |")
    for seed, (queue, shape) in enumerate(real):
        print(_real(queue, shape, seed, budget_s), flush=True)


if __name__ == "__main__":
    main()
