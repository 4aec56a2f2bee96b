"""CPU time of an object with `wire`, compared with a bare socket that moves the same bytes.

    python -m benchmarks.puts [--rounds 100] [--kind put] [--size BYTES] [--shape 8x1]
        [--store slow] [--client obstore] [--against CHECKOUT]

The *socket* generates or compares the keystream of an object piece by piece, signs its requests and
records nothing; *again* is a second such socket, which shows the precision of a ratio. *wire* is
the function of a local run, with the counters for the driver. `8x1` is eight processes with a
thread each. In each round each subject moves two batches in each shape, in an order that rotates;
its cost is the difference of the two by the difference of their numbers of objects, so starts do
not count. Ratios are taken within a round, with the 95 % interval of their median. *x 1x1* is the
ratio to the same subject in the shape of one process and one thread.

The stores: `serve` keeps nothing, `slow` reads 64 KiB at a time with pauses, `seaweedfs` is the
embedded store. `--against CHECKOUT` adds the function of another checkout as *other*.
"""

import argparse
import os
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from typing import Final

from benchmarks.acknowledged import interval
from benchmarks.common import Helper, make_parser, rotated
from benchmarks.subjects.draft import BUCKET, REGION
from benchmarks.subjects.slow import slowly_served
from serverless_bench.base.units import KIB, MIB
from serverless_bench.clients import CLIENTS
from serverless_bench.features.loopback.process import served
from serverless_bench.stores.embedded import embedded_store
from tests.stores.network import bundle_of, certificate
from tests.stores.servers import Server, with_bucket

BATCHES: Final = {4 * KIB: 400, 315 * KIB: 160, 64 * MIB: 4}
"""Objects by which the larger batch exceeds the smaller one, in all processes together."""
SHAPES: Final = {"1x1": (1, 1), "1x8": (1, 8), "8x1": (8, 1)}
"""Processes, and threads of each."""
_ROUNDS_OF_A_STORE: Final = 10
"""Rounds after which a new store is started: SeaweedFS keeps objects that were overwritten."""
STORES: Final = ("serve", "slow", "seaweedfs")
_WORK: Final = """
import sys
from functools import partial
from benchmarks.common import cpu_s
from benchmarks.subjects import bare, draft, harness
from serverless_bench.job.keys import object_key
from serverless_bench.worker.board import board_type

subject, url, *numbers = sys.argv[1:]
process, size, threads = map(int, numbers)
if subject in ("socket", "again"):
    run = draft.pieced(url, size, threads)
elif subject in ("wire", "other"):
    board = board_type().here().writer()
    run = harness.harnessed("wire", url, size, threads, board)
else:
    run = bare.bare(subject, url, size, threads)
name = partial(object_key, prefix="sbench/", run_id="r", index=0, launch=0, size=size)
for line in sys.stdin:
    kind, number = line.split()
    keys = [name(number=at) for at in range(int(number))]
    before_s = cpu_s()
    run(kind, keys)
    print(cpu_s() - before_s, flush=True)
"""
COLUMNS: Final = (
    *("store", "operation", "KiB", "pairs", "subject", "shape"),
    *("CPU-ms", "x socket", "x 1x1", "x other"),
)
Subject = tuple[str, str]
"""What moves the objects, and in which shape."""


class Crowd:
    """The processes of a subject in one shape."""

    def __init__(
        self, stack: ExitStack, checkout: Path, subject: Subject, url: str, size: int
    ) -> None:
        self._processes, self._threads = SHAPES[subject[1]]
        self._more = max(BATCHES[size] // self._processes, self._threads)
        words = ("-c", _WORK, subject[0], url)
        self._helpers = [
            Helper(checkout, *words, number, size, self._threads)
            for number in range(self._processes)
        ]
        for helper in self._helpers:
            stack.enter_context(helper.process)

    def move(self, kind: str, number: int) -> float:
        """Let each process move so many objects, and return the core-seconds of all."""
        for helper in self._helpers:
            helper.begin(kind, number)
        return sum(helper.end() for helper in self._helpers)

    def cost(self, kind: str) -> float:
        """Return core-milliseconds of an object."""
        few = self.move(kind, self._threads)
        many = self.move(kind, self._threads + self._more)
        return (many - few) / (self._more * self._processes) * 1e3


@contextmanager
def store(name: str) -> Iterator[str]:
    """Run a store, and yield the URL."""
    with ExitStack() as stack:
        if name == "serve":
            yield stack.enter_context(served("--check", "none"))
        elif name == "slow":
            yield stack.enter_context(slowly_served())
        else:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            lease = stack.enter_context(embedded_store(folder))
            yield with_bucket(Server(lease.address.endpoint_url, BUCKET, {})).endpoint_url


def rows(
    kind: str, size: int, subjects: list[Subject], asked: argparse.Namespace, at: str
) -> Iterator[tuple[str, ...]]:
    """Yield the number of pairs, subject, shape, CPU time and ratios, with a store by name."""
    rounds = 3 if asked.smallest else asked.rounds
    found: dict[Subject, list[float]] = {subject: [] for subject in subjects}
    for done in range(0, rounds, _ROUNDS_OF_A_STORE):
        with ExitStack() as stack:
            url, crowds = stack.enter_context(store(at)), {}
            for subject in subjects:
                checkout = asked.against if subject[0] == "other" else Path.cwd()
                crowds[subject] = Crowd(stack, checkout, subject, url, size)
                # Warm, and the objects to read exist.
                crowds[subject].cost("put")
            for subject in rotated(subjects, min(_ROUNDS_OF_A_STORE, rounds - done)):
                found[subject].append(crowds[subject].cost(kind))
    for (name, shape), cost in found.items():
        ratios = (
            interval([a / b for a, b in zip(cost, found[base], strict=True)])
            if base in found and base != (name, shape)
            else ""
            for base in (("socket", shape), (name, "1x1"), ("other", shape))
        )
        yield f"{rounds}", name, shape, f"{statistics.median(cost):.3f}", *ratios


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = make_parser(__doc__ or "", rounds=100)
    made.add_argument("--kind", action="append", choices=("put", "get"))
    made.add_argument("--size", type=int, action="append", choices=BATCHES)
    made.add_argument("--shape", action="append", choices=SHAPES)
    made.add_argument("--store", action="append", choices=STORES)
    made.add_argument("--client", action="append", default=[], choices=CLIENTS, help="bare, beside")
    made.add_argument("--against", type=Path, help="another checkout")
    return made


def main() -> None:
    """Make the table."""
    asked = parser().parse_args()
    os.environ |= {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": REGION}
    names = ["wire", "socket", "again", *asked.client, *(["other"] if asked.against else [])]
    subjects = [(name, shape) for shape in asked.shape or SHAPES for name in names]
    print(f"| {' | '.join(COLUMNS)} |")
    print("| --- | --- | ---: | ---: | --- | --- |" + " ---: |" * 4, flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["AWS_CA_BUNDLE"] = str(bundle_of(certificate(Path(scratch))))
        sizes = asked.size or ([4 * KIB] if asked.smallest else BATCHES)
        for name, size, kind in product(asked.store or STORES, sizes, asked.kind or ("put", "get")):
            if (name, kind) == ("slow", "get"):
                continue
            for row in rows(kind, size, subjects, asked, name):
                cells = (name, kind, f"{size // KIB}", *row)
                print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
