"""Cost of a simulation, and its distance from measured runs.

    python -m benchmarks.simulate [--rounds 1] [--only cost|distance]

*Cost*: simulated writes of 1,000, 10,000 and 100,000 functions on AWS Lambda, each in a process
of its own. *Distance*: functions of this machine with a ``sbench serve`` whose limits are far below
the capacity of the machine, and the same job simulated with these limits as parameters. No
parameter was fitted to these runs. A cell is simulated over measured, the median of the rounds; of
simulations, the median of five seeds. Runs with 503s are random and have a benchmark of their own,
``benchmarks.refused``.
"""

import json
import resource
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from benchmarks.common import cpu_s, make_parser, run_alone
from serverless_bench.base.units import KIB, MIB
from serverless_bench.driver.run import run_job
from serverless_bench.features.cost.limits import CostConditions
from serverless_bench.features.cost.model import LOOPBACK
from serverless_bench.features.loopback.process import served
from serverless_bench.features.simulation.simulated_run import simulate
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from serverless_bench.metrics.summary import Summary, summarize

COSTS: Final = ((1_000, 64, 1), (10_000, 64, 1), (100_000, 64, 1), (100_000, 2000, 64))
"""Functions, MiB of an object, names of Lambda functions."""
FUNCTIONS: Final = (10, 24, 64)
SEEDS: Final = 5
"""Simulations of each job, of which the median counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A store with known limits, as flags of ``sbench serve`` and as a model."""

    flags: Sequence[str]
    function: Mapping[str, Any] = field(default_factory=dict)
    store: Mapping[str, Any] = field(default_factory=dict)
    job: Mapping[str, Any]


_LATENCY: Final = ("--latency", "lognormal:30ms,0.3")
_SLOW: Final = {"put_s": 0.03, "put_sigma": 0.3, "get_s": 0.03, "get_sigma": 0.3}
SHAPES: Final = {
    "network of each, with a burst": Shape(
        flags=("--function-rate", "0.5MiB", "--function-burst", "1MiB", *_LATENCY),
        function={"burst_bytes": 1.0 * MIB, "bytes_per_s": 0.5 * MIB},
        store=_SLOW,
        job={"size": 5 * MIB},
    ),
    "connections, latency": Shape(
        flags=("--connection-rate", "0.5MiB", *_LATENCY),
        function={
            "connection_put_bytes_per_s": 0.5 * MIB,
            "connection_get_bytes_per_s": 0.5 * MIB,
        },
        store=_SLOW,
        job={"size": 512 * KIB, "objects": 8},
    ),
}


def measured(
    functions: int, shape: Shape, scratch: Path, seeds: int
) -> Iterator[tuple[str, Summary, list[Summary]]]:
    """Yield the label, the measured run, and simulated ones."""
    model = replace(
        LOOPBACK,
        function=replace(LOOPBACK.function, **shape.function),
        store=replace(LOOPBACK.store, **shape.store),
    )

    def simulated(job: JobSpec, keys: Sequence[str] = ()) -> list[Summary]:
        return [
            summarize(
                simulate(
                    replace(job, seed=seed),
                    scratch / f"{job.workload}-{seed}",
                    model=model,
                    keys=keys,
                )
            )
            for seed in range(seeds)
        ]

    with served(*shape.flags) as url:
        target = Target(bucket="any", endpoint_url=url)
        concurrency = {"target": target, "number": functions, "concurrency": functions}
        given = {**shape.job, **concurrency}
        writing = JobSpec(workload="write", **given)
        written = run_job(writing, scratch / "w")
        yield "write", summarize(written), simulated(writing)
        reading = JobSpec(workload="read", **{**given, "size": None})
        keys = written.keys()
        read = summarize(run_job(reading, scratch / "r", keys=keys))
        yield "read", read, simulated(reading, keys)


def figures(summary: Summary) -> dict[str, float]:
    """Return the compared figures."""
    return {
        "whole": summary.throughput_bytes_per_s or 0.0,
        "peak": summary.peak_1s_bytes_per_s or 0.0,
        "p99": summary.completion_s["p99"] or 0.0,
    }


def median(all_figures: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return the median of each figure."""
    return {name: statistics.median(one[name] for one in all_figures) for name in all_figures[0]}


def distance(functions: Sequence[int], rounds: int, *, smallest: bool) -> None:
    """Print the table of simulated over measured runs."""
    print("| shape | functions | | measured MB/s | average | peak, 1 s | completion p99 |")
    print("| --- | ---: | --- | ---: | ---: | ---: | ---: |", flush=True)
    for name, given in SHAPES.items():
        shape = given
        if smallest:
            shape = replace(given, job={"size": 64 * KIB})
        for number in functions:
            found: dict[str, list[tuple[dict[str, float], dict[str, float]]]] = {}
            for _ in range(rounds):
                with tempfile.TemporaryDirectory() as scratch:
                    for what, real, made in measured(number, shape, Path(scratch), SEEDS):
                        for one in made:
                            # However long they took, both did the same work.
                            assert (one.ok, one.bytes) == (real.ok, real.bytes)
                        pair = (figures(real), median([*map(figures, made)]))
                        found.setdefault(what, []).append(pair)
            for what, pairs in found.items():
                rate = statistics.median(real["whole"] for real, _ in pairs) / 1e6
                cells = (ratio(pairs, figure) for figure in pairs[0][0])
                print(
                    f"| {name} | {number} | {what} | {rate:.1f} | {' | '.join(cells)} |",
                    flush=True,
                )


def ratio(pairs: Sequence[tuple[dict[str, float], dict[str, float]]], name: str) -> str:
    """Return the median of simulated over measured; empty without values."""
    found = [made[name] / real[name] for real, made in pairs if real[name] and made[name]]
    return f"{statistics.median(found):.2f}" if found else ""


def cost(functions: int, mib: int, names: int) -> dict[str, float]:
    """Return the cost of one simulation, and of its report, in this process."""
    job = JobSpec(
        workload="write",
        target=Target(bucket="simulated"),
        number=functions,
        concurrency=functions,
        size=mib * MIB,
    )
    with tempfile.TemporaryDirectory() as scratch:
        before_s = cpu_s()
        run = simulate(job, Path(scratch) / "run", deployed=CostConditions(names=names))
        simulated_s = cpu_s() - before_s
        summary = summarize(run)
        size = sum(file.stat().st_size for file in (Path(scratch) / "run").iterdir())
    assert summary.withheld == ()
    assert summary.bytes == functions * mib * MIB
    return {
        "simulate_s": simulated_s,
        "report_s": cpu_s() - before_s - simulated_s,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
        "disk_mib": size >> 20,
    }


def costs(cases: Sequence[tuple[int, int, int]]) -> None:
    """Print the table of the costs of simulations."""
    print("| functions | MiB each | names | simulate CPU-s | report CPU-s | peak MiB | MiB saved |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    for case in cases:
        found = run_alone("benchmarks.simulate", *case)
        print(
            f"| {' | '.join(map(str, case))} | {found['simulate_s']:.1f} |"
            f" {found['report_s']:.1f} | {found['peak_mib']} | {found['disk_mib']} |",
            flush=True,
        )


def parser() -> Any:
    """Return the parser of the command line."""
    made = make_parser(__doc__, rounds=1)
    made.add_argument("--only", choices=["cost", "distance"], help="one of the two tables")
    return made


def main() -> None:
    """Make the tables."""
    asked = parser().parse_args()
    if asked.only != "distance":
        costs([(10, 1, 1)] if asked.smallest else COSTS)
    if asked.only is None:
        print()
    if asked.only != "cost":
        functions = (2,) if asked.smallest else FUNCTIONS
        distance(functions, asked.rounds, smallest=asked.smallest)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(cost(*map(int, sys.argv[2:]))))
    else:
        main()
