"""Run a job at increasing concurrency, and fit scaling laws to its throughput."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf, isinf
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import numpy as np

from serverless_bench.base.errors import CORRUPT, INCOMPLETE, WITHHELD, UsageError
from serverless_bench.base.units import format_count
from serverless_bench.driver.task import SILENT, Listener, Task
from serverless_bench.executors import info_of
from serverless_bench.features.compare.runs import (
    JobSeries,
    check_cost,
    interleaved,
    series_in,
    task_of,
)
from serverless_bench.features.compare.samples import (
    MeasuredRun,
    check_comparable,
    measured_run,
    run_directories,
    sample_of,
)
from serverless_bench.features.compare.verdict import require_scipy
from serverless_bench.features.scale.scaling import CONFIDENCE, Fit, Scaling, fit_scaling
from serverless_bench.job.defaults import DEFAULT_EXECUTOR
from serverless_bench.job.spec import JobSpec
from serverless_bench.rundir.run import load_run

METRICS: Final = ("throughput_bytes_per_s", "steady_bytes_per_s")
PARAMETERS: Final = ("per_function", "cap", "contention", "coherency", "knee")
"""Parameters of the laws, in the order of a report."""
_VARIES: Final = frozenset({"number", "concurrency", "bytes"})
"""Settings that vary between concurrency levels."""
_COME_TO_AN_END: Final = frozenset({INCOMPLETE, CORRUPT, WITHHELD})
"""Exit codes of runs that completed but are not valid for their concurrency level."""
OnScaleRun = Callable[[str, MeasuredRun], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleFit:
    """Laws fitted to a job's throughput at different concurrency levels.

    Parameters
    ----------
    fits
        Fits by metric: the overall throughput, and the steady throughput if all runs have it.
    simulated
        Number of simulated runs.
    complete
        Whether all planned runs are valid for their concurrency level.

    Examples
    --------
    >>> found = sbench.scale(None, "scaled")
    >>> found.complete, [*found.to_json()["throughput_bytes_per_s"]]
    (True, ['rows', 'usl', 'capped', 'better', 'reach', 'confidence', 'simulated'])
    """

    fits: Mapping[str, Scaling]
    simulated: int
    complete: bool

    def to_json(self, predict: int | None = None) -> dict[str, Any]:
        """Return the JSON document of ``sbench scale``; see "Scaling" in the documentation.

        Raises
        ------
        UsageError
            If ``predict`` is out of reach.
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
    """Run a job at increasing concurrency, and fit two laws, like ``sbench scale``.

    Runs are in random order, and each level runs once before any level is repeated.
    "Scaling" in the documentation defines the laws.

    Parameters
    ----------
    job
        Job to run; None to fit the existing runs in the directory without running any.
    directory
        New directory of the series; None for one in ``sbench-runs``.
    keys
        Objects to read.
    numbers
        Concurrency levels, at least three.
    repeats
        Number of runs per level.
    seed
        Seed of the order of the runs, and of the intervals.
    max_cost
        Cost limit of all runs together, in dollars.
    keep
        Whether to keep the objects of the runs in the store.
    resume
        Whether to reuse completed runs in the directory.
    on_run
        Called after each run with a text about its position in the series, and the run.
    listener
        Custom display.

    Returns
    -------
    ScaleFit
        Fits of the valid runs.

    Raises
    ------
    UsageError
        If there are too few levels, or the executor runs a single function at a time.
    CostError
        If the runs are expected to cost more than ``max_cost``.
    SbenchError
        If a run is cut short; ``exit_code`` is the exit code of that run.

    Examples
    --------
    >>> found = sbench.scale(writing, "scaled", numbers=(1, 2, 4), repeats=1)
    >>> [row["number"] for row in found.to_json()["throughput_bytes_per_s"]["rows"]]
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
        order = [*interleaved(_checked(numbers), repeats, seed)]
        series = series_in(directory, "scale", keep=keep, resume=resume, listener=listener)
        root, planned = series.root, len(order)
        runs = [*_measured(series, task, order, on_run)]
    sample = sample_of(runs, label=str(root), directory=root)
    check_comparable([sample], allowed=_VARIES)
    return ScaleFit(
        fits=_fits(runs, seed=seed), simulated=sample.simulated, complete=len(runs) == planned
    )


def check_side_by_side(executor: str) -> None:
    """Reject a variation of concurrency if the executor does not support it.

    Raises
    ------
    UsageError
        If the executor runs a single function at a time.
    """
    if info_of(executor).in_process:
        raise UsageError(
            f"{executor} runs one function at a time", hint=f"`executor` {DEFAULT_EXECUTOR}"
        )


def _checked(numbers: Iterable[int]) -> list[int]:
    different = sorted(set(numbers))
    if len(different) < 3 or different[0] < 1:
        text = ",".join(map(str, numbers))
        raise UsageError(
            f"`numbers` {text!r} are not three different numbers of functions",
            hint="preferably use six: `numbers` 1,3,10,30,100,300",
        )
    return different


def with_functions(task: Task, number: int) -> Task:
    """Return a copy of a task with this concurrency, and as many functions."""
    return replace(task, job=replace(task.job, number=number, concurrency=number))


def _measured(
    series: JobSeries, task: Task, order: Sequence[tuple[int, int]], on_run: OnScaleRun
) -> Iterator[MeasuredRun]:
    """Run the task at each concurrency level, and yield the valid runs."""
    smallest = with_functions(task, min(number for _, number in order))
    check_cost([smallest, *(with_functions(task, number) for _, number in order)])
    with series.keep_store(needed=task.embedded):
        # The first run on a newly started store is slow.
        series.run(smallest, "warm-up/1")
        for done, (turn, number) in enumerate(order, 1):
            name = f"{number}-{turn}"
            series.run(with_functions(task, number), name, accept=_COME_TO_AN_END)
            for run in _usable([series.root / name], series.listener):
                on_run(f"run {done} of {len(order)}: {format_count(number, 'function')}", run)
                yield run


def _usable(directories: Iterable[Path], listener: Listener) -> Iterator[MeasuredRun]:
    """Yield the valid runs, and report the others."""
    for directory in directories:
        try:
            yield measured_run(load_run(directory, detail=False))
        except UsageError as exc:
            listener.note([f"left out: {exc}"])


def _fits(runs: Sequence[MeasuredRun], *, seed: int) -> dict[str, Scaling]:
    """Return the fits of the overall throughput, and of the steady throughput if all runs have it.

    Raises
    ------
    UsageError
        If the runs have too few different concurrency levels.
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
    """Return a law in JSON; a cap or a knee that the runs did not reach is null.

    It was not reached if its interval extends to the largest measured number.
    """

    def value(read: Callable[[Any], float], limit: float = inf) -> dict[str, float | None]:
        interval = fitted.interval(read)
        values = {"value": read(fitted.law)}
        if interval is not None:
            values |= {"low": interval[0], "high": interval[1]}
        reached = {n: None if v >= limit or isinf(v) else v for n, v in values.items()}
        return reached if reached.get("high", 0.0) is not None else {**reached, "value": None}

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
