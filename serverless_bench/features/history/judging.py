"""Judge whether new runs are as good as old runs. Pure: metrics in, verdicts out.

Runs in turns are compared within blocks, as in ``ab`` and studies: disturbances of a full block
cancel out of a ratio.

Recorded runs were made at different times, so the unit of replication is the session: runs within
an hour share the state of the store, the network and other load. A new session is compared with the
distribution expected from the recorded sessions. This test assumes
normally distributed levels. Two kinds of machines violate this assumption, so a session has only
regressed if it is also below all recorded sessions: among 31 equal sessions, the last is the lowest
with a probability of 3 %.

All checked metrics form a family: the probability of any false alarm is at most 5 %, by Holm's
procedure. "Passed" needs no correction: it requires that every metric has lost less than the
tolerance, so it is only incorrect if each of these tests is.

A new session is compared with earlier sessions by random effects, estimated by moments. The level
of a session varies between sessions, the logarithm of a run varies around the level of its session,
and the level of a session with few runs is known less precisely: two variances, each from its own
sum of squares (Searle, Casella and McCulloch 1992, chapter 3). Consecutive sessions may be similar:
their correlation is estimated, and the standard error is increased, and its degrees of freedom
reduced, as for an autoregressive series of first order.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import exp, log1p, sqrt
from statistics import median
from typing import Final

import numpy as np

from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.compare.ratio import (
    ENOUGH,
    RatioEstimate,
    found_share,
    ratio_of_logs,
    rounds_needed,
    spread_factor,
)
from serverless_bench.features.compare.samples import more_is_better
from serverless_bench.features.compare.verdict import ALPHA, MIN_BLOCKS, Interval, Verdict, holm
from serverless_bench.features.history.recorded import RecordedRun
from serverless_bench.rundir.tables import Floats

_MOST_CORRELATION: Final = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSpread:
    """Spread of recorded sessions and of their runs, on logarithms."""

    levels: tuple[float, ...]
    """Mean of each session."""
    between: float
    """Standard deviation of the levels."""
    correlation: float
    """Correlation of consecutive sessions."""
    within: float
    """Variance of runs within sessions; 0 if no session has two runs."""
    within_freedom: int
    share: float
    """Mean share of this variance that remains in a level: 1 if each session has a single run."""

    @classmethod
    def from_levels(cls, sessions: Sequence[Floats]) -> "SessionSpread":
        """Return the spread of at least two non-empty sessions."""
        levels = np.array([session.mean() for session in sessions])
        squares = sum(float(((session - session.mean()) ** 2).sum()) for session in sessions)
        freedom = sum(len(session) - 1 for session in sessions)
        return cls(
            levels=tuple(levels.tolist()),
            between=float(levels.std(ddof=1)),
            correlation=serial_correlation(levels),
            within=squares / freedom if freedom else 0.0,
            within_freedom=freedom,
            share=float(np.mean([1 / len(session) for session in sessions])),
        )

    def one_more(self, level: float, runs: int, sessions: int) -> RatioEstimate:
        """Return the level of a new session compared with the mean of recorded sessions.

        Parameters
        ----------
        level
            Level of the new session.
        runs
            Number of runs in the new session.
        sessions
            Number of recorded sessions with the same spread.
        """
        factor, worth = _prediction_factors(sessions, self.correlation)
        recorded = self.between**2 * factor
        # A new session with fewer runs than the recorded sessions retains more of the variance.
        unlike = self.within * (1 / runs - self.share)
        variance, freedom = recorded + unlike, worth - 1.0
        if variance < self.within / runs:
            variance, freedom = self.within / runs, float(self.within_freedom)
        elif unlike:
            shares = np.array([recorded, unlike]) / variance
            freedom = float(1 / (shares**2 / [worth - 1, self.within_freedom]).sum())
        return RatioEstimate(
            mean=level - float(np.mean(self.levels)), error=sqrt(variance), freedom=freedom
        )


def serial_correlation(logs: Floats) -> float:
    """Return the correlation of consecutive values of a series, at least 0.

    The estimate from a short series with estimated mean is biased by -(1 + 4r) / n on average
    (Marriott and Pope 1954); this bias is corrected.
    """
    deviations = logs - logs.mean()
    squares = float(deviations @ deviations)
    if not squares:
        return 0.0
    raw = float(deviations[1:] @ deviations[:-1]) / squares
    return round(min(max(raw + (1 + 4 * raw) / len(logs), 0.0), _MOST_CORRELATION), 2)


@cache
def _prediction_factors(number: int, correlation: float) -> tuple[float, int]:
    """Return the prediction variance of a series, and its effective number of observations.

    For an autoregressive series of first order: the exact variance of the next observation minus
    the mean, relative to the exact expected sample variance; and Bartlett's number of independent
    observations whose sample variance is equally precise.
    """
    places = np.arange(number + 1)
    covariance = correlation ** np.abs(places[:, None] - places)
    recorded, ahead = covariance[:-1, :-1], covariance[:-1, -1]
    sample = (number - recorded.sum() / number) / (number - 1)
    variance = 1 + recorded.mean() - 2 * ahead.mean()
    return float(variance / sample), max(2, int(number**2 / (recorded**2).sum()))


DEFAULT_FIGURES: Final = ("throughput_bytes_per_s", "ops_per_s", "latency_s.p99")
TOLERANCE: Final = 0.05
LOSS: Final = 0.1
"""Default of the loss for which the power is stated."""
SESSION_S: Final = 3600
"""Runs that start within this time of the first run belong to the same session."""
MIN_SESSIONS: Final = 6
MOST_SESSIONS: Final = 30
"""Number of latest sessions used for a comparison, because stores change over the years."""
_ALIKE: Final = 0.01
"""Maximum relative difference in transferred bytes between runs of the same work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureEvidence:
    """Evidence of old and new runs on a metric, before it is judged."""

    figure: str
    old: float | None
    new: float
    """Geometric means in the unit of the metric; for recorded runs, of the sessions. ``old`` is
    None without old runs."""
    gain: RatioEstimate | None
    """Ratio of new to old, oriented so that larger is better. None if there are too few."""
    lowest: bool = True
    """Whether the new session is worse than all recorded sessions."""
    recorded: SessionSpread | None = None
    """Spread of the recorded sessions; None for blocks."""
    runs: int = 1
    """Number of runs in the new session."""
    missing: int = 0
    """Number of blocks or recorded sessions that a verdict lacks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Verdict on a metric as part of the family of checked metrics."""

    evidence: FigureEvidence
    verdict: Verdict
    p: float
    """p-value of no difference, adjusted for all metrics."""
    interval: Interval | None
    """Two-sided 95 % interval of new to old, oriented so that larger is better."""
    power: float
    """Probability that such a check detects the loss."""
    needed: int | None
    """Blocks or recorded sessions for a power of 90 %; None if no supported number is enough."""


def by_block(
    figures: Sequence[str], old: Mapping[str, Sequence[float]], new: Mapping[str, Sequence[float]]
) -> list[FigureEvidence]:
    """Return the evidence of runs in turns, with a value per metric, block and side."""
    evidence = []
    for figure in figures:
        a, b = _logs(old[figure]), _logs(new[figure])
        gain = _as_gain(figure, ratio_of_logs(b - a))
        evidence.append(
            FigureEvidence(
                figure=figure,
                old=exp(a.mean()),
                new=exp(b.mean()),
                gain=gain if len(a) >= MIN_BLOCKS else None,
                missing=max(0, MIN_BLOCKS - len(a)),
            )
        )
    return evidence


def of_recorded(
    figures: Sequence[str], old: Sequence[RecordedRun], new: Sequence[RecordedRun]
) -> list[FigureEvidence]:
    """Return the evidence of new runs, as a session, compared with recorded runs by age."""
    recorded_sessions = sessions(old)[-MOST_SESSIONS:]
    return [_of_sessions(figure, recorded_sessions, new) for figure in figures]


def _of_sessions(
    figure: str, recorded_sessions: Sequence[Sequence[RecordedRun]], new: Sequence[RecordedRun]
) -> FigureEvidence:
    values = [
        [run.figures[figure] for run in runs if figure in run.figures] for runs in recorded_sessions
    ]
    old = [_logs(session) for session in values if session]
    now = _logs([run.figures[figure] for run in new if figure in run.figures])
    if not len(now):
        raise ValueError(f"the new runs have no {figure}")
    level = float(now.mean())
    if len(old) < MIN_SESSIONS:
        mean = exp(np.mean([session.mean() for session in old])) if old else None
        missing = MIN_SESSIONS - len(old)
        return FigureEvidence(figure=figure, old=mean, new=exp(level), gain=None, missing=missing)
    recorded = SessionSpread.from_levels(old)
    gain = _as_gain(figure, recorded.one_more(level, len(now), len(old)))
    levels = recorded.levels
    return FigureEvidence(
        figure=figure,
        old=exp(np.mean(levels)),
        new=exp(level),
        gain=gain,
        lowest=level < min(levels) if more_is_better(figure) else level > max(levels),
        recorded=recorded,
        runs=len(now),
    )


def sessions(runs: Sequence[RecordedRun]) -> list[list[RecordedRun]]:
    """Group runs, ordered by age, into sessions."""
    grouped: list[list[RecordedRun]] = []
    for run in runs:
        if not grouped or run.created_ns - grouped[-1][0].created_ns > SESSION_S * NS_PER_S:
            grouped.append([])
        grouped[-1].append(run)
    return grouped


def of_the_same_work(old: Sequence[RecordedRun], new: Sequence[RecordedRun]) -> list[RecordedRun]:
    """Return the old runs since the last restart with as many transferred bytes as the new runs."""
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
    """Judge all metrics as a family.

    Parameters
    ----------
    evidence
        Evidence for each metric.
    tolerance
        Smallest relevant loss: with 0.05, rates down to 1/1.05 and times up to 1.05.
    loss
        Loss for which to compute the power of the check.
    """
    p = holm(
        {item.figure: 1.0 if item.gain is None else item.gain.p_different() for item in evidence}
    )
    limit, tests = log1p(tolerance), len(evidence)
    return [
        Finding(
            evidence=item,
            verdict=_verdict(item, p[item.figure], limit),
            p=p[item.figure],
            interval=None if item.gain is None else item.gain.interval(),
            power=_power(item.gain, tests, tolerance, loss),
            needed=_needed(item, tests, tolerance, loss),
        )
        for item in evidence
    ]


def overall(findings: Sequence[Finding]) -> Verdict:
    """Return the overall verdict; a single regressed metric is enough to regress."""
    from_good_to_bad = (Verdict.PASSED, Verdict.UNDECIDED, Verdict.REGRESSED)
    verdicts = (finding.verdict for finding in findings)
    return max(verdicts, key=from_good_to_bad.index, default=Verdict.PASSED)


def _verdict(item: FigureEvidence, p: float, limit: float) -> Verdict:
    if item.gain is None:
        return Verdict.UNDECIDED
    if p <= ALPHA and item.gain.mean < -limit and item.lowest:
        return Verdict.REGRESSED
    return Verdict.PASSED if item.gain.p_above(-limit) <= ALPHA else Verdict.UNDECIDED


def _power(gain: RatioEstimate | None, tests: int, tolerance: float, loss: float) -> float:
    if gain is None:
        return 0.0
    return found_share(
        gain.error * spread_factor(gain.freedom),
        gain.freedom,
        tests,
        ratio=1 / (1 - loss),
        threshold=tolerance,
    )


def _needed(item: FigureEvidence, tests: int, tolerance: float, loss: float) -> int | None:
    if item.gain is None:
        return None
    times = spread_factor(item.gain.freedom)
    condition = {"ratio": 1 / (1 - loss), "threshold": tolerance}
    if item.recorded is None:
        return rounds_needed(item.gain.sd * times, tests, **condition)
    gains = [
        item.recorded.one_more(0.0, item.runs, number)
        for number in range(MIN_SESSIONS, MOST_SESSIONS + 1)
    ]
    # The power rises with the number of sessions.
    at = bisect_left(
        gains,
        ENOUGH,
        key=lambda gain: found_share(gain.error * times, gain.freedom, tests, **condition),
    )
    return MIN_SESSIONS + at if at < len(gains) else None


def _logs(values: Sequence[float]) -> Floats:
    return np.asarray(np.log(values), float)


def _as_gain(figure: str, ratio: RatioEstimate) -> RatioEstimate:
    return ratio if more_is_better(figure) else ratio.inverse()


def ratio_of(finding: Finding) -> float | None:
    """Return the ratio of new to old in the orientation of the metric; None without old runs."""
    evidence, gain = finding.evidence, finding.evidence.gain
    if gain is None:
        return None if evidence.old is None else evidence.new / evidence.old
    return exp(gain.mean if more_is_better(finding.evidence.figure) else -gain.mean)
