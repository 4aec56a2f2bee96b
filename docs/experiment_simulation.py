"""Rates of false verdicts and of found effects in a study, by simulation. Pure.

Runs are drawn with the measured noise, and judged by the code that judges runs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan, log, nan
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import structs

from serverless_bench.features.compare.verdict import Verdict
from serverless_bench.features.studies.cells import Cell
from serverless_bench.features.studies.comparisons import MATTERS, Decision, Judgement, Verdicts
from serverless_bench.features.studies.definition import Metric, Study
from serverless_bench.features.studies.hypotheses import judge
from serverless_bench.features.studies.observations import CellRun, CellRuns
from serverless_bench.features.studies.plan import Plan
from serverless_bench.rundir.tables import Floats

ASSUMED: Final = (0.03, 0.1)
"""Noise of cells in turns if none was measured: a small one, and a large one."""
_ROUND: Final = 0.1
_LEAST_NOISE: Final = 1e-6
_LEAST_SHARE: Final = 0.01
_NEAR: Final = 0.02
_DECIDED_VERDICTS: Final = frozenset({Verdict.FASTER, Verdict.SAME, Verdict.SLOWER})
_DECIDED: Final = frozenset({Decision.CONFIRMED, Decision.REJECTED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """Standard deviations of logarithms, of one metric."""

    rounds: float
    """Common noise of all cells in a round."""
    cells: Mapping[str, float]
    """Remaining noise, by the cells' slugs."""

    @property
    def ratio(self) -> float:
        """Median noise of the ratio of two cells."""
        return float(np.sqrt(2) * np.median(list(self.cells.values())))


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """Results of many simulated studies."""

    studies: int
    among: int
    """Comparisons of one study."""
    rounds: int
    noise: float
    """Median noise of a ratio within a round; relative."""
    measured: bool
    """Whether that was measured, or assumed."""
    false_alarms: float
    """Share of studies with a false verdict or more, if no cells differ."""
    false_among_true: float
    """The same, if half of the cells differ."""
    power: float
    """Share of the differences of 25 % that are found, if half of the cells differ; not a
    number if no two cells are compared."""


def noise_of(study: Study, observed: Sequence[CellRuns]) -> dict[str, Noise]:
    """Return the noise of each metric of the hypotheses, by the figure's name.

    It is the rest of a logarithm after subtracting the means of its cell and its round;
    metrics that a run lacks are left out.
    """
    found = {}
    for metric in _metrics(study):
        ran = [one for one in observed if not one.cell.skipped]
        table = [list(one.by_round(metric).values()) for one in ran]
        whole = table and all(len(row) == ran[0].planned > 1 and min(row) > 0 for row in table)
        if not whole or len(table) < 2:
            continue
        y: Floats = np.log(np.array(table))
        rounds = y.shape[1]
        rest = y - y.mean(axis=1, keepdims=True) - y.mean(axis=0, keepdims=True) + y.mean()
        sds = np.sqrt(_own_variances((rest**2).sum(axis=1) / (rounds - 1)))
        shared = float(y.mean(axis=0).std(ddof=1))
        slugs = [one.cell.slug for one in ran]
        found[metric.of] = Noise(rounds=shared, cells=dict(zip(slugs, sds.tolist(), strict=True)))
    return found


def _own_variances(left: Floats) -> Floats:
    """Return each cell's variance from the variance that remains after the mean of its round.

    Of n cells, a share 1 - 2/n of its own remains, and 1/n of the mean of all is added.
    """
    n = len(left)
    mean = left.mean() / (1 - 1 / n)
    if n < 3:
        return np.full(n, mean)
    own = (left - mean / n) / (1 - 2 / n)
    return np.asarray(np.maximum(own, _LEAST_SHARE * mean))


def simulate(
    plan: Plan,
    *,
    noise: Mapping[str, Noise] | None = None,
    studies: int = 1000,
    seed: int = 0,
) -> Simulated:
    """Draw and judge a study many times.

    Half of the studies are drawn without a difference between cells (in a study of
    proportions, every second one is proportional), half with a random half of the cells
    25 % above the others.

    Parameters
    ----------
    plan
        Cells and rounds.
    noise
        See ``noise_of``; missing metrics and cells have ``ASSUMED``.
    studies
        Number of studies of each kind.
    seed
        Seed of the draws.
    """
    drawing = _Simulation(plan, noise or {}, np.random.default_rng(seed))
    none = [drawing.judged(drawing.nothing(number)) for number in range(studies)]
    some = [drawing.judged(drawing.half_differ()) for _ in range(studies)]
    shares = [share for _, share in some if not isnan(share)]
    return Simulated(
        studies=studies,
        among=drawing.among,
        rounds=plan.repeats,
        noise=drawing.middle_noise,
        measured=bool(noise),
        false_alarms=float(np.mean([wrong for wrong, _ in none])),
        false_among_true=float(np.mean([wrong for wrong, _ in some])),
        power=float(np.mean(shares)) if shares else nan,
    )


class _Simulation:
    """Draws the runs of a plan."""

    def __init__(self, plan: Plan, noise: Mapping[str, Noise], rng: np.random.Generator) -> None:
        self._plan = plan
        self._rng = rng
        self._cells = plan.runnable()
        assumed = {cell.slug: ASSUMED[n % 2] for n, cell in enumerate(self._cells)}
        self._noise = {
            metric.of: Noise(
                rounds=known.rounds if (known := noise.get(metric.of)) else _ROUND,
                cells={**assumed, **(known.cells if known else {})},
            )
            for metric in _metrics(plan.study)
        }
        self.among = self._judge(np.zeros(len(self._cells)), 0.0).among

    @property
    def middle_noise(self) -> float:
        """Noise of a ratio within a round, in the middle of the metrics."""
        return float(np.median([one.ratio for one in self._noise.values()]))

    def nothing(self, number: int) -> Floats:
        """Return means, as logarithms, of cells that do not differ from the hypothesis."""
        along = {one.along for one in self._plan.study.hypotheses if one.test == "linear"}
        if number % 2 and along:
            (axis,) = list(along)[:1]
            return np.array([log(float(cell.at[axis])) for cell in self._cells])
        return np.zeros(len(self._cells))

    def half_differ(self) -> Floats:
        """Return means of which a random half is 25 % above the others."""
        half = self._rng.permutation(len(self._cells)) < len(self._cells) / 2
        return np.asarray(np.where(half, log(MATTERS), 0.0))

    def judged(self, means: Floats) -> tuple[bool, float]:
        """Draw one study; return whether it makes a false claim, and its findings."""
        truth, found = self._judge(means, 0.0), self._judge(means, 1.0)
        wrong = any(
            one.outcome in _DECIDED and one.outcome is not true.outcome
            for true, one in _pairs(truth, found)
        )
        effects = {(one.axis, str(one.value)): one.verdict for one in truth.effects}
        pairs = ({one.verdict, effects[one.axis, str(one.value)]} for one in found.effects)
        wrong |= any(len(pair) > 1 and pair <= _DECIDED_VERDICTS for pair in pairs)
        there = [
            one.outcome is true.outcome and one.outcome in _DECIDED
            for true, one in _pairs(truth, found)
            if true.ratio is not None and abs(abs(log(true.ratio)) - log(MATTERS)) < _NEAR
        ]
        return wrong, float(np.mean(there)) if there else nan

    def _judge(self, means: Floats, scale: float) -> Verdicts:
        shape = len(self._cells), self._plan.repeats
        drawn: dict[str, Floats] = {}
        for name, noise in self._noise.items():
            own = np.array([max(noise.cells[cell.slug], _LEAST_NOISE) for cell in self._cells])
            rest = own[:, None] * self._rng.standard_normal(shape)
            shared = noise.rounds * self._rng.standard_normal(shape[1])
            drawn[name] = np.exp(means[:, None] + scale * (rest + shared))
        observed = [
            _observed(cell, self._plan, {name: table[row] for name, table in drawn.items()})
            for row, cell in enumerate(self._cells)
        ]
        # Published values would need a simulation of their own, and decide no verdict.
        bare = structs.replace(self._plan.study, published=())
        return judge(bare, self._plan.scale, observed, one_factor=self._plan.one_factor)


def _observed(cell: Cell, plan: Plan, rates: Mapping[str, Floats]) -> CellRuns:
    drawn = ({name: float(of[n]) for name, of in rates.items()} for n in range(plan.repeats))
    results = tuple(CellRun(path=Path(), figures={"bytes": 1e9, **each}) for each in drawn)
    # Settings would mark the store as shaped, and verdicts on shaped stores name no side.
    return CellRuns(cell=replace(cell, settings={}), planned=plan.repeats, results=results)


def _pairs(truth: Verdicts, found: Verdicts) -> Iterator[tuple[Judgement, Judgement]]:
    for true, one in zip(truth.judged, found.judged, strict=True):
        yield from zip(true.judgements, one.judgements, strict=True)


def _metrics(study: Study) -> list[Metric]:
    """Return the metrics of the hypotheses, each figure once."""
    names = [one.metric for one in study.hypotheses] or [study.metrics[0].name]
    by_figure = {study.metric(name).of: study.metric(name) for name in names}
    return list(by_figure.values())
