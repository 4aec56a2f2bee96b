"""Fit two scaling laws to throughput as a function of concurrency. Pure functions.

Gunther's universal scalability law models the loss due to contention and coherency:
X(N) = gamma N / (1 + alpha (N - 1) + beta N (N - 1)) (Gunther 2007, "Guerrilla Capacity Planning",
chapter 4). A shared link or quota has no effect until it is saturated, and then caps the
throughput: X(N) = min(gamma N, cap). Both are fitted by least squares on logarithms, because runs
differ by a percentage.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, inf
from typing import Final, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from serverless_bench.base.errors import UsageError
from serverless_bench.rundir.tables import Floats

REACH: Final = 2
"""Maximum extrapolation as a multiple of the largest measured number."""
MIN_NUMBERS: Final = 3
"""Minimum number of concurrency levels: the universal scalability law has three parameters."""
RESAMPLES: Final = 999
CONFIDENCE: Final = 0.95
_ROUNDING: Final = 1e-12
_STEPS: Final = 8
_LEAST: Final = 0.1
"""A single function is assumed to be at most ten times as fast as measured at any concurrency."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usl:
    """Gunther's universal scalability law."""

    per_function: float
    """gamma: throughput of a single function."""
    contention: float
    """alpha: share of the work in which functions wait for each other."""
    coherency: float
    """beta: cost of each pair of functions."""

    @classmethod
    def fit(cls, number: Floats, rate: Floats) -> Self:
        """Return the least-squares fit on logarithms.

        N / X is linear in the parameters, so each Gauss-Newton step on the logarithms is a
        non-negative least-squares problem with a unique solution (and yields exact zeros, which a
        general optimizer would only approach).
        """
        from scipy.optimize import nnls

        unit = float(np.max(rate / number))
        slowness = number * unit / rate
        terms = np.column_stack((np.ones_like(number), number - 1, number * (number - 1)))
        expected = slowness
        for _ in range(_STEPS):
            target = 1 + np.log(slowness / expected) - _LEAST / expected
            excess, _ = nnls(terms / expected[:, None], target)
            coefficients = excess + np.array([_LEAST, 0.0, 0.0])
            expected = terms @ coefficients
        alone, waiting, agreeing = (float(value) for value in coefficients)
        return cls(
            per_function=unit / alone, contention=waiting / alone, coherency=agreeing / alone
        )

    def at(self, number: Floats) -> Floats:
        """Return gamma N / (1 + alpha (N - 1) + beta N (N - 1))."""
        waiting = self.contention * (number - 1)
        agreeing = self.coherency * number * (number - 1)
        return np.asarray(self.per_function * number / (1 + waiting + agreeing))

    @property
    def knee(self) -> float:
        """Concurrency with the maximum throughput: sqrt((1 - alpha) / beta)."""
        if self.coherency <= 0:
            return inf
        return float(np.sqrt(max(0.0, 1 - self.contention) / self.coherency))


@dataclass(frozen=True, slots=True, kw_only=True)
class Capped:
    """Linear scaling up to a cap."""

    per_function: float
    """gamma: throughput of a function below the cap."""
    cap: float
    """Total throughput at the cap; infinite if no run reached it."""

    @classmethod
    def fit(cls, number: Floats, rate: Floats) -> Self:
        """Return the least-squares fit on logarithms.

        The solution is exact: for a given set of numbers below the knee, the logarithms of gamma
        and cap are means. The best split may have its knee on the wrong side of a number;
        then the best fit has its knee at this number.
        """
        log_number, y = np.log(number), np.log(rate)
        measured = np.unique(log_number)
        laws = [(float(np.mean(y - log_number)), inf)]
        for last in measured[:-1]:
            below = log_number <= last
            laws.append((float(np.mean((y - log_number)[below])), float(np.mean(y[~below]))))
            gamma = float(np.mean(y - np.minimum(log_number, last)))
            laws.append((gamma, gamma + float(last)))
        gammas, caps = np.array(laws).T
        expected = np.minimum(gammas[:, None] + log_number, caps[:, None])
        errors = np.sum((expected - y) ** 2, axis=1)
        # Prefer the linear law, unless another law is better by more than rounding errors.
        gamma, cap = laws[int(np.argmax(errors <= errors.min() + _ROUNDING))]
        return cls(per_function=exp(gamma), cap=exp(cap))

    def at(self, number: Floats) -> Floats:
        """Return min(gamma N, cap)."""
        return np.minimum(self.per_function * number, self.cap)

    @property
    def knee(self) -> float:
        """Concurrency at which the line reaches the cap."""
        return self.cap / self.per_function


L = TypeVar("L", Usl, Capped)
"""Throughput as a function of concurrency: ``fit`` returns the law that is closest to the given
rates, ``at`` returns the rates at given numbers (arrays of shape ``(runs,)``), and more functions
than ``knee`` do not increase throughput."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit(Generic[L]):
    """A fitted law and its accuracy."""

    law: L
    resampled: tuple[L, ...] = field(repr=False)
    """Laws fitted to bootstrap samples of the runs; empty if a number has a single run."""
    off: float | None
    """Typical relative error of a prediction: root mean square of leave-one-out errors over the
    numbers. None if too few numbers would remain."""

    def interval(self, read: Callable[[L], float]) -> tuple[float, float] | None:
        """Return the interval with ``CONFIDENCE`` of a value derived from the resampled laws."""
        if not self.resampled:
            return None
        values = np.sort([read(law) for law in self.resampled])
        cut = round((1 - CONFIDENCE) / 2 * len(values))
        return float(values[cut]), float(values[-1 - cut])


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingRow:
    """Measurements at a single concurrency level."""

    number: int
    runs: int
    median: float
    efficiency: float
    """Throughput per function relative to the smallest number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """Measurements and both fitted laws."""

    rows: tuple[ScalingRow, ...]
    usl: Fit[Usl]
    capped: Fit[Capped]

    @property
    def reach(self) -> int:
        """Largest number for which predictions are made."""
        return REACH * self.rows[-1].number

    @property
    def better(self) -> Fit[Usl] | Fit[Capped] | None:
        """Fit with the smaller prediction error; None if the errors are unknown."""
        if self.usl.off is None or self.capped.off is None:
            return None
        return self.usl if self.usl.off < self.capped.off else self.capped

    def check_reach(self, number: int) -> None:
        """Reject a number for which the laws make no prediction.

        Raises
        ------
        UsageError
            If it is below 1, or above ``REACH`` times the largest measured number.
        """
        if not 1 <= number <= self.reach:
            raise UsageError(
                f"{number} functions are out of reach: the largest measured number is"
                f" {self.rows[-1].number}, and predictions end at {REACH} times that",
                hint="measure more functions: --numbers",
            )


def fit_scaling(
    runs: Mapping[int, Sequence[float]], *, resamples: int = RESAMPLES, seed: int = 0
) -> Scaling:
    """Fit both laws to the throughput of runs, by concurrency.

    Parameters
    ----------
    runs
        Throughputs of the runs at each concurrency.
    resamples
        Number of bootstrap samples for the intervals.
    seed
        Seed of the bootstrap.

    Raises
    ------
    UsageError
        If there are fewer than ``MIN_NUMBERS`` different numbers.
    """
    if len(runs) < MIN_NUMBERS:
        raise UsageError(
            f"{len(runs)} different numbers of functions are too few to fit a scaling law",
            hint=f"measure at least {MIN_NUMBERS}, preferably 6: --numbers 1,3,10,30,100,300",
        )
    ordered = {number: runs[number] for number in sorted(runs)}
    number = np.repeat(np.array(list(ordered), float), [len(rates) for rates in ordered.values()])
    rate = np.concatenate([np.asarray(rates, float) for rates in ordered.values()])
    resampled = _draws(number, np.log(rate), resamples, seed)
    smallest, first = next(iter(ordered.items()))
    alone = float(np.median(first)) / smallest
    return Scaling(
        rows=tuple(
            ScalingRow(
                number=n,
                runs=len(rates),
                median=float(np.median(rates)),
                efficiency=float(np.median(rates)) / n / alone,
            )
            for n, rates in ordered.items()
        ),
        usl=_fitted(Usl, number, rate, resampled, parameters=3),
        capped=_fitted(Capped, number, rate, resampled, parameters=2),
    )


def _fitted(
    law: type[L], number: Floats, rate: Floats, resampled: Sequence[Floats], *, parameters: int
) -> Fit[L]:
    return Fit(
        law=law.fit(number, rate),
        resampled=tuple(law.fit(number, rates) for rates in resampled),
        off=_off(law, number, rate) if len(np.unique(number)) > parameters else None,
    )


def _off(law: type[L], number: Floats, rate: Floats) -> float:
    """Return the leave-one-out error; see ``Fit.off``."""
    squares = []
    for is_left_out in (number == left_out for left_out in np.unique(number)):
        expected = law.fit(number[~is_left_out], rate[~is_left_out]).at(number[is_left_out])
        squares.append((np.log(expected[0]) - np.mean(np.log(rate[is_left_out]))) ** 2)
    return float(np.expm1(np.sqrt(np.mean(squares))))


def _draws(number: Floats, y: Floats, resamples: int, seed: int) -> list[Floats]:
    """Return bootstrap samples of rates within each number; empty if a number has a single run.

    Deviations of r runs from their mean are too small by sqrt((r - 1) / r), which is 18 % for three
    runs, so they are scaled up (Davison and Hinkley 1997, section 2.3).
    """
    _, group, counts = np.unique(number, return_inverse=True, return_counts=True)
    if counts.min() < 2:
        return []
    means = np.bincount(group, weights=y) / counts
    deviations = (y - means[group]) * np.sqrt(counts / (counts - 1))[group]
    begins: NDArray[np.int64] = (np.cumsum(counts) - counts)[group]
    picks = begins + np.random.default_rng(seed).integers(counts[group], size=(resamples, len(y)))
    return list(np.exp(means[group] + deviations[picks]))


@dataclass(frozen=True, slots=True, kw_only=True)
class LawKnee:
    """Level above which throughput does not increase, by the better law of ``sbench scale``."""

    at: float | None
    """None if no level reached it, or if the better law is unknown."""
    law: str | None
    """``capped`` or ``usl``; None if unknown."""
    most_per_s: float
    """Operations per second at the best level."""


def knee_of_laws(rates: Mapping[int, Sequence[float]]) -> LawKnee | None:
    """Return the level above which throughput does not increase; None if there are too few levels.

    Parameters
    ----------
    rates
        Rates of the runs, by level.
    """
    if len(rates) < MIN_NUMBERS:
        return None
    scaling = fit_scaling(rates, resamples=0)
    better = scaling.better
    at = None if better is None else better.law.knee
    return LawKnee(
        at=None if at is None or not 0 < at <= REACH * max(rates) else at,
        law=None if better is None else ("capped" if better is scaling.capped else "usl"),
        most_per_s=max(row.median for row in scaling.rows),
    )
