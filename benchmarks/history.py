"""Rates of false alarms and of found losses of ``sbench history check``.

    python -m benchmarks.history [--series 1000] [--rounds 3] [--blocks 6]

First simulated: series of equal runs with correlated sessions and tails longer than normal ones,
and the same with a loss of 10 % in the last session; and blocks of runs in turns. Then real: a
store against itself, and against one that is 15 % slower, each limited far below the capacity of
this machine. Three rounds take three minutes.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import exp, log, sqrt
from statistics import fmean
from typing import Any, Final

import numpy as np

from benchmarks.common import make_parser
from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.compare.verdict import Verdict
from serverless_bench.features.history.judging import (
    DEFAULT_FIGURES,
    Finding,
    by_block,
    judge,
    of_recorded,
    overall,
)
from serverless_bench.features.history.recorded import RecordedRun

LOSS: Final = 0.1
SEED: Final = 20261123
DAY_NS: Final = 24 * 3600 * NS_PER_S
SBENCH: Final = [sys.executable, "-m", "serverless_bench"]
RATE: Final = 20
"""MiB/s of a connection to the faster store."""
SLOWER: Final = 17


@dataclass(frozen=True)
class Series:
    """Variation of equal runs in a simulated history. Spreads are those of logarithms."""

    sessions: int
    runs: int
    """Runs of each session."""
    session_spread: float
    run_spread: float
    correlation: float
    """Correlation of consecutive sessions."""

    def __str__(self) -> str:
        return (
            f"{self.sessions} | {self.runs} | {self.session_spread:.1%} | {self.run_spread:.1%}"
            f" | {self.correlation:g}"
        )

    def draw(
        self, rng: np.random.Generator, loss: float = 0.0
    ) -> tuple[list[RecordedRun], list[RecordedRun]]:
        """Return recorded runs, and those of one more session with the given loss."""
        recorded: list[RecordedRun] = []
        level, left = (
            self.session_spread * float(rng.standard_normal()),
            sqrt(1 - self.correlation**2),
        )
        for number in range(self.sessions + 1):
            # Student's t with 4 degrees of freedom has a variance of 2.
            shock = float(rng.standard_t(4)) / sqrt(2)
            level = self.correlation * level + left * self.session_spread * shock
            lost = log(1 - loss) if number == self.sessions else 0.0
            recorded += [
                _run(number, turn, level + lost, self.run_spread, rng) for turn in range(self.runs)
            ]
        return recorded[: -self.runs], recorded[-self.runs :]


SERIES: Final = (
    Series(6, 1, 0.03, 0.02, 0.3),
    Series(8, 2, 0.08, 0.05, 0.5),
    Series(12, 3, 0.02, 0.01, 0.3),
    Series(20, 3, 0.015, 0.02, 0.5),
    Series(30, 1, 0.05, 0.05, 0.7),
)
"""Quiet stores and restless ones, with few runs and with many."""
BLOCKS: Final = ((6, 0.02), (6, 0.03), (6, 0.06), (12, 0.06))
"""Number of blocks, and the spread of a run within one."""


def _run(
    session: int, turn: int, level: float, spread: float, rng: np.random.Generator
) -> RecordedRun:
    own = spread * float(rng.standard_normal())
    # The time of the last functions mostly follows the throughput.
    tail = 0.8 * own + 0.5 * spread * float(rng.standard_normal())
    # Objects of one size: their number follows the bytes.
    values = (1e8 * exp(level + own), 1e3 * exp(level + own), 10 * exp(-level - tail))
    figures = dict(zip(DEFAULT_FIGURES, values, strict=True))
    return recorded_run(session, turn, figures)


def recorded_run(session: int, turn: int, figures: dict[str, float]) -> RecordedRun:
    """Return a run of a session, a day after the previous session, a minute after its last run."""
    return RecordedRun(
        schema=1,
        run_id=f"{session}-{turn}",
        created_ns=session * DAY_NS + turn * 60 * NS_PER_S,
        key="simulated",
        job={},
        machine={},
        versions={},
        bytes=None,
        figures=figures,
    )


def turns(blocks: int, spread: float, rng: np.random.Generator, loss: float = 0.0) -> list[Finding]:
    """Judge simulated runs in turns, with larger differences of blocks than of sides."""
    block = 0.2 * rng.standard_normal(blocks)

    def side(level: float) -> dict[str, list[float]]:
        rates = np.exp(level + block + spread * rng.standard_t(4, blocks) / sqrt(2))
        times = 1 / rates * np.exp(0.3 * spread * rng.standard_normal(blocks))
        values = (rates.tolist(), (rates / 1e5).tolist(), times.tolist())
        return dict(zip(DEFAULT_FIGURES, values, strict=True))

    return judge(by_block(DEFAULT_FIGURES, side(0.0), side(log(1 - loss))), loss=LOSS)


def recorded(series: Series, rng: np.random.Generator, loss: float = 0.0) -> list[Finding]:
    """Judge a simulated history."""
    return judge(of_recorded(DEFAULT_FIGURES, *series.draw(rng, loss)), loss=LOSS)


def shares(
    check: Callable[[np.random.Generator, float], Sequence[Finding]], count: int
) -> dict[str, float]:
    """Return the shares of verdicts on equal and slower runs, and the stated power."""
    rng = np.random.default_rng(SEED)
    equal = [overall(check(rng, 0.0)) for _ in range(count)]
    slower = [check(rng, LOSS) for _ in range(count)]
    return {
        "false alarms": equal.count(Verdict.REGRESSED) / count,
        "passed": equal.count(Verdict.PASSED) / count,
        "found": fmean(each[0].verdict is Verdict.REGRESSED for each in slower),
        "stated": fmean(each[0].power for each in slower),
        "passed wrongly": fmean(overall(each) is Verdict.PASSED for each in slower),
    }


def simulate(count: int) -> None:
    """Print a row for each kind of series, and of blocks."""
    ends = "false alarms | passed | loss passed | loss found | stated |"
    print(f"| recorded sessions | runs each | spread of sessions | of runs | correlation | {ends}")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    for series in SERIES:
        print(f"| {series} |{_cells(shares(lambda rng, loss: recorded(series, rng, loss), count))}")  # noqa: B023
    print(f"\n| blocks | spread | {ends}\n| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for number, spread in BLOCKS:
        found = shares(lambda rng, loss: turns(number, spread, rng, loss), count)  # noqa: B023
        print(f"| {number} | {spread:.0%} |{_cells(found)}", flush=True)


def _cells(found: dict[str, float]) -> str:
    names = ("false alarms", "passed", "passed wrongly", "found", "stated")
    return "".join(f" {found[name]:.1%} |" for name in names)


@contextmanager
def store(rate: int) -> Iterator[str]:
    """Yield the endpoint of a loopback store with so many MiB/s for each connection."""
    command = [*SBENCH, "serve", "--connection-rate", f"{rate}MiB"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()
            process.communicate()


def check(old: str, new: str, blocks: int, mib: int) -> Any:
    """Return the verdict of a check of two stores."""
    write = f"{' '.join(SBENCH)} write --executor inline --bucket b --number 1 --size {mib}MiB"
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run(
            [
                *(
                    *SBENCH,
                    "history",
                    "check",
                    "--old",
                    f"{write} --endpoint-url {old}",
                    "--new",
                    f"{write} --endpoint-url {new}",
                ),
                *("--blocks", str(blocks), "--warm-up-blocks", "1" if blocks > 6 else "0"),
                *("--allow", "target.endpoint_url", "--format", "json", "--run-dir", scratch),
            ],
            env={**os.environ, "AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "not-a-secret"},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode in {0, 9, 10}, done.stderr
    return json.loads(done.stdout)


def measure(rounds: int, blocks: int, mib: int) -> None:
    """Print a row for each check of a store with itself, and with a slower one."""
    print("\n| new store | blocks | new / old | 95% interval | verdict |")
    print("| --- | ---: | ---: | --- | --- |", flush=True)
    with store(RATE) as fast, store(SLOWER) as slow:
        for _ in range(rounds):
            for name, new in (("the same", fast), (f"{1 - SLOWER / RATE:.0%} slower", slow)):
                found = check(fast, new, blocks, mib)
                one = found["figures"][0]
                low, high = one["interval"]
                print(
                    f"| {name} | {blocks} | {one['ratio']:.3f} | {low:.3f} to {high:.3f}"
                    f" | {found['verdict']} |",
                    flush=True,
                )


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    return make_parser(__doc__, series=1000, rounds=3, blocks=6)


def main() -> None:
    """Print the tables."""
    asked = parser().parse_args()
    mib = 24
    if asked.smallest:
        asked.series, asked.rounds, asked.blocks, mib = 3, 1, 6, 1
    simulate(asked.series)
    measure(asked.rounds, asked.blocks, mib)


if __name__ == "__main__":
    main()
