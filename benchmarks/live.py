"""Cost of the live view: CPU time with and without it, in interleaved pairs.

    python -m benchmarks.live [--rounds 6] [--pairs 200] [--seconds 8]

*Board* is a function that writes and reads objects of 4 KiB, with and without a live board, in
turns in one process: the cost for every operation, with or without a view. *View* and *line* are
the additional cost of whole commands, with workers, over a command without display: with the live
view on a terminal, and with a line every 5 s. They are relative to a run that keeps one CPU
busy; the measured run only makes 20 operations per second, because the variation of hundreds of
thousands of writes would hide the difference. Each round has every subject once, and differences
are taken within a round. The server is the loopback store, whose CPU time does not count.
"""

import argparse
import gc
import json
import os
import pty
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from benchmarks.common import cpu_s, make_parser, rotated, run_alone
from serverless_bench.features.live.board import LiveBoard
from serverless_bench.features.loopback.process import served
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.keys import object_key
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from serverless_bench.worker.invocation import run_invocation

SIZE: Final = 4096
OBJECTS: Final = 400
"""Objects of half a pair: some 30 ms of CPU time."""
WITHOUT: Final = "nothing"
SHOWN: Final[dict[str, Sequence[str]]] = {
    WITHOUT: ("--progress", "none"),
    "view": ("--progress", "bar"),
    "line": ("--progress", "plain"),
}
Ratios = dict[str, list[float]]


def board(url: str, objects: int, pairs: int) -> Ratios:
    """Return CPU time with a board over that without, of this process.

    Pairs are short and many, so that other load on the machine affects both halves equally.
    """
    target = Target(bucket="b", endpoint_url=url)
    keys = [
        object_key(prefix="sbench/", run_id="b", index=0, launch=0, number=n, size=SIZE)
        for n in range(objects)
    ]
    found: Ratios = {}
    # As in a worker, which has one board for all of its invocations.
    writer = LiveBoard.here().writer()
    for workload in ("write", "read"):
        read = keys if workload == "read" else ()
        job = JobSpec(
            workload=workload,
            target=target,
            number=1,
            objects=objects,
            size=None if read else SIZE,
        )
        (spec,) = invocation_specs(job, run_id="r", created_ns=1 << 62, keys=read)
        spent = defaultdict[str, list[float]](list)
        # The first round warms up.
        for way in ("", *rotated(("with", "without"), pairs)):
            gc.collect()
            before_s = cpu_s()
            assert run_invocation(spec, board=writer if way == "with" else None).ok
            spent[way].append(cpu_s() - before_s)
        both = zip(spent["with"], spent["without"], strict=True)
        found[f"board, {workload}"] = [one / other for one, other in both]
    return found


def command(shown: str, url: str, seconds: float) -> float:
    """Return the CPU time of a command and all that it starts, on a terminal."""
    ours, theirs = pty.openpty()
    reader = threading.Thread(target=_drain, args=(ours,))
    before_s = cpu_s(resource.RUSAGE_CHILDREN)
    words = ("write", "--endpoint-url", url, "--bucket", "b", "--executor", "local")
    how = ("--number", 2, "--rate", 20, "--duration", seconds, "--size", SIZE, "--format", "json")
    with tempfile.TemporaryDirectory() as folder:
        started = [sys.executable, "-m", "serverless_bench", *words, *how, *SHOWN[shown]]
        with subprocess.Popen(
            [*map(str, started)],
            cwd=folder,
            env={**os.environ, "TERM": "xterm-256color"},
            stdout=subprocess.DEVNULL,
            stderr=theirs,
        ) as process:
            os.close(theirs)
            reader.start()
        assert process.returncode == 0
    reader.join()
    os.close(ours)
    return cpu_s(resource.RUSAGE_CHILDREN) - before_s


def _drain(terminal: int) -> None:
    # A terminal with a closed other end raises this.
    with suppress(OSError):
        while os.read(terminal, 1 << 16):
            pass


def commands(url: str, seconds: float, rounds: int) -> Ratios:
    """Return the CPU time of a busy run with a display over one without.

    Busy means one CPU all the time; the display's time is added to that.
    """
    spent = defaultdict[str, list[float]](list)
    for shown in rotated(tuple(SHOWN), rounds):
        spent[shown].append(command(shown, url, seconds))
    return {
        shown: [
            1 + (one - other) / seconds for one, other in zip(times, spent[WITHOUT], strict=True)
        ]
        for shown, times in spent.items()
        if shown != WITHOUT
    }


def main(arguments: argparse.Namespace) -> None:
    """Print a table."""
    rounds, pairs, seconds = arguments.rounds, arguments.pairs, arguments.seconds
    if arguments.smallest:
        rounds, pairs, seconds = 1, 1, 0.2
    print("| subject | ratio | middle half | pairs |")
    print("| --- | ---: | ---: | ---: |")
    with served() as url:
        found: Ratios = run_alone("benchmarks.live", url, pairs)
        found |= commands(url, seconds, rounds)
    for subject, ratios in found.items():
        low, high = min(ratios), max(ratios)
        if len(ratios) > 1:
            low, _, high = statistics.quantiles(ratios, n=4)
        span = f"{low:.3f} to {high:.3f}"
        print(f"| {subject} | {statistics.median(ratios):.3f} | {span} | {len(ratios)} |")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = make_parser(__doc__ or "", rounds=6, pairs=200, seconds=8)
    made.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    return made


if __name__ == "__main__":
    asked = parser().parse_args()
    if asked.one:
        json.dump(board(asked.one[0], OBJECTS, int(asked.one[1])), sys.stdout)
    else:
        main(asked)
