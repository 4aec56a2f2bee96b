"""Launch and collect many events through a scripted Lambda host.

Prints the launch rate against the allowed one, requests per function, the delay of records,
and the driver's memory at the end. Functions are empty, so the figures are those of the driver
(and, on one machine, of the host that answers it).

    python -m benchmarks.events [--number N] [--functions F]

*Names* are the Lambda functions that share the load: each may be launched at Lambda's rate.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.common import make_parser
from serverless_bench import run_job, summarize
from serverless_bench.base.process import peak_rss_bytes
from serverless_bench.base.units import MIB
from serverless_bench.features.aws_lambda.executor import BURST, PER_S
from serverless_bench.features.loopback.process import served
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from serverless_bench.rundir.record import Outcome

SMALLEST: Final = (20, 2)
"""Events and names."""
COLUMNS: Final = (
    *("events", "names", "ok", "launched in s", "allowed in s", "requests each"),
    *("record after s, p50", "p99", "driver MiB, last record", "with its report"),
)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = make_parser(__doc__, number=10_000)
    made.add_argument("--functions", type=int, action="append", help="names that share the load; 1")
    return made


def main() -> None:
    """Make the table."""
    asked = parser().parse_args()
    number, names = SMALLEST if asked.smallest else (asked.number, 1)
    print(f"| {' | '.join(COLUMNS)} |")
    print(f"|{' ---: |' * len(COLUMNS)}", flush=True)
    for functions in [names] if asked.smallest else asked.functions or [names]:
        apart(number, functions)


def apart(number: int, functions: int) -> None:
    """Start a store and a host, and measure in a process of its own, which prints a row."""
    names = [f"f{i}" for i in range(functions)]
    inside = [sys.executable, "-m", "benchmarks.events", "--one", str(number), str(functions)]
    with tempfile.TemporaryDirectory() as scratch, served() as url:
        environment = {**os.environ, "AWS_ENDPOINT_URL_S3": url, "AWS_REGION": "us-east-1"}
        # The functions' own folder is not where this was started.
        environment["PYTHONPATH"] = str(Path(__file__).parents[1])
        host = [sys.executable, "-m", "serverless_bench", "lambda-host", "--scripted"]
        host += [f"--function={name}" for name in names]
        host += ["--concurrency", "5000", "--", *inside]
        subprocess.run(host, cwd=scratch, env=environment, check=True)


def measure(number: int, functions: int) -> tuple[str, ...]:
    """Return the cells of one row."""
    target = Target(bucket="any", endpoint_url=os.environ["AWS_ENDPOINT_URL_S3"])
    job = JobSpec(
        workload="noop",
        target=target,
        executor="lambda",
        number=number,
        concurrency=number,
        options={"function": tuple(f"f{i}" for i in range(functions))},
        control=Target(bucket="any", endpoint_url=target.endpoint_url, prefix="control/"),
    )
    arrived = 0
    rss = 0

    def on_outcome(_: Outcome) -> None:
        nonlocal arrived, rss
        arrived += 1
        if arrived == number:
            rss = peak_rss_bytes()

    with tempfile.TemporaryDirectory() as scratch:
        run = run_job(job, Path(scratch) / "run", on_outcome=on_outcome)
        found = summarize(run).parts.get("deliveries")
    submitted = run.functions["submitted_ns"]
    allowed_s = max(0.0, (number - BURST * functions) / (PER_S * functions))
    took_s = float(submitted.max() - submitted.min()) / 1e9
    lag_s = found.lag_s if found and found.lag_s else {}
    each = found.requests_per_function if found else None
    return (
        str(number),
        str(functions),
        str(int((run.functions["status"] == "ok").sum())),
        f"{took_s:.2f}",
        f"{allowed_s:.2f}",
        "" if each is None else f"{each:.2f}",
        *("" if (lag := lag_s.get(at)) is None else f"{lag:.2f}" for at in ("p50", "p99")),
        f"{rss / MIB:.1f}",
        f"{peak_rss_bytes() / MIB:.1f}",
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(f"| {' | '.join(measure(int(sys.argv[2]), int(sys.argv[3])))} |", flush=True)
    else:
        main()
