"""Throughput against the number of functions at once: two laws, fitted. Pure.

Gunther's universal scalability law says what waiting for each other and agreeing with each
other take away: X(N) = gamma N / (1 + alpha (N - 1) + beta N (N - 1)) (Gunther 2007,
"Guerrilla Capacity Planning", chapter 4). A shared link or quota takes nothing away until
it is full, and then all that goes beyond: X(N) = min(gamma N, cap). Both are
fitted by least squares on logarithms, because runs differ by so many percent.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, inf
from typing import Final, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from serverless_bench.errors import UsageError
from serverless_bench.rundir.tables import Floats

REACH: Final = 2
"""Nothing is said about more than this times the largest number measured."""
MIN_NUMBERS: Final = 3
"""Different numbers of functions: the universal scalability law has three parameters."""
RESAMPLES: Final = 999
CONFIDENCE: Final = 0.95
_ROUNDING: Final = 1e-12
_STEPS: Final = 8
_LEAST: Final = 0.1
"""One function alone is at most ten times as fast as any that was measured among others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usl:
    """Gunther's universal scalability law."""

    per_function: float
    """gamma: throughput of one function alone."""
    contention: float
    """alpha: the share of the work in which functions wait for one another."""
    coherency: float
    """beta: what every pair of functions costs."""

    @classmethod
    def fit(cls, number: Floats, rate: Floats) -> Self:
        """Return the law of least squares on logarithms.

        N / X is linear in the parameters, so that each Gauss-Newton step on the logarithms
        is a least-squares problem with parameters from zero up, which has one solution
        (and finds a zero, where a general optimiser stops short of it).
        """
        from scipy.optimize import nnls  # noqa: PLC0415 - an extra, and slow to load

        unit = float(np.max(rate / number))
        slowness = number * unit / rate
        terms = np.column_stack((np.ones_like(number), number - 1, number * (number - 1)))
        expected = slowness
        for _ in range(_STEPS):
            wanted = 1 + np.log(slowness / expected) - _LEAST / expected
            above, _ = nnls(terms / expected[:, None], wanted)
            found = above + np.array([_LEAST, 0.0, 0.0])
            expected = terms @ found
        alone, waiting, agreeing = (float(value) for value in found)
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
        """Where the maximum is: sqrt((1 - alpha) / beta)."""
        if self.coherency <= 0:
            return inf
        return float(np.sqrt(max(0.0, 1 - self.contention) / self.coherency))


@dataclass(frozen=True, slots=True, kw_only=True)
class Capped:
    """Linear up to a cap."""

    per_function: float
    """gamma: throughput of one function, as long as all of them fit."""
    cap: float
    """Throughput of everybody together; infinite if the runs have not met it."""

    @classmethod
    def fit(cls, number: Floats, rate: Floats) -> Self:
        """Return the law of least squares on logarithms.

        It is exact: once it is known which numbers are below the knee, logarithms make gamma and
        cap two means. The best split may put its knee on the wrong side of a number; then
        the best law has its knee at one.
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
        # The first, linear one, unless another is better by more than rounding.
        gamma, cap = laws[int(np.argmax(errors <= errors.min() + _ROUNDING))]
        return cls(per_function=exp(gamma), cap=exp(cap))

    def at(self, number: Floats) -> Floats:
        """Return min(gamma N, cap)."""
        return np.minimum(self.per_function * number, self.cap)

    @property
    def knee(self) -> float:
        """Where the line meets the cap."""
        return self.cap / self.per_function


L = TypeVar("L", Usl, Capped)
"""Throughput as a function of the number of functions at once: ``fit`` finds the law that is
closest to rates at numbers, ``at`` says the rate at numbers (arrays of shape ``(runs,)``), and
from ``knee`` on more functions bring no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit(Generic[L]):
    """One law, and how far it can be trusted."""

    law: L
    resampled: tuple[L, ...] = field(repr=False)
    """The law again, fitted to runs drawn anew; empty if a number has a single run."""
    off: float | None
    """Typical relative error in predicting a number that the fit has not seen: root mean
    square over the numbers, each left out once. None where too few would be left."""

    def interval(self, read: Callable[[L], float]) -> tuple[float, float] | None:
        """Return where ``CONFIDENCE`` of the resampled laws have the value that is read."""
        if not self.resampled:
            return None
        values = np.sort([read(law) for law in self.resampled])
        cut = round((1 - CONFIDENCE) / 2 * len(values))
        return float(values[cut]), float(values[-1 - cut])


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingRow:
    """What was measured with one number of functions."""

    number: int
    runs: int
    median: float
    efficiency: float
    """Throughput per function, over that at the smallest number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """What was measured, and both laws."""

    rows: tuple[ScalingRow, ...]
    usl: Fit[Usl]
    capped: Fit[Capped]

    @property
    def reach(self) -> int:
        """The largest number that anything is said about."""
        return REACH * self.rows[-1].number

    @property
    def better(self) -> Fit[Usl] | Fit[Capped] | None:
        """The fit that is less off at a number left out; None if that cannot be told."""
        if self.usl.off is None or self.capped.off is None:
            return None
        return self.usl if self.usl.off < self.capped.off else self.capped

    def check_reach(self, number: int) -> None:
        """Refuse a number that the laws say nothing about.

        Raises
        ------
        UsageError
            If it is below one, or above ``REACH`` times the largest measured.
        """
        if not 1 <= number <= self.reach:
            raise UsageError(
                f"{number} functions are out of reach: {self.rows[-1].number} were measured at"
                f" most, and nothing is said beyond {REACH} times that",
                hint="measure more functions: --numbers",
            )


def fit_scaling(
    runs: Mapping[int, Sequence[float]], *, resamples: int = RESAMPLES, seed: int = 0
) -> Scaling:
    """Fit both laws to the throughput of runs, by number of functions.

    Parameters
    ----------
    runs
        Number of functions at once, to the throughput of each run with it.
    resamples
        How often the runs are drawn anew for the intervals.
    seed
        Of those draws.

    Raises
    ------
    UsageError
        If there are fewer than ``MIN_NUMBERS`` different numbers.
    """
    if len(runs) < MIN_NUMBERS:
        raise UsageError(
            f"{len(runs)} different numbers of functions say nothing about how throughput scales",
            hint=f"measure at least {MIN_NUMBERS}, better 6: --numbers 1,3,10,30,100,300",
        )
    ordered = {number: runs[number] for number in sorted(runs)}
    number = np.repeat(np.array(list(ordered), float), [len(rates) for rates in ordered.values()])
    rate = np.concatenate([np.asarray(rates, float) for rates in ordered.values()])
    drawn = _draws(number, np.log(rate), resamples, seed)
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
        usl=_fitted(Usl, number, rate, drawn, parameters=3),
        capped=_fitted(Capped, number, rate, drawn, parameters=2),
    )


def _fitted(
    law: type[L], number: Floats, rate: Floats, drawn: Sequence[Floats], *, parameters: int
) -> Fit[L]:
    return Fit(
        law=law.fit(number, rate),
        resampled=tuple(law.fit(number, one) for one in drawn),
        off=_off(law, number, rate) if len(np.unique(number)) > parameters else None,
    )


def _off(law: type[L], number: Floats, rate: Floats) -> float:
    """Return the error at a number left out; see ``Fit.off``."""
    squares = []
    for there in (number == left_out for left_out in np.unique(number)):
        expected = law.fit(number[~there], rate[~there]).at(number[there])
        squares.append((np.log(expected[0]) - np.mean(np.log(rate[there]))) ** 2)
    return float(np.expm1(np.sqrt(np.mean(squares))))


def _draws(number: Floats, y: Floats, resamples: int, seed: int) -> list[Floats]:
    """Return rates drawn anew, each number's from its own runs; none if one has a single run.

    Deviations of r runs from their mean are too small by sqrt((r - 1) / r), which is a
    fifth for three runs, so they are stretched (Davison and Hinkley 1997, section 2.3).
    """
    _, group, counts = np.unique(number, return_inverse=True, return_counts=True)
    if counts.min() < 2:
        return []
    means = np.bincount(group, weights=y) / counts
    deviations = (y - means[group]) * np.sqrt(counts / (counts - 1))[group]
    begins: NDArray[np.int64] = (np.cumsum(counts) - counts)[group]
    rng = np.random.default_rng(seed)
    picks = begins + rng.integers(counts[group], size=(resamples, len(y)))
    return list(np.exp(means[group] + deviations[picks]))


@dataclass(frozen=True, slots=True, kw_only=True)
class LawKnee:
    """Level from which on more brings no more, by the better law of ``sbench scale``."""

    at: float | None
    """None if no level has met it, and if the levels do not tell which law is better."""
    law: str | None
    """``capped`` or ``usl``; None if the levels do not tell."""
    most_per_s: float
    """Operations per second at the best level."""


def knee_of_laws(rates: Mapping[int, Sequence[float]]) -> LawKnee | None:
    """Return where more brings no more; None if there are too few numbers.

    Parameters
    ----------
    rates
        Of the runs, by number or level.
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
