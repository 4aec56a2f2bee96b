"""Whether new runs are as good as old ones. Pure: recorded or measured figures in, a verdict out.

Runs that were made in turns are compared block by block, as ``experiments.comparisons`` does:
what makes a whole block slow goes out of a ratio.

Recorded runs were made at other times, so what counts there is the session, not the run: runs
of one hour share its store, its network and its neighbours. A new session is held against
what the recorded ones let expect of one more, where days that follow each other may be alike:
their correlation is estimated, and the standard error made larger, and its degrees of freedom
fewer, as of an autoregressive series of first order.

All figures that are checked are one family: the chance of one false alarm or more is at most
5 %, by Holm's procedure. "Passed" needs no correction: it is said if every single figure was
shown to have lost less than the tolerance, so that it is wrong only if that one test is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import exp, log, log1p, sqrt
from statistics import median
from typing import Final

import numpy as np

from serverless_bench.analysis.samples import more_is_better
from serverless_bench.history.recorded import RecordedRun
from serverless_bench.rundir.tables import Floats
from serverless_bench.statistics.paired import (
    ENOUGH,
    MIN_ROUNDS,
    PairedRatio,
    found_share,
    ratio_of_logs,
    rounds_needed,
    small_sample_factor,
)
from serverless_bench.statistics.verdict import ALPHA, Interval, Verdict, holm
from serverless_bench.units import NS_PER_S

DEFAULT_FIGURES: Final = ("whole_bytes_per_s", "t99_s")
TOLERANCE: Final = 0.05
LOSS: Final = 0.1
"""For which the power is stated, if the user does not say."""
SESSION_S: Final = 3600
"""Runs that began within so much time of the first one are one observation."""
MIN_SESSIONS: Final = 6
MOST_SESSIONS: Final = 30
"""The last ones, with which a new one is compared: what a store was a year ago is another store."""
_MOST_CORRELATION: Final = 0.8
_ALIKE: Final = 0.01
"""Relative difference of the bytes moved, up to which runs do the same work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureEvidence:
    """What old and new runs say of one figure, before it is judged."""

    figure: str
    old: float | None
    new: float
    """Medians, in the figure's own unit; None if there is no old run."""
    gain: PairedRatio | None
    """New over old, as if more were better; of recorded runs, as of so many independent blocks
    as their sessions are worth. None if there are too few."""
    correlation: float = 0.0
    """Of sessions that follow each other."""
    spread: float | None = None
    """Standard deviation of the logarithm from session to session; None of blocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One figure, judged as one of all that are checked."""

    evidence: FigureEvidence
    verdict: Verdict
    p: float
    """Of no difference, adjusted for all figures."""
    interval: Interval | None
    """Of new over old as if more were better, two-sided at 95 %."""
    power: float
    """Share of such checks that find the loss."""
    needed: int | None
    """Blocks, or recorded sessions, that find it in 9 of 10; None if no such number does."""


def by_block(
    figures: Sequence[str], old: Mapping[str, Sequence[float]], new: Mapping[str, Sequence[float]]
) -> list[FigureEvidence]:
    """Return the evidence of runs made in turns: one number per figure and block and side."""
    found = []
    for figure in figures:
        a, b = np.asarray(old[figure], float), np.asarray(new[figure], float)
        gain = _as_gain(figure, ratio_of_logs(np.log(b / a)))
        found.append(
            FigureEvidence(
                figure=figure,
                old=float(np.median(a)),
                new=float(np.median(b)),
                gain=gain if gain.rounds >= MIN_ROUNDS else None,
            )
        )
    return found


def of_recorded(
    figures: Sequence[str], old: Sequence[RecordedRun], new: Sequence[RecordedRun]
) -> list[FigureEvidence]:
    """Return the evidence of new runs, taken as one session, beside recorded ones by age."""
    known = sessions(old)[-MOST_SESSIONS:]
    return [_of_sessions(figure, known, new) for figure in figures]


def _of_sessions(
    figure: str, known: Sequence[Sequence[RecordedRun]], new: Sequence[RecordedRun]
) -> FigureEvidence:
    levels = [level for session in known if (level := _level(figure, session)) is not None]
    now = _level(figure, new)
    if now is None:
        raise ValueError(f"the new runs have no {figure}")
    logs = np.log(levels)
    old = median(levels) if levels else None
    if len(levels) < MIN_SESSIONS:
        return FigureEvidence(figure=figure, old=old, new=now, gain=None)
    spread, correlation = float(logs.std(ddof=1)), serial_correlation(logs)
    return FigureEvidence(
        figure=figure,
        old=old,
        new=now,
        gain=_as_gain(
            figure,
            _prediction_error(log(now) - float(logs.mean()), spread, len(levels), correlation),
        ),
        correlation=correlation,
        spread=spread,
    )


def sessions(runs: Sequence[RecordedRun]) -> list[list[RecordedRun]]:
    """Return runs, by age, in the sessions that they were made in."""
    found: list[list[RecordedRun]] = []
    for run in runs:
        if not found or run.created_ns - found[-1][0].created_ns > SESSION_S * NS_PER_S:
            found.append([])
        found[-1].append(run)
    return found


def of_the_same_work(old: Sequence[RecordedRun], new: Sequence[RecordedRun]) -> list[RecordedRun]:
    """Return the old runs since the last restart that moved as many bytes as the new ones."""
    places = [number for number, run in enumerate(old) if run.restart]
    since = old[places[-1] :] if places else old
    if any(run.bytes is None for run in new):
        return list(since)
    moved = median(run.bytes or 0 for run in new)
    return [
        run for run in since if run.bytes is not None and abs(run.bytes - moved) <= _ALIKE * moved
    ]


def judge(
    evidence: Sequence[FigureEvidence], *, tolerance: float = TOLERANCE, loss: float = LOSS
) -> list[Finding]:
    """Judge all figures as one family.

    Parameters
    ----------
    evidence
        Of each figure.
    tolerance
        Loss from which on it matters: with 0.05, rates down to 1/1.05 and times up to 1.05.
    loss
        For which to say how often such a check finds it.
    """
    p = holm({one.figure: 1.0 if one.gain is None else one.gain.p_different() for one in evidence})
    limit, tests = log1p(tolerance), len(evidence)
    return [
        Finding(
            evidence=one,
            verdict=_verdict(one.gain, p[one.figure], limit),
            p=p[one.figure],
            interval=None if one.gain is None else one.gain.interval(),
            power=_power(one.gain, tests, tolerance, loss),
            needed=_needed(one, tests, tolerance, loss),
        )
        for one in evidence
    ]


def overall(findings: Sequence[Finding]) -> Verdict:
    """Return the verdict of a check: one figure that regressed is enough."""
    verdicts = {finding.verdict for finding in findings}
    if Verdict.REGRESSED in verdicts:
        return Verdict.REGRESSED
    return Verdict.UNDECIDED if Verdict.UNDECIDED in verdicts else Verdict.PASSED


def _verdict(gain: PairedRatio | None, p: float, limit: float) -> Verdict:
    if gain is None:
        return Verdict.UNDECIDED
    if p <= ALPHA and gain.mean < -limit:
        return Verdict.REGRESSED
    return Verdict.PASSED if gain.p_above(-limit) <= ALPHA else Verdict.UNDECIDED


def _power(gain: PairedRatio | None, tests: int, tolerance: float, loss: float) -> float:
    if gain is None:
        return 0.0
    sd = gain.sd * small_sample_factor(gain.rounds)
    return found_share(sd, gain.rounds, tests, ratio=1 / (1 - loss), threshold=tolerance)


def _needed(one: FigureEvidence, tests: int, tolerance: float, loss: float) -> int | None:
    if one.gain is None:
        return None
    about = {"ratio": 1 / (1 - loss), "threshold": tolerance}
    times = small_sample_factor(one.gain.rounds)
    if one.spread is None:
        needed = rounds_needed(one.gain.sd * times, tests, **about)
        return None if needed is None else max(MIN_ROUNDS, needed)
    for number in range(MIN_SESSIONS, MOST_SESSIONS + 1):
        gain = _prediction_error(0.0, one.spread, number, one.correlation)
        if found_share(gain.sd * times, gain.rounds, tests, **about) >= ENOUGH:
            return number
    return None


def _as_gain(figure: str, ratio: PairedRatio) -> PairedRatio:
    return ratio if more_is_better(figure) else ratio.inverse()


def _level(figure: str, session: Sequence[RecordedRun]) -> float | None:
    values = [run.figures[figure] for run in session if figure in run.figures]
    return median(values) if values else None


def serial_correlation(logs: Floats) -> float:
    """Return the correlation of neighbours in a series, 0 at least.

    The estimate of a short series is too low, by (1 + 4r) / n on average where the mean is
    estimated, too (Marriott and Pope 1954); that is added.
    """
    off = logs - logs.mean()
    squares = float(off @ off)
    if not squares:
        return 0.0
    found = float(off[1:] @ off[:-1]) / squares
    return round(min(max(found + (1 + 4 * found) / len(logs), 0.0), _MOST_CORRELATION), 2)


def _prediction_error(away: float, spread: float, number: int, correlation: float) -> PairedRatio:
    """Return how far one more observation is from the mean of a series, with its standard error.

    It is given as the mean of independent blocks that has the same standard error and degrees of
    freedom.

    Parameters
    ----------
    away
        Logarithm of the observation less the mean of the logarithms.
    spread
        Standard deviation of the series' logarithms.
    number
        Of observations in the series.
    correlation
        Of neighbours in it.
    """
    variance, worth = _prediction_factors(number, correlation)
    return replace(PairedRatio(mean=away, sd=0.0, rounds=worth), sd=spread * sqrt(variance * worth))


@cache
def _prediction_factors(number: int, correlation: float) -> tuple[float, int]:
    """Return the prediction variance of a series, and how many observations it is worth.

    Of an autoregressive series of first order: the variance of one more observation less the
    mean, over the expected sample variance, both exact; and Bartlett's number of independent
    observations whose sample variance is known as well.
    """
    lags = np.arange(1, number)
    mean = (1 + 2 * float(((1 - lags / number) * correlation**lags).sum())) / number
    ahead = 2 / number * float((correlation ** np.arange(1, number + 1)).sum())
    sample = (1 - mean) * number / (number - 1)
    worth = number / (1 + 2 * float(((1 - lags / number) * correlation ** (2 * lags)).sum()))
    return (1 + mean - ahead) / sample, max(2, int(worth))


def ratio_of(finding: Finding) -> float | None:
    """Return new over old in the figure's own direction; None if there is nothing old."""
    one, gain = finding.evidence, finding.evidence.gain
    if gain is None:
        return None if one.old is None else one.new / one.old
    return exp(gain.mean if more_is_better(finding.evidence.figure) else -gain.mean)
