"""Rates of false alarms for equal runs, and of found differences of 10 %, by simulation.

    python -m benchmarks.comparisons [--cases 2000]

The functions that decide for ``ab``, ``compare``, ``history check`` and studies get random
values with a known truth. Takes two minutes, and
prints the tables of serverless_bench/features/compare/README.md.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log, log1p, sqrt
from typing import Final

import numpy as np

from benchmarks.common import make_parser
from benchmarks.history import recorded_run
from serverless_bench.features.compare.ratio import paired_ratio, welch_ratio
from serverless_bench.features.compare.run_comparison import compared_sides
from serverless_bench.features.compare.runs import interleaved
from serverless_bench.features.compare.verdict import ALPHA, THRESHOLD, Verdict, holm
from serverless_bench.features.history.judging import judge, of_recorded
from serverless_bench.features.history.recorded import RecordedRun
from serverless_bench.rundir.tables import Floats

SEED: Final = 20261125
DIFFERENT: Final = frozenset({Verdict.FASTER, Verdict.SLOWER, Verdict.REGRESSED})

Law = Callable[[np.random.Generator, int], Floats]
"""Draws logarithms of so many runs, with a spread of about 1."""


def normal(rng: np.random.Generator, count: int) -> Floats:
    """Draw from the normal distribution."""
    return rng.standard_normal(count)


def skewed(rng: np.random.Generator, count: int) -> Floats:
    """Draw from an exponential distribution with its long tail on the slow side."""
    return -rng.exponential(1, count)


def heavy_tailed(rng: np.random.Generator, count: int) -> Floats:
    """Draw from Student's t with 3 degrees of freedom."""
    return np.asarray(rng.standard_t(3, count))


def bimodal(rng: np.random.Generator, count: int) -> Floats:
    """Draw from two narrow modes of equal weight."""
    return np.asarray(rng.choice([-1.0, 1.0], count) + 0.2 * rng.standard_normal(count))


def uniform(rng: np.random.Generator, count: int) -> Floats:
    """Draw from a uniform distribution."""
    return np.asarray(rng.uniform(-sqrt(3), sqrt(3), count))


def machines(rng: np.random.Generator, count: int) -> Floats:
    """Draw from two kinds of machine: 1 in 10 is 20 % slower, at a spread of 0.05."""
    slow = rng.random(count) < 0.1
    return np.asarray(np.where(slow, log(0.8) / 0.05, 0) + 0.2 * rng.standard_normal(count))


EQUAL: Final[Mapping[str, Law]] = {
    "skewed": skewed,
    "heavy-tailed": heavy_tailed,
    "bimodal": bimodal,
    "two kinds of machine": machines,
}
SYMMETRIC: Final[Mapping[str, Law]] = {
    "normal": normal,
    "heavy-tailed": heavy_tailed,
    "peaked (Laplace)": lambda rng, count: rng.laplace(0, sqrt(0.5), count),
    "uniform": uniform,
}
SIZES: Final = ((6, 6), (8, 8), (15, 15), (30, 30))
UNLIKE: Final = (*SIZES, (6, 24), (24, 6))
BLOCKS: Final = (6, 8, 12)
SESSIONS: Final = (6, 12, 30)


def remembering(rng: np.random.Generator, count: int, correlation: float) -> Floats:
    """Draw an autoregressive series of first order."""
    series = rng.standard_normal(count)
    for at in range(1, count):
        new = sqrt(1 - correlation**2) * series[at]
        series[at] = correlation * series[at - 1] + new
    return series


SERIES: Final[Mapping[str, Law]] = {
    "autocorrelated 0.5": lambda rng, count: remembering(rng, count, 0.5),
    "autocorrelated 0.9": lambda rng, count: 2 * remembering(rng, count, 0.9),
    "drifting": lambda rng, count: 0.5 * np.arange(count) + rng.standard_normal(count),
    "drifting ever faster": lambda rng, count: 0.05 * np.arange(count) ** 2 + normal(rng, count),
}
"""Logarithms of runs that follow each other."""


def unpaired(
    law: Law, sizes: tuple[int, int], spreads: tuple[float, float] = (0.1, 0.1), ratio: float = 1
) -> Callable[[np.random.Generator], bool]:
    """Return a function that draws two sides without blocks, and tells whether they differ."""

    def once(rng: np.random.Generator) -> bool:
        a, b = (spread * law(rng, size) for spread, size in zip(spreads, sizes, strict=True))
        return _different(a, b + log(ratio), in_blocks=False)

    return once


def paired(
    law: Law, blocks: int, spreads: tuple[float, float] = (0.1, 0.1), ratio: float = 1
) -> Callable[[np.random.Generator], bool]:
    """Return a function that draws runs in blocks, which differ by 20 %, and judges them."""

    def once(rng: np.random.Generator) -> bool:
        block = 0.2 * rng.standard_normal(blocks)
        a, b = (block + spread * law(rng, blocks) for spread in spreads)
        return _different(a, b + log(ratio), in_blocks=True)

    return once


def in_order(law: Law, blocks: int, cells: int = 2) -> Callable[[np.random.Generator], bool]:
    """Return a function that draws consecutive runs, in the order of ``ab`` or an experiment.

    With more than two cells, all are compared with the first as one family.
    """

    def once(rng: np.random.Generator) -> bool:
        turns = [*interleaved(range(cells), blocks, int(rng.integers(1 << 32)))]
        figures: list[dict[int, float]] = [{} for _ in range(cells)]
        for (number, cell), value in zip(turns, np.exp(0.1 * law(rng, len(turns))), strict=True):
            figures[cell][number] = float(value)
        if cells == 2:
            a, b = (np.log([side[n] for n in sorted(side)]) for side in figures)
            return _different(a, b, in_blocks=True)
        ratios = dict(enumerate(paired_ratio(figures[0], other) for other in figures[1:]))
        p = holm({n: 1.0 if one is None else one.p_different() for n, one in ratios.items()})
        return any(
            p[n] <= ALPHA and abs(one.mean) > log1p(THRESHOLD)
            for n, one in ratios.items()
            if one is not None
        )

    return once


def recorded(
    law: Law, sizes: Sequence[int], new: int = 1, spreads: tuple[float, float] = (0.05, 0.01)
) -> Callable[[np.random.Generator], bool]:
    """Return a function that draws equal runs, and tells whether the last session regressed.

    Parameters
    ----------
    law
        Distribution of the sessions.
    sizes, new
        Runs of each recorded session, and of the new one.
    spreads
        Spread of sessions, and of runs within one.
    """

    def once(rng: np.random.Generator) -> bool:
        levels = spreads[0] * law(rng, len(sizes) + 1)
        runs = [
            _run(session, turn, float(level + spreads[1] * rng.standard_normal()))
            for session, (level, count) in enumerate(zip(levels, (*sizes, new), strict=True))
            for turn in range(count)
        ]
        (finding,) = judge(of_recorded(["throughput_bytes_per_s"], runs[:-new], runs[-new:]))
        return finding.verdict is Verdict.REGRESSED

    return once


def _run(session: int, turn: int, level: float) -> RecordedRun:
    return recorded_run(session, turn, {"throughput_bytes_per_s": float(1e8 * np.exp(level))})


def _different(a: Floats, b: Floats, *, in_blocks: bool) -> bool:
    (found,) = compared_sides(np.exp(a).tolist(), [np.exp(b).tolist()], in_blocks=in_blocks)
    return found.verdict in DIFFERENT


def few_against_many(law: Law) -> Callable[[np.random.Generator], bool]:
    """Return a function that compares 4 runs with 16 of a tenth of the spread."""

    def once(rng: np.random.Generator) -> bool:
        ratio = welch_ratio(0.2 * law(rng, 4), 0.02 * law(rng, 16))
        return ratio.p_different() <= ALPHA and abs(ratio.mean) > log1p(THRESHOLD)

    return once


def unlike_shapes(sizes: tuple[int, int]) -> Callable[[np.random.Generator], bool]:
    """Return a function that draws a normal side and a skewed one, with the same mean logarithm."""

    def once(rng: np.random.Generator) -> bool:
        first, second = 0.1 * normal(rng, sizes[0]), 0.1 * (skewed(rng, sizes[1]) + 1)
        return _different(first, second, in_blocks=False)

    return once


@dataclass(frozen=True)
class Case:
    """One cell of a table."""

    command: str
    what: str
    size: str
    once: Callable[[np.random.Generator], bool]

    def share(self, count: int) -> float:
        """Return the share of so many cases that are called different."""
        rng = np.random.default_rng(SEED)
        return sum(self.once(rng) for _ in range(count)) / count

    def __str__(self) -> str:
        return f"{self.command}, {self.what}, {self.size}"


def equal_versions() -> Iterator[Case]:
    """Yield the cells of equal versions."""
    for name, law in EQUAL.items():
        for first, second in SIZES:
            words = f"{first}+{second}"
            yield Case("compare", name, words, unpaired(law, (first, second)))
        for blocks in BLOCKS:
            yield Case("ab", name, f"{blocks}", paired(law, blocks))
        for sessions in SESSIONS:
            once = recorded(law, [1] * sessions)
            yield Case("history", name, f"{sessions}", once)
    for name, law in SERIES.items():
        for blocks in BLOCKS:
            yield Case("ab", name, f"{blocks}", in_order(law, blocks))
            once = in_order(law, blocks, cells=5)
            yield Case("study", name, f"{blocks}", once)
    for sizes, new, spreads in UNLIKE_SESSIONS:
        what = f"sessions {spreads[0]:.1%}, runs {spreads[1]:.0%}"
        size = f"{len(sizes)}x{_numbers(sizes)}+{new}"
        yield Case("history", what, size, recorded(normal, sizes, new, spreads))


UNLIKE_SESSIONS: Final = (
    ([10] * 20, 1, (0.005, 0.1)),
    ([10] * 8, 1, (0.01, 0.08)),
    ([1, 3, 10] * 6, 1, (0.01, 0.05)),
    ([3] * 6, 1, (0.01, 0.05)),
    ([3] * 12, 10, (0.02, 0.05)),
)
"""Runs of each recorded session and of the new one, and the spreads."""


def _numbers(sizes: Sequence[int]) -> str:
    return "/".join(str(size) for size in dict.fromkeys(sizes))


def unlike_spreads() -> Iterator[Case]:
    """Yield the cells of sides whose spreads differ by a factor of ten."""
    for name, law in SYMMETRIC.items():
        for first, second in UNLIKE:
            once = unpaired(law, (first, second), (0.02, 0.2))
            yield Case("compare", name, f"{first}+{second}", once)
        for blocks in (*BLOCKS, 30):
            yield Case("ab", name, f"{blocks}", paired(law, blocks, (0.02, 0.2)))


def true_differences() -> Iterator[Case]:
    """Yield the cells of a true 10 % at a spread of 3 %."""
    spread = (0.03, 0.03)
    yield Case("compare", "normal", "8+8", unpaired(normal, (8, 8), spread, 1.1))
    yield Case("ab", "normal", "8", paired(normal, 8, spread, 1.1))


def shown() -> Iterator[Case]:
    """Yield the cells that are outside of the tests' assumptions."""
    for first, second in ((6, 6), (15, 15), (24, 6)):
        words = f"{first}+{second}"
        once = unlike_shapes((first, second))
        yield Case("compare", "unlike shapes: normal, skewed", words, once)
    for name in ("autocorrelated 0.5", "autocorrelated 0.9"):
        law = SERIES[name]
        yield Case("compare", f"{name}, without blocks", "8+8", unpaired(law, (8, 8)))
    for runs in (6, 8, 15):
        once = unpaired(bimodal, (runs, runs), (0.02, 0.2))
        yield Case("compare", "bimodal, ten times the spread", f"{runs}+{runs}", once)
    yield Case("Welch", "normal, ten times the spread", "4+16", few_against_many(normal))


TABLES: Final[Mapping[str, tuple[str, Callable[[], Iterator[Case]]]]] = {
    "Equal versions": ("called different", equal_versions),
    "Spreads that differ ten times": ("called different", unlike_spreads),
    "A true 10 % at a spread of 3 %": ("found", true_differences),
    "Beyond what the tests assume": ("called different", shown),
}


def bound(count: int) -> float:
    """Return 5 % and two standard errors of a share of so many cases."""
    return ALPHA + 2 * sqrt(ALPHA * (1 - ALPHA) / count)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    return make_parser(__doc__, cases=2000)


def main() -> None:
    """Print the tables."""
    asked = parser().parse_args()
    count = 5 if asked.smallest else asked.cases
    for title, (says, cases) in TABLES.items():
        rows: dict[tuple[str, str], list[str]] = {}
        for case in cases():
            share = f"{case.size}: {case.share(count):.1%}"
            rows.setdefault((case.command, case.what), []).append(share)
        print(f"\n{title}:\n\n| command | runs | {says} |\n| --- | --- | --- |")
        for (command, what), shares in rows.items():
            print(f"| `{command}` | {what} | {', '.join(shares)} |", flush=True)


if __name__ == "__main__":
    main()
