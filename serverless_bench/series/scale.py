"""A job with more and more functions at once, and the laws that its throughput follows."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf, isinf
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import numpy as np

from serverless_bench.analysis.samples import (
    MeasuredRun,
    check_comparable,
    measured_run,
    run_directories,
    sample_of,
)
from serverless_bench.errors import CORRUPT, INCOMPLETE, WITHHELD, UsageError
from serverless_bench.executors import info_of
from serverless_bench.job.defaults import DEFAULT_EXECUTOR
from serverless_bench.job.spec import JobSpec
from serverless_bench.rundir.run import load_run
from serverless_bench.series.runs import (
    SILENT,
    JobSeries,
    Listener,
    Task,
    check_cost,
    in_turns,
    series_in,
    task_of,
)
from serverless_bench.statistics.scaling import CONFIDENCE, Fit, Scaling, fit_scaling
from serverless_bench.statistics.verdict import require_scipy
from serverless_bench.units import format_count

METRICS: Final = ("whole_bytes_per_s", "steady_bytes_per_s")
PARAMETERS: Final = ("per_function", "cap", "contention", "coherency", "knee")
"""Of the laws, in the order of a report."""
_VARIES: Final = frozenset({"number", "concurrency", "bytes"})
"""Settings that differ from one number of functions to the next."""
_COME_TO_AN_END: Final = frozenset({INCOMPLETE, CORRUPT, WITHHELD})
"""Exit codes of runs that came to their end and still cannot stand for their number."""
OnScaleRun = Callable[[str, MeasuredRun], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleFit:
    """Laws fitted to a job's throughput with different numbers of functions at once.

    Parameters
    ----------
    fits
        By metric: of the whole throughput, and of the steady one if all runs have it.
    simulated
        How many of the runs never happened.
    complete
        Whether every run that was planned can stand for its number of functions.

    Examples
    --------
    >>> found = sbench.scale(None, "scaled")
    >>> found.complete, [*found.to_json()["whole_bytes_per_s"]]
    (True, ['rows', 'usl', 'capped', 'better', 'reach', 'confidence', 'simulated'])
    """

    fits: Mapping[str, Scaling]
    simulated: int
    complete: bool

    def to_json(self, predict: int | None = None) -> dict[str, Any]:
        """Return the JSON document of ``sbench scale``; docs/compare.md lists its fields.

        Raises
        ------
        UsageError
            If so many functions as ``predict`` are out of reach.
        """
        if predict is not None:
            for scaling in self.fits.values():
                scaling.check_reach(predict)
        return {
            metric: {
                "rows": [asdict(row) for row in scaling.rows],
                "usl": _law_to_json(scaling.usl, scaling, predict),
                "capped": _law_to_json(scaling.capped, scaling, predict),
                "better": next(
                    (n for n in ("usl", "capped") if getattr(scaling, n) is scaling.better), None
                ),
                "reach": scaling.reach,
                "confidence": CONFIDENCE,
                "simulated": self.simulated,
            }
            for metric, scaling in self.fits.items()
        }


def scale(  # noqa: PLR0913 - the flags of the command
    job: JobSpec | Task | None,
    directory: str | Path | None = None,
    *,
    keys: Sequence[str] = (),
    numbers: Iterable[int] = (1, 10, 30, 100, 300),
    repeats: int = 3,
    seed: int = 0,
    max_cost: float | None = None,
    keep: bool = False,
    resume: bool = False,
    on_run: OnScaleRun = lambda *_: None,
    listener: Listener | None = None,
) -> ScaleFit:
    """Run a job with more and more functions at once, and fit two laws, as ``sbench scale`` does.

    Runs come in random order, each number once before any comes again. docs/compare.md has
    the laws.

    Parameters
    ----------
    job
        What to run; None to run nothing, and fit the runs that are in the directory.
    directory
        New directory of the series; None for one in ``sbench-runs``.
    keys
        Objects to read.
    numbers
        Functions at once, three different numbers at least.
    repeats
        Runs of each number.
    seed
        Of the order of the runs, and of the intervals.
    max_cost
        Dollars that all runs together may cost.
    keep
        Whether the objects of the runs stay in the store.
    resume
        Whether runs that have come to their end in the directory are taken, and not made again.
    on_run
        Called with the place of a run in the series, in words, and the run, after each.
    listener
        For a display of your own.

    Returns
    -------
    ScaleFit
        Of the runs that can stand for their number of functions.

    Raises
    ------
    UsageError
        If there are too few numbers, or the executor runs one function after the other.
    CostError
        If the runs would cost more than ``max_cost``.
    SbenchError
        If a run is cut short; ``exit_code`` is that run's.

    Examples
    --------
    >>> found = sbench.scale(writing, "scaled", numbers=(1, 2, 4), repeats=1)
    >>> [row["number"] for row in found.to_json()["whole_bytes_per_s"]["rows"]]
    [1, 2, 4]
    """
    require_scipy()
    if job is None:
        root = Path(directory or ".")
        saved = run_directories(root)
        runs, planned = [*_usable(saved, listener or SILENT)], len(saved)
    else:
        task = job if isinstance(job, Task) else task_of(job, keys, max_cost=max_cost)
        check_side_by_side(task.job.executor)
        if repeats < 1:
            raise UsageError(f"--repeats must be at least 1, got {repeats}")
        order = [*in_turns(_checked(numbers), repeats, seed)]
        series = series_in(directory, "scale", keep=keep, resume=resume, listener=listener)
        root, planned = series.root, len(order)
        runs = [*_measured(series, task, order, on_run)]
    sample = sample_of(runs, label=str(root), directory=root)
    check_comparable([sample], allowed=_VARIES)
    return ScaleFit(
        fits=_fits(runs, seed=seed), simulated=sample.simulated, complete=len(runs) == planned
    )


def check_side_by_side(executor: str) -> None:
    """Refuse to raise the number of functions at once where there is one.

    Raises
    ------
    UsageError
        If the executor runs one after the other.
    """
    if info_of(executor).in_process:
        raise UsageError(
            f"{executor} runs one function at a time", hint=f"`executor` {DEFAULT_EXECUTOR}"
        )


def _checked(numbers: Iterable[int]) -> list[int]:
    different = sorted(set(numbers))
    if len(different) < 3 or different[0] < 1:
        shown = ",".join(map(str, numbers))
        raise UsageError(
            f"`numbers` {shown!r} are not three different numbers of functions",
            hint="better six: `numbers` 1,3,10,30,100,300",
        )
    return different


def with_functions(task: Task, number: int) -> Task:
    """Return a task with so many functions, all at once."""
    return replace(task, job=replace(task.job, number=number, concurrency=number))


def _measured(
    series: JobSeries, task: Task, order: Sequence[tuple[int, int]], on_run: OnScaleRun
) -> Iterator[MeasuredRun]:
    """Run the task with each number of functions and yield the runs that count."""
    smallest = with_functions(task, min(number for _, number in order))
    check_cost([smallest, *(with_functions(task, number) for _, number in order)])
    with series.store_kept_up(needed=task.embedded):
        # A store that has just started is slow.
        series.run(smallest, "warm-up/1")
        for done, (turn, number) in enumerate(order, 1):
            name = f"{number}-{turn}"
            series.run(with_functions(task, number), name, accept=_COME_TO_AN_END)
            for run in _usable([series.root / name], series.listener):
                on_run(f"run {done} of {len(order)}: {format_count(number, 'function')}", run)
                yield run


def _usable(directories: Iterable[Path], listener: Listener) -> Iterator[MeasuredRun]:
    """Yield the runs that can stand for their number, and name the others."""
    for directory in directories:
        try:
            yield measured_run(load_run(directory, detail=False))
        except UsageError as exc:
            listener.note([f"left out: {exc}"])


def _fits(runs: Sequence[MeasuredRun], *, seed: int) -> dict[str, Scaling]:
    """Return the fits of the whole throughput, and of the steady one if all runs have it.

    Raises
    ------
    UsageError
        If the runs have too few different numbers of functions.
    """
    fits = {}
    for metric in METRICS:
        by_number: dict[int, list[float]] = {}
        for run in runs:
            value = run.summary.to_json()[metric]
            if value:
                by_number.setdefault(run.summary.planned_concurrency, []).append(value)
        if metric == METRICS[0] or sum(map(len, by_number.values())) == len(runs):
            fits[metric] = fit_scaling(by_number, seed=seed)
    return fits


def _law_to_json(fitted: Fit[Any], scaling: Scaling, predict: int | None) -> dict[str, Any]:
    """Return a law; null stands for a cap or a knee that the runs have not met.

    That is so if the interval reaches the largest number measured: the runs go up to there.
    """

    def value(read: Callable[[Any], float], limit: float = inf) -> dict[str, float | None]:
        interval = fitted.interval(read)
        values = {"value": read(fitted.law)}
        if interval is not None:
            values |= {"low": interval[0], "high": interval[1]}
        met = {n: None if v >= limit or isinf(v) else v for n, v in values.items()}
        return met if met.get("high", 0.0) is not None else {**met, "value": None}

    document: dict[str, Any] = {
        name: value(attrgetter(name), scaling.rows[-1].number if name == "knee" else inf)
        for name in PARAMETERS
        if hasattr(fitted.law, name)
    }
    document["off"] = fitted.off
    if predict is not None:
        number = np.array([float(predict)])
        document["predicted"] = {"number": predict, **value(lambda law: float(law.at(number)[0]))}
    return document
