"""CPU time of a write, compared with another checkout: pairs, and their ratios.

    python -m benchmarks.acknowledged --against CHECKOUT [--rounds 200] [--client wire]

In each round a process of this checkout and two of the other one write a batch of objects, in an
order that rotates, each to the loopback store. The second process of the other checkout gives the
ratio of that checkout to itself, which shows the precision of a ratio. Intervals of medians are
by binomial ranks, 95 %.
"""

import argparse
import os
import statistics
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from scipy.stats import binom

from benchmarks.common import Helper, make_parser, rotated
from serverless_bench.base.units import KIB, MIB
from serverless_bench.clients import CLIENTS
from serverless_bench.features.loopback.process import served

BATCHES: Final = {4 * KIB: 400, MIB: 40, 64 * MIB: 2}
"""Objects of a batch, by their size."""
_WORK: Final = """
import sys
from benchmarks.common import cpu_s
from benchmarks.subjects.harness import harnessed
client, url, size = sys.argv[1:]
run = harnessed(client, url, int(size), 1)
for line in sys.stdin:
    before_s, number = cpu_s(), int(line)
    run("put", [""] * number)
    print((cpu_s() - before_s) / number, flush=True)
"""


def interval(ratios: Sequence[float]) -> str:
    """Return the median and its interval, by binomial ranks, 95 %."""
    ordered = sorted(ratios)
    low = max(0, int(binom.ppf(0.025, len(ordered), 0.5)) - 1)
    high = len(ordered) - 1 - low
    return f"{statistics.median(ordered):.3f} ({ordered[low]:.3f} to {ordered[high]:.3f})"


def row(checkouts: dict[str, Path], client: str, url: str, size: int, rounds: int) -> str:
    """Return the cells of one size."""
    words = ("-c", _WORK, client, url, size)
    writers = {name: Helper(path, *words) for name, path in checkouts.items()}
    core_s: dict[str, list[float]] = {name: [] for name in writers}
    with ExitStack() as stack:
        for writer in writers.values():
            stack.enter_context(writer.process)
            writer.begin(BATCHES[size])
            writer.end()
        for name in rotated(list(writers), rounds):
            writers[name].begin(BATCHES[size])
            core_s[name].append(writers[name].end())
    this, other, again = core_s.values()
    cells = (
        f"{size // KIB}",
        f"{rounds}",
        f"{statistics.median(other) * 1e3:.3f}",
        interval([a / b for a, b in zip(this, other, strict=True)]),
        interval([a / b for a, b in zip(again, other, strict=True)]),
    )
    return " | ".join(cells)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = make_parser(__doc__ or "", rounds=200)
    made.add_argument("--against", type=Path, default=Path.cwd(), help="the other checkout")
    made.add_argument("--client", choices=CLIENTS, default="wire")
    made.add_argument("--size", type=int, action="append", choices=BATCHES)
    return made


def main() -> None:
    """Make the table."""
    asked = parser().parse_args()
    os.environ |= {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    os.environ |= {"AWS_REGION": "us-east-1"}
    checkouts = {"this": Path.cwd(), "other": asked.against, "again": asked.against}
    sizes = asked.size or ([4 * KIB] if asked.smallest else BATCHES)
    print("| KiB | pairs | CPU-ms of the other | this / other | other / other |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    with served("--check", "none") as url:
        for size in sizes:
            rounds = 3 if asked.smallest else asked.rounds
            print(f"| {row(checkouts, asked.client, url, size, rounds)} |", flush=True)


if __name__ == "__main__":
    main()
