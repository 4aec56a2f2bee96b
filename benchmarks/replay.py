"""Replay a log against a loopback store, and compare its instants with those that the store saw.

    python -m benchmarks.replay [--seconds S] [--rate R]

Both logs are laid over each other at the median of each function; a request's error is how far its
instants are then apart. *Begin* is how far apart the functions are, which pass the barrier as they
see it open. *Late* is how long after its instant an operation began, by the run's records.
"""

import argparse
import hmac
import os
import random
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.common import make_parser
from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.audit.sources import read_request_log
from serverless_bench.features.loopback.process import served
from serverless_bench.rundir.run import load_run

COLUMNS: Final = (
    *("rate", "functions", "requests", "error p50", "error p99", "late p50", "late p99", "begin"),
)
_SECRET: Final = "a secret of this benchmark"
_OBJECTS: Final = 64


def parser() -> argparse.ArgumentParser:
    """Return what reads the command line."""
    made = make_parser(__doc__, seconds=60, functions=4)
    made.add_argument("--rate", type=int, action="append", help="requests per second; 50 and 400")
    return made


def main() -> None:
    """Make the table."""
    asked = parser().parse_args()
    seconds, functions = (1, 1) if asked.smallest else (asked.seconds, asked.functions)
    print(f"| {' | '.join(COLUMNS)} |")
    print(f"|{' ---: |' * len(COLUMNS)}", flush=True)
    for rate in asked.rate or ([50] if asked.smallest else [50, 400]):
        cells = measure(rate, functions, rate * seconds)
        print(f"| {' | '.join(cells)} |", flush=True)


def measure(rate: int, functions: int, count: int) -> tuple[str, ...]:
    """Return the cells of one row."""
    rng, at_ns = random.Random(rate), 1_700_000_000 * NS_PER_S
    rows, instants = ["time,op,key,size"], defaultdict(list)
    for number in range(count):
        at_ns += round(rng.expovariate(rate) * NS_PER_S)
        instants[str(number % _OBJECTS)].append(at_ns)
        # Every object is written first, so that nothing is prepared.
        kind = "put" if number < _OBJECTS or rng.random() < 0.2 else "get"
        rows.append(f"{at_ns / NS_PER_S:.9f},{kind},{number % _OBJECTS},4096")
    with tempfile.TemporaryDirectory() as scratch:
        folder, request_log = Path(scratch), Path(scratch, "requests.jsonl")
        (folder / "log.csv").write_text("\n".join(rows))
        (folder / "secret").write_text(_SECRET)
        command = [sys.executable, "-m", "serverless_bench", "replay", "log.csv", "--barrier", "1"]
        command += ["--secret-file", "secret"]
        command += ["--number", str(functions), "--concurrency", str(functions), "--threads", "4"]
        with served("--request-log", str(request_log)) as url:
            command += ["--endpoint-url", url, "--bucket", "any", "--name", "r"]
            environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
            subprocess.run(
                command, cwd=scratch, env=environment, check=True, stdout=subprocess.DEVNULL
            )
        operations = load_run(folder / "sbench-runs/r").operations
        seen = defaultdict(list)
        for request in read_request_log(request_log):
            seen[request.key.rpartition("/")[2].partition(".")[0]].append(request.head_ns)
    distances = [list[int]() for _ in range(functions)]
    for number, (key, at) in enumerate(instants.items()):
        name = hmac.digest(_SECRET.encode(), key.encode(), "sha256")[:16].hex()
        # Objects are dealt to the functions in the order in which the log has them.
        distances[number % functions] += [b - a for a, b in zip(at, seen[name], strict=True)]
    medians = [np.median(of_function) for of_function in distances]
    errors = np.concatenate(
        [np.abs(np.array(d) - median) for d, median in zip(distances, medians, strict=True)]
    )
    late = operations["start_ns"] - operations["intended_ns"]
    figures = [np.percentile(values, p) / 1e6 for values in (errors, late) for p in (50, 99)]
    figures.append((max(medians) - min(medians)) / 1e6)
    return (str(rate), str(functions), str(count), *(f"{figure:.2f} ms" for figure in figures))


if __name__ == "__main__":
    main()
