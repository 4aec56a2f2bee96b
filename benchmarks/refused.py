"""Whether runs with 503s agree with simulations of them.

    python -m benchmarks.refused [--rounds 6]

Functions of this machine write 480 objects to ``sbench serve``, which admits 30 per second, and so
do simulated ones with its parameters. Each measured run has a seed of its own, as each simulation
has: a worker draws its waits from the seed, so runs with one seed are no sample. Takes three to
four minutes.
"""

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from benchmarks.common import make_parser, run_alone
from serverless_bench.base.units import KIB, format_rate, format_seconds
from serverless_bench.driver.run import run_job
from serverless_bench.features.cost.model import LOOPBACK
from serverless_bench.features.loopback.process import served
from serverless_bench.features.simulation.simulated_run import simulate
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from serverless_bench.metrics.summary import Summary, summarize

FUNCTIONS: Final = (10, 24, 64)
REQUESTS: Final = 480
PER_S: Final = 30
SIMULATED: Final = 39
"""Number of runs whose lowest and highest value enclose the next run in 95 of 100 cases."""
FIGURES: Final[Mapping[str, Callable[[Summary], float | None]]] = {
    "throughput_bytes_per_s": lambda summary: summary.throughput_bytes_per_s,
    "peak_1s_bytes_per_s": lambda summary: summary.peak_1s_bytes_per_s,
    "completion_s.p50": lambda summary: summary.completion_s["p50"],
    "completion_s.p99": lambda summary: summary.completion_s["p99"],
    "elapsed_s": lambda summary: summary.elapsed_s,
    "throttled": lambda summary: summary.attempt_stats.throttled,
}
FORMATS: Final[Mapping[str, Callable[[float], str]]] = {
    "throughput_bytes_per_s": format_rate,
    "peak_1s_bytes_per_s": format_rate,
    "throttled": "{:.0f}".format,
}
"""Formats of results; the rest are in seconds."""
_FLAGS: Final = ("--put-limit", str(PER_S), "--latency", "lognormal:30ms,0.3")
_MODEL: Final = replace(
    LOOPBACK, store=replace(LOOPBACK.store, put_per_s=float(PER_S), put_s=0.03, put_sigma=0.3)
)


def job(functions: int, requests: int, seed: int, url: str = "http://127.0.0.1:1") -> JobSpec:
    """Return a write of so many objects by so many functions."""
    return JobSpec(
        workload="write",
        target=Target(bucket="any", endpoint_url=url),
        number=functions,
        concurrency=functions,
        objects=max(1, requests // functions),
        size=64 * KIB,
        seed=seed,
    )


def summaries(rounds: int, run: Callable[[int, Path], Summary]) -> Iterator[Summary]:
    """Yield the results of runs with consecutive seeds."""
    for seed in range(rounds):
        with tempfile.TemporaryDirectory() as scratch:
            yield run(seed, Path(scratch) / "run")


def spreads(summaries: Sequence[Summary]) -> dict[str, dict[str, float]]:
    """Return lowest, median and highest of the results that all runs have."""
    ranges = {}
    for name, figure_of in FIGURES.items():
        values = [value for value in map(figure_of, summaries) if value is not None]
        if len(values) == len(summaries):
            middle = statistics.median(values)
            ranges[name] = {"low": min(values), "median": middle, "high": max(values)}
    return ranges


def measured(functions: int, requests: int, rounds: int) -> list[Summary]:
    """Return runs that happened."""

    def run(seed: int, directory: Path) -> Summary:
        with served(*_FLAGS) as url:
            return summarize(run_job(job(functions, requests, seed, url), directory))

    return [*summaries(rounds, run)]


def simulated(functions: int, requests: int, rounds: int) -> list[Summary]:
    """Return runs that did not."""

    def run(seed: int, directory: Path) -> Summary:
        return summarize(simulate(job(functions, requests, seed), directory, model=_MODEL))

    return [*summaries(rounds, run)]


def rows(functions: int, requests: int, rounds: int, simulations: int) -> list[dict[str, Any]]:
    """Return the figures of both, by name."""
    real = measured(functions, requests, rounds)
    made = spreads(simulated(functions, requests, simulations))
    single = [spreads([run]) for run in real]
    return [
        {
            "name": name,
            **made[name],
            "real": spread["median"],
            "inside": sum(
                made[name]["low"] <= run[name]["median"] <= made[name]["high"] for run in single
            ),
        }
        for name, spread in spreads(real).items()
    ]


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    return make_parser(__doc__, rounds=6)


def main() -> None:
    """Print the table."""
    asked = parser().parse_args()
    functions: tuple[int, ...] = FUNCTIONS
    requests, rounds, simulations = REQUESTS, asked.rounds, SIMULATED
    if asked.smallest:
        functions, requests, rounds, simulations = (2,), 4, 1, 2
    chance = (simulations - 1) / (simulations + 1)
    print(f"Of {rounds} runs each; a run lies in the range in {chance:.0%} of cases.\n")
    print("| functions | figure | measured | simulated | range | simulated / measured | in it |")
    print("| ---: | --- | ---: | ---: | --- | ---: | ---: |", flush=True)
    with ThreadPoolExecutor(len(functions)) as pool:
        # They wait for the store, nearly all the time.
        found = pool.map(
            lambda n: run_alone("benchmarks.refused", n, requests, rounds, simulations), functions
        )
        for number, figures in zip(functions, found, strict=True):
            for row in figures:
                shown = FORMATS.get(row["name"], format_seconds)
                low, middle, high, real = (
                    shown(row[name]) for name in ("low", "median", "high", "real")
                )
                ratio = row["median"] / row["real"] if row["real"] else 1.0
                print(
                    f"| {number} | {row['name']} | {real} | {middle} | {low} to {high} |"
                    f" {ratio:.2f} | {row['inside']} |",
                    flush=True,
                )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(rows(*map(int, sys.argv[2:]))))
    else:
        main()
