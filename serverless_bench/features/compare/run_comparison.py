"""Compare sets of runs: decide whether B is faster than A, slower, or the same.

Decide whether sets of runs are faster than a baseline. Pure: numbers in, verdicts out.

The unit of replication is the run: the functions of a run share the time, the quota and the
partition, so a thousand of them are a single piece of evidence. All computations use logarithms,
because relevant differences are ratios.
"""

from collections.abc import Collection, Iterable, Sequence
from math import inf, log1p
from os import PathLike
from os.path import commonpath
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
from msgspec import Struct, structs, to_builtins

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import format_count
from serverless_bench.features.compare.ratio import (
    UPPER,
    RatioEstimate,
    ratio_of_logs,
    runs_for_same,
    spread_factor,
    welch_ratio,
)
from serverless_bench.features.compare.samples import (
    Sample,
    blocks_of,
    check_comparable,
    interleaved,
    measured_run,
    more_is_better,
    run_directories,
    sample_of,
    what_differs,
)
from serverless_bench.features.compare.verdict import (
    ALPHA,
    MIN_BLOCKS,
    THRESHOLD,
    Interval,
    Verdict,
    holm,
)
from serverless_bench.metrics.display import Lined
from serverless_bench.rundir.listing import DEFAULT_ROOT
from serverless_bench.rundir.run import AnyRun, Run, as_run, load_run
from serverless_bench.rundir.tables import Floats

_FOR_SHAPE: Final = 1
"""Degrees of freedom subtracted because logarithms are not normally distributed. For uniform
distributions with a tenfold difference in spread, the false positive rate at six runs per side is
5.2 % with it, and 6.2 % without."""

PAIRS: Final = (
    "Student's t of pairs within blocks, on logarithms: assumes that the ratios of"
    " blocks are independent and not skewed"
)
SAMPLES: Final = (
    "Welch's t on logarithms: assumes that runs are independent, and"
    " that the sides differ in level and spread, not in shape"
)
"""Names and assumptions of the tests with and without blocks."""


class Evidence(Struct, frozen=True, kw_only=True):
    """Interval and tests on which a verdict is based."""

    interval: Interval
    """Two-sided interval at ``1 - ALPHA``."""
    p_different: float
    """p-value of "no difference", adjusted for all comparisons with the baseline (Holm)."""
    p_same: float
    """p-value of "the difference is at least the threshold", adjusted in the same way."""
    runs_needed: int
    """Runs per side needed for the verdict "same" in 9 of 10 comparisons of equal sides, assuming a
    spread at the upper 80 % limit of the estimate."""


class Comparison(Struct, frozen=True, kw_only=True):
    """Comparison of a side with the baseline; ratios are side / baseline."""

    verdict: Verdict
    ratio: float
    """Ratio of the geometric means."""
    evidence: Evidence | None
    """None if there are fewer than ``MIN_BLOCKS`` runs per side."""


def compared_sides(
    baseline: Sequence[float],
    others: Sequence[Sequence[float]],
    *,
    in_blocks: bool = False,
    threshold: float = THRESHOLD,
    more_is_better: bool = True,
) -> tuple[Comparison, ...]:
    """Compare sides with a baseline, using a number per run, as a family of tests.

    A side is faster or slower if "no difference" is rejected at ``ALPHA`` and the estimate exceeds
    the threshold. It is the same if two one-sided tests at ``ALPHA`` reject a difference of at
    least the threshold (Schuirmann 1987). With multiple sides, both are adjusted by Holm's
    procedure.

    Parameters
    ----------
    baseline, others
        Values of the same metric for each run, positive; in blocks, in the order of the blocks.
    in_blocks
        Whether each side ran once in every block.
    threshold
        Smallest relevant relative difference; with 0.05, 1/1.05 to 1.05 is "the same".
    more_is_better
        Whether a larger number is faster.

    Raises
    ------
    ValueError
        If a side is empty, or a number or the threshold is not positive.
    """
    if not threshold > 0:
        raise ValueError(f"the threshold must be positive, got {threshold}")
    for side in (baseline, *others):
        if not side or not 0 < min(side) <= max(side) < inf:
            raise ValueError("each side needs runs with positive values")
    first, *logs = (np.log(np.asarray(side, float)) for side in (baseline, *others))
    return judged(
        [(first, second) for second in logs],
        in_blocks=in_blocks,
        threshold=threshold,
        more_is_better=more_is_better,
    )


def judged(
    pairs: Sequence[tuple[Floats, Floats]],
    *,
    in_blocks: bool = False,
    threshold: float,
    more_is_better: bool,
) -> tuple[Comparison, ...]:
    """Compare the second of each pair with the first, as ``compared_sides`` does.

    Parameters
    ----------
    pairs
        Logarithms of the values of runs.
    in_blocks, threshold, more_is_better
        Same as those of ``compared_sides``.
    """
    ratios = [_ratio(first, second, in_blocks=in_blocks) for first, second in pairs]
    different = holm(dict(enumerate(ratio.p_different() for ratio in ratios)))
    same = holm(dict(enumerate(ratio.p_same(log1p(threshold)) for ratio in ratios)))
    comparisons = []
    for at, (ratio, (first, second)) in enumerate(zip(ratios, pairs, strict=True)):
        evidence = None
        interval = ratio.interval()
        if interval is not None:
            evidence = Evidence(
                interval=interval,
                p_different=different[at],
                p_same=same[at],
                runs_needed=_runs_needed(ratio, len(first), len(second), threshold),
            )
        gain = ratio.mean if more_is_better else -ratio.mean
        verdict = _verdict(gain, log1p(threshold), evidence)
        comparisons.append(Comparison(verdict=verdict, ratio=ratio.ratio, evidence=evidence))
    return tuple(comparisons)


def _ratio(first: Floats, second: Floats, *, in_blocks: bool) -> RatioEstimate:
    if min(len(first), len(second)) < MIN_BLOCKS:
        return RatioEstimate(mean=float(second.mean() - first.mean()), error=inf, freedom=0)
    ratio = ratio_of_logs(second - first) if in_blocks else welch_ratio(first, second)
    return structs.replace(ratio, freedom=ratio.freedom - _FOR_SHAPE)


def _verdict(gain: float, limit: float, evidence: Evidence | None) -> Verdict:
    """Return the verdict for a gain in the logarithm; positive is better."""
    if evidence is None:
        return Verdict.NOT_ENOUGH_RUNS
    if evidence.p_different <= ALPHA and abs(gain) > limit:
        return Verdict.FASTER if gain > 0 else Verdict.SLOWER
    return Verdict.SAME if evidence.p_same <= ALPHA else Verdict.UNDECIDED


def _runs_needed(ratio: RatioEstimate, first: int, second: int, threshold: float) -> int:
    variance = ratio.error**2 / (1 / first + 1 / second)
    upper = variance * spread_factor(ratio.freedom, UPPER) ** 2
    return max(MIN_BLOCKS, runs_for_same(upper, log1p(threshold)))


DEFAULT_METRIC: Final = "throughput_bytes_per_s"
LABELS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
Runs = AnyRun | Iterable[AnyRun]
"""A run, a directory of runs, or an iterable of either; names are those in ``sbench-runs``."""


class ComparedMetric(Struct, frozen=True, kw_only=True):
    """The metric of a comparison, and the difference that matters."""

    metric: str
    more_is_better: bool
    threshold: float

    def _terms(self, assumes: str) -> dict[str, Any]:
        """Return the fields with which the document of each comparison begins."""
        return {
            "metric": self.metric,
            "more_is_better": self.more_is_better,
            "threshold": self.threshold,
            "alpha": ALPHA,
            "compared": "ratio of geometric means",
            "assumes": assumes,
        }


class RunComparison(Lined, ComparedMetric, frozen=True, kw_only=True):
    """Result of ``compare``; ``print`` shows it like ``sbench compare``.

    Parameters
    ----------
    metric
        Metric of the JSON report that was compared, with a value per run.
    more_is_better
        Whether a larger value is faster.
    threshold
        Smallest relevant relative difference.
    sides
        Runs of each side, starting with the baseline.
    comparisons
        Comparisons of each other side with the baseline, in the order of the sides.

    Examples
    --------
    >>> found = sbench.compare(written, again)
    >>> [side["runs"] for side in found.to_json()["sides"]]
    [1, 1]
    """

    sides: tuple[Sample, ...]
    comparisons: tuple[Comparison, ...]

    @property
    def verdict(self) -> Verdict:
        """Verdict of the first comparison, which is the only comparison of two sides."""
        return self.comparisons[0].verdict

    def lines(self, style: str) -> list[str]:
        """Return the lines of ``sbench compare``; ``style`` is text or markdown."""
        from serverless_bench.features.compare.report import lines

        return lines(self, style)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document of ``sbench compare``; "Comparisons" has its fields."""
        values, blocks = [side.metric(self.metric) for side in self.sides], blocks_of(self.sides)
        return {
            **self._terms(PAIRS if blocks else SAMPLES),
            "blocks": blocks,
            "sides": [
                {
                    "label": side.label,
                    "directory": str(side.directory),
                    "runs": len(numbers),
                    "simulated": side.simulated,
                    "median": median(numbers),
                    "spread": spread(numbers),
                    "values": numbers,
                }
                for side, numbers in zip(self.sides, values, strict=True)
            ],
            "differing": what_differs(self.sides),
            "interleaved": interleaved(self.sides),
            "comparisons": [
                {"baseline": self.sides[0].label, "other": side.label, **to_builtins(result)}
                for side, result in zip(self.sides[1:], self.comparisons, strict=True)
            ],
        }


def compare(
    baseline: Runs,
    *others: Runs,
    metric: str = DEFAULT_METRIC,
    threshold: float = THRESHOLD,
    allow: Collection[str] = (),
) -> RunComparison:
    """Decide whether sets of runs are faster than a baseline, slower, or the same.

    Parameters
    ----------
    baseline, *others
        For each side a run, a directory that contains runs, or a list of those. A verdict needs
        at least six runs per side. Runs of ``ab`` are compared in blocks.
    metric
        Metric of the JSON report, such as ``ops_per_s`` or ``latency_s.p99``; or one of
        a kind of operation, such as ``get.ops_per_s`` or ``get.p99``.
    threshold
        Smallest relevant relative difference: 0.05 for 5 %.
    allow
        Settings that may differ between the sides although they change the work of the job.

    Returns
    -------
    RunComparison
        A verdict for each of ``others``; see "Comparisons" in the documentation,
        documents their guarantees.

    Raises
    ------
    UsageError
        If the metric is unknown, a run lacks it, or the sides cannot be compared.
    ArchiveError
        If a directory contains no run.

    Examples
    --------
    >>> found = sbench.compare(written, [again], threshold=0.1)
    >>> found.verdict.value
    'not enough runs'
    """
    sides = (baseline, *others)
    check_sides(sides, threshold)
    loaded = [_side(side, label) for side, label in zip(sides, LABELS, strict=False)]
    return compare_sides(loaded, metric=metric, threshold=threshold, allowed=allow)


def check_sides(sides: Sequence[object], threshold: float) -> None:
    """Reject a wrong number of sides, or a threshold that is no share.

    Raises
    ------
    UsageError
        If one of them is wrong.
    """
    if not 0 < threshold < 1:
        raise UsageError(f"threshold must be between 0 and 1, got {threshold:g}")
    if not 2 <= len(sides) <= len(LABELS):
        raise UsageError(
            f"{format_count(len(sides), 'side')} cannot be compared",
            hint="name the baseline first, then the runs to compare with it",
        )


def compare_sides(
    sides: Sequence[Sample], *, metric: str, threshold: float, allowed: Collection[str]
) -> RunComparison:
    """Compare every other side with the first.

    Raises
    ------
    UsageError
        If the metric is unknown, a run lacks it, or the sides cannot be compared.
    """
    better = more_is_better(metric)
    check_comparable(sides, allowed=allowed)
    baseline, *others = (side.metric(metric) for side in sides)
    return RunComparison(
        metric=metric,
        more_is_better=better,
        threshold=threshold,
        sides=tuple(sides),
        comparisons=compared_sides(
            baseline,
            others,
            in_blocks=blocks_of(sides) is not None,
            threshold=threshold,
            more_is_better=better,
        ),
    )


def spread(numbers: Sequence[float]) -> float | None:
    """Return the standard deviation of the logarithms, close to the relative deviation."""
    return float(np.log(numbers).std(ddof=1)) if len(numbers) > 1 else None


def load_runs(runs: Runs) -> list[Run]:
    """Return the runs of a path or an iterable, without the details of their attempts.

    Raises
    ------
    ArchiveError
        If a directory contains no run.
    """
    if isinstance(runs, str | PathLike):
        return [load_run(path, detail=False) for path in run_directories(_directory(runs))]
    if isinstance(runs, Iterable):
        return [run for item in runs for run in load_runs(item)]
    return [as_run(runs)]


def _directory(name: str | PathLike[str]) -> Path:
    """Return the directory with a path, or with a name in ``DEFAULT_ROOT``."""
    path, saved = Path(name), DEFAULT_ROOT / name
    return saved if saved.is_dir() and not path.exists() else path


def _side(runs: Runs, label: str) -> Sample:
    measured = [measured_run(run) for run in load_runs(runs)]
    if not measured:
        raise UsageError(f"side {label} has no runs")
    # The path of a single run, or the folder of all.
    paths = [run.path for run in measured]
    if len({path.is_absolute() for path in paths}) > 1:
        paths = [path.absolute() for path in paths]
    directory = _directory(runs) if isinstance(runs, str | PathLike) else Path(commonpath(paths))
    return sample_of(measured, label=label, directory=directory)
