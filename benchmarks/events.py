"""Launch and collect many events through a scripted Lambda host.

Prints the launch rate against the allowed one, requests per function, how late records
arrive, and the driver's memory when the last one has. Functions do nothing, so the figures
are those of the driver (and, on one machine, of the host that answers it).

    python -m benchmarks.events [--number N] [--functions F]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.common import make_parser
from serverless_bench import run_job, summarize
from serverless_bench.executors.aws_lambda import BURST, PER_S
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from serverless_bench.process import peak_rss_bytes
from serverless_bench.rundir.record import Outcome
from serverless_bench.stores.loopback.process import served
from serverless_bench.units import MIB

SMALLEST: Final = (20, 2)
"""Events and names."""


def parser() -> argparse.ArgumentParser:
    """Return what reads the command line."""
    made = make_parser(__doc__, number=10_000)
    made.add_argument("--functions", type=int, default=1, help="names that share the load")
    return made


def main() -> None:
    """Start a store and a host, and measure in a process of its own."""
    asked = parser().parse_args()
    if asked.smallest:
        asked.number, asked.functions = SMALLEST
    names = [f"f{i}" for i in range(asked.functions)]
    inside = [sys.executable, "-m", "benchmarks.events", "--one"]
    inside += [str(asked.number), str(asked.functions)]
    with tempfile.TemporaryDirectory() as scratch, served() as url:
        environment = {**os.environ, "AWS_ENDPOINT_URL_S3": url, "AWS_REGION": "us-east-1"}
        # The functions' own folder is not where this was started.
        environment["PYTHONPATH"] = str(Path(__file__).parents[1])
        host = [sys.executable, "-m", "serverless_bench", "lambda-host", "--scripted"]
        host += [f"--function={name}" for name in names]
        host += ["--concurrency", "5000", "--", *inside]
        subprocess.run(host, cwd=scratch, env=environment, check=True)


def measure(number: int, functions: int) -> dict[str, float | int | None]:
    """Return the figures of one size."""
    target = Target(bucket="any", endpoint_url=os.environ["AWS_ENDPOINT_URL_S3"])
    job = JobSpec(
        workload="noop",
        target=target,
        executor="lambda",
        invocations=number,
        concurrency=number,
        functions=tuple(f"f{i}" for i in range(functions)),
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
        found = summarize(run).deliveries
    submitted = run.functions["submitted_ns"]
    allowed_s = max(0.0, (number - BURST * functions) / (PER_S * functions))
    took_s = float(submitted.max() - submitted.min()) / 1e9
    return {
        "number": number,
        "ok": int((run.functions["status"] == "ok").sum()),
        "launched_in_s": took_s,
        "allowed_in_s": allowed_s,
        "launch_rate_share": allowed_s / took_s,
        "requests_per_function": found.requests_per_function if found else None,
        "lag_p50_s": found.lag_s["p50"] if found and found.lag_s else None,
        "lag_p99_s": found.lag_s["p99"] if found and found.lag_s else None,
        "driver_rss_mib": rss / MIB,
        "driver_rss_with_report_mib": peak_rss_bytes() / MIB,
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(int(sys.argv[2]), int(sys.argv[3]))))
    else:
        main()
