"""Whether new runs are as good as old ones. Pure: recorded or measured figures in, a verdict out.

Runs that were made in turns are compared block by block, as ``ab`` and experiments do: what
makes a whole block slow goes out of a ratio.

Recorded runs were made at other times, so what counts there is the session, not the run: runs
of one hour share its store, its network and its neighbours. A new session is held against
what the recorded ones let expect of one more (``statistics.sessions``). That is a test of
normal levels. Machines of two kinds are none, so a session regressed only if it is below every
recorded one, too: of 30 and one more that do not differ, the last is the lowest in 3 %.

All figures that are checked are one family: the chance of one false alarm or more is at most
5 %, by Holm's procedure. "Passed" needs no correction: it is said if every single figure was
shown to have lost less than the tolerance, so that it is wrong only if that one test is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log1p
from statistics import median
from typing import Final

import numpy as np

from serverless_bench.analysis.samples import more_is_better
from serverless_bench.history.recorded import RecordedRun
from serverless_bench.rundir.tables import Floats
from serverless_bench.statistics.power import ENOUGH, found_share, rounds_needed, spread_factor
from serverless_bench.statistics.ratio import MIN_BLOCKS, RatioEstimate, ratio_of_logs
from serverless_bench.statistics.sessions import SessionSpread
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
_ALIKE: Final = 0.01
"""Relative difference of the bytes moved, up to which runs do the same work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureEvidence:
    """What old and new runs say of one figure, before it is judged."""

    figure: str
    old: float | None
    new: float
    """Geometric means, in the figure's own unit; of recorded runs, over the sessions; None if
    there is no old run."""
    gain: RatioEstimate | None
    """New over old, as if more were better. None if there are too few."""
    lowest: bool = True
    """Whether the new session is worse than every recorded one."""
    recorded: SessionSpread | None = None
    """None of blocks."""
    runs: int = 1
    """In the new session."""


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
            )
        )
    return evidence


def of_recorded(
    figures: Sequence[str], old: Sequence[RecordedRun], new: Sequence[RecordedRun]
) -> list[FigureEvidence]:
    """Return the evidence of new runs, taken as one session, beside recorded ones by age."""
    known = sessions(old)[-MOST_SESSIONS:]
    return [_of_sessions(figure, known, new) for figure in figures]


def _of_sessions(
    figure: str, known: Sequence[Sequence[RecordedRun]], new: Sequence[RecordedRun]
) -> FigureEvidence:
    values = [[run.figures[figure] for run in runs if figure in run.figures] for runs in known]
    old = [_logs(session) for session in values if session]
    now = _logs([run.figures[figure] for run in new if figure in run.figures])
    if not len(now):
        raise ValueError(f"the new runs have no {figure}")
    level = float(now.mean())
    if len(old) < MIN_SESSIONS:
        mean = exp(np.mean([session.mean() for session in old])) if old else None
        return FigureEvidence(figure=figure, old=mean, new=exp(level), gain=None)
    recorded = SessionSpread.of(old)
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
            verdict=_verdict(one, p[one.figure], limit),
            p=p[one.figure],
            interval=None if one.gain is None else one.gain.interval(),
            power=_power(one.gain, tests, tolerance, loss),
            needed=_needed(one, tests, tolerance, loss),
        )
        for one in evidence
    ]


def overall(findings: Sequence[Finding]) -> Verdict:
    """Return the verdict of a check: one figure that regressed is enough."""
    from_good_to_bad = (Verdict.PASSED, Verdict.UNDECIDED, Verdict.REGRESSED)
    verdicts = (finding.verdict for finding in findings)
    return max(verdicts, key=from_good_to_bad.index, default=Verdict.PASSED)


def _verdict(one: FigureEvidence, p: float, limit: float) -> Verdict:
    if one.gain is None:
        return Verdict.UNDECIDED
    if p <= ALPHA and one.gain.mean < -limit and one.lowest:
        return Verdict.REGRESSED
    return Verdict.PASSED if one.gain.p_above(-limit) <= ALPHA else Verdict.UNDECIDED


def _power(gain: RatioEstimate | None, tests: int, tolerance: float, loss: float) -> float:
    if gain is None:
        return 0.0
    error = gain.error * spread_factor(gain.freedom)
    return found_share(error, gain.freedom, tests, ratio=1 / (1 - loss), threshold=tolerance)


def _needed(one: FigureEvidence, tests: int, tolerance: float, loss: float) -> int | None:
    if one.gain is None:
        return None
    times = spread_factor(one.gain.freedom)
    about = {"ratio": 1 / (1 - loss), "threshold": tolerance}
    if one.recorded is None:
        return rounds_needed(one.gain.sd * times, tests, **about)
    for number in range(MIN_SESSIONS, MOST_SESSIONS + 1):
        gain = one.recorded.one_more(0.0, one.runs, number)
        if found_share(gain.error * times, gain.freedom, tests, **about) >= ENOUGH:
            return number
    return None


def _logs(values: Sequence[float]) -> Floats:
    return np.asarray(np.log(values), float)


def _as_gain(figure: str, ratio: RatioEstimate) -> RatioEstimate:
    return ratio if more_is_better(figure) else ratio.inverse()


def ratio_of(finding: Finding) -> float | None:
    """Return new over old in the figure's own direction; None if there is nothing old."""
    one, gain = finding.evidence, finding.evidence.gain
    if gain is None:
        return None if one.old is None else one.new / one.old
    return exp(gain.mean if more_is_better(finding.evidence.figure) else -gain.mean)
