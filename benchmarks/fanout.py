"""Cost of a fan-out without the transfers: driver and workers, per function.

    python -m benchmarks.fanout [--numbers 180 1800 18000] [--executors inline local]

Invocations without operations go through each executor. The benchmark counts the CPU
time of the driver and its child processes, and the wall time, each divided by the number of
functions. Every cell runs in a process of its own. `lithops` starts at most a thousand, because it
takes a tenth of a core-second for each. `dask` has a cluster of its own, and claims and records in
a loopback store, which is not counted. ``benchmarks.events`` measures events to Lambda.
"""

import argparse
import json
import resource
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from benchmarks.common import cpu_s, make_parser, run_alone
from serverless_bench.base.clock import monotonic_ns
from serverless_bench.base.units import NS_PER_S
from serverless_bench.driver.run import run_job
from serverless_bench.executors import EXECUTORS
from serverless_bench.features.loopback.process import served
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from serverless_bench.metrics.summary import summarize

CONCURRENCY = 8
MOST = {"dask": 1_800, "lithops": 1_000}
"""Functions, where each costs many ms."""
SMALLEST = (2,)
HERE = [name for name in EXECUTORS if name not in {"lambda", "workers"}]
"""Lambda has ``benchmarks.events``; workers are started by somebody else."""


def one(executor: str, number: int, store: str) -> None:
    """Run one job in this process and print its cost; its records go to a store, if any."""
    job = JobSpec(
        name="fanout",
        workload="noop",
        target=Target(bucket="none", endpoint_url="http://127.0.0.1:1"),
        control=Target(bucket="any", prefix="control/", endpoint_url=store) if store else None,
        executor=executor,
        number=number,
        concurrency=1 if executor == "inline" else CONCURRENCY,
    )
    driver, began_ns = cpu_s(), monotonic_ns()
    with tempfile.TemporaryDirectory() as scratch:
        run = run_job(job, Path(scratch) / "run")
        summary = summarize(run)
    wall_s = (monotonic_ns() - began_ns) / NS_PER_S
    assert summary.ok == number
    print(
        json.dumps(
            {
                "driver": (cpu_s() - driver) / number * 1e3,
                "workers": cpu_s(resource.RUSAGE_CHILDREN) / number * 1e3,
                "wall": wall_s,
                "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
            }
        )
    )


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = make_parser(__doc__)
    made.add_argument("--numbers", type=int, nargs="+", default=[180, 1_800, 18_000])
    made.add_argument("--executors", nargs="+", choices=HERE, default=HERE)
    return made


def main() -> None:
    """Make the table."""
    asked = parser().parse_args()
    print("| executor | functions | driver ms | workers ms | together ms | wall s | driver MiB |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    with ExitStack() as stack:
        # It needs somewhere to leave its records.
        store = stack.enter_context(served()) if "dask" in asked.executors else ""
        table(asked, store)


def table(asked: argparse.Namespace, store: str) -> None:
    """Print the rows when they are complete."""
    for executor in asked.executors:
        asked_for = SMALLEST if asked.smallest else asked.numbers
        numbers = {min(n, MOST.get(executor, n)) for n in asked_for}
        for number in sorted(numbers):
            row = run_alone(
                "benchmarks.fanout", executor, number, store if executor == "dask" else ""
            )
            both = row["driver"] + row["workers"]
            print(
                f"| {executor} | {number} | {row['driver']:.2f} | {row['workers']:.2f} "
                f"| {both:.2f} | {row['wall']:.1f} | {row['rss']} |",
                flush=True,
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    else:
        main()
