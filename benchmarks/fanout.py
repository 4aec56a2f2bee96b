"""What a fan-out costs beyond the transfers: driver and workers, per function.

    python -m benchmarks.fanout [--numbers 180 1800 18000] [--executors inline local]

Invocations without operations go through each executor; what is counted is the processor
time of the driver and of everything that it started, and the wall time, each divided by
the number of functions. Every cell runs in a process of its own. `lithops` starts at most
a thousand, because it takes a tenth of a core-second for each. Events to Lambda are
``benchmarks.events``.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from serverless_bench.analysis.summary import summarize
from serverless_bench.clock import monotonic_ns
from serverless_bench.driver.run import run_job
from serverless_bench.executors import EXECUTORS
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from serverless_bench.units import NS_PER_S

CONCURRENCY = 8
LITHOPS_MOST = 1_000
SMALLEST = (2,)
HERE = [name for name in EXECUTORS if name != "lambda"]
"""Lambda has ``benchmarks.events``."""


def cpu_s(who: int) -> float:
    """Return user and system time."""
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def one(executor: str, number: int) -> None:
    """Run one job in this process and print what it cost."""
    job = JobSpec(
        name="fanout",
        workload="noop",
        target=Target(bucket="none", endpoint_url="http://127.0.0.1:1"),
        executor=executor,
        invocations=number,
        concurrency=1 if executor == "inline" else CONCURRENCY,
    )
    driver, began_ns = cpu_s(resource.RUSAGE_SELF), monotonic_ns()
    with tempfile.TemporaryDirectory() as scratch:
        run = run_job(job, Path(scratch) / "run")
        summary = summarize(run)
    wall_s = (monotonic_ns() - began_ns) / NS_PER_S
    assert summary.ok == number
    print(
        json.dumps(
            {
                "driver": (cpu_s(resource.RUSAGE_SELF) - driver) / number * 1e3,
                "workers": cpu_s(resource.RUSAGE_CHILDREN) / number * 1e3,
                "wall": wall_s,
                "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
            }
        )
    )


def parser() -> argparse.ArgumentParser:
    """Return what reads the command line."""
    made = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    made.add_argument("--numbers", type=int, nargs="+", default=[180, 1_800, 18_000])
    made.add_argument("--executors", nargs="+", choices=HERE, default=HERE)
    made.add_argument("--smallest", action="store_true", help="as little as shows that it runs")
    return made


def main() -> None:
    """Make the table."""
    asked = parser().parse_args()
    print("| executor | functions | driver ms | workers ms | together ms | wall s | driver MiB |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    for executor in asked.executors:
        asked_for = SMALLEST if asked.smallest else asked.numbers
        numbers = {min(n, LITHOPS_MOST) if executor == "lithops" else n for n in asked_for}
        for number in sorted(numbers):
            command = [sys.executable, "-m", "benchmarks.fanout", "--one", executor, str(number)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            row = json.loads(done.stdout)
            both = row["driver"] + row["workers"]
            print(
                f"| {executor} | {number} | {row['driver']:.2f} | {row['workers']:.2f} "
                f"| {both:.2f} | {row['wall']:.1f} | {row['rss']} |",
                flush=True,
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2], int(sys.argv[3]))
    else:
        main()
