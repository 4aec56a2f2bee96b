"""Run a job in short blocks with a change in each, and name what bounds it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Final

from serverless_bench.base.errors import INCOMPLETE, UsageError
from serverless_bench.base.units import NS_PER_S, format_seconds
from serverless_bench.driver.task import Listener, Task
from serverless_bench.features.compare.runs import check_cost, series_in, task_of
from serverless_bench.features.scale.measure import check_side_by_side
from serverless_bench.features.why.blocks import least_block_s
from serverless_bench.features.why.elasticity import MIN_BLOCKS
from serverless_bench.features.why.interventions import Interventions, changes_for, plan_of
from serverless_bench.features.why.result import Why
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.types import at_least
from serverless_bench.metrics.clock_offsets import worker_offsets
from serverless_bench.rundir.run import Run

PILOT_S: Final = 3.0
"""Duration of the run without changes that comes first."""
_SHORTEST_S: Final = 0.25
_FEWEST: Final = 3
"""Complete blocks without which there is nothing to compare."""
_MARGIN: Final = 1.1
"""Of blocks over the shortest that the pilot's request times allow."""


def why(  # noqa: PLR0913 - the flags of the command
    job: JobSpec | Task,
    directory: str | Path | None = None,
    *,
    keys: Sequence[str] = (),
    budget_s: float = 60.0,
    block_s: float | None = None,
    seed: int = 0,
    max_cost: float | None = None,
    keep: bool = False,
    resume: bool = False,
    on_plan: Callable[[str], object] = lambda _: None,
    listener: Listener | None = None,
) -> Why:
    """Find the bottleneck of a job by changes in short blocks of time, like ``sbench why``.

    A short run without changes shows how long requests take. In the second run all functions
    change the same thing in the same short blocks, in random order with unchanged blocks between
    them. "Proof of the bottleneck" in the documentation lists the changes and the
    causes.

    Parameters
    ----------
    job
        Job to run; its duration is set.
    directory
        New directory of the series; None for one in ``sbench-runs``.
    keys
        Objects to read.
    budget_s
        Duration of the blocks together.
    block_s
        Length of a block; by default as short as the requests allow.
    seed
        Seed of the order of the changes.
    max_cost, keep, resume, listener
        Same as for ``limit``.
    on_plan
        Called with the time and the cost before the first run, and with the blocks before the
        second.

    Returns
    -------
    Why
        The cause, and the effect of each change.

    Raises
    ------
    UsageError
        If the job has too few functions, they do not run at the same time, or blocks would be too
        short for its requests.
    CostError
        If the runs are expected to cost more than ``max_cost``.
    SbenchError
        If a run is cut short; ``exit_code`` is the exit code of that run.

    Examples
    --------
    >>> try:
    ...     sbench.why(replace(writing, number=1))
    ... except sbench.SbenchError as error:
    ...     print(error)
    `number` must be at least 2, got 1
    """
    task = job if isinstance(job, Task) else task_of(job, keys, max_cost=max_cost)
    changes = _changes(task.job)
    _check_budget(changes, block_s or _SHORTEST_S, budget_s)
    load = replace(task.job.load, rate=None, operations=None)
    pilot = replace(
        task, job=replace(task.job, duration=PILOT_S, load=load).with_options(until_stable=None)
    )
    timed = replace(pilot, job=replace(pilot.job, duration=budget_s))
    cost = check_cost([pilot, timed])
    price = f" and costs about {cost}" if cost else ""
    on_plan(f"takes about {format_seconds(PILOT_S + budget_s)}{price}")
    series = series_in(directory, "why", keep=keep, resume=resume, listener=listener)
    with series.keep_store(needed=task.embedded):
        plan = _plan(series.run(pilot, "pilot"), changes, block_s, budget_s, seed)
        count = int(budget_s / plan.block_s * 2 / 3 / len(changes))
        on_plan(
            f"blocks of {format_seconds(plan.block_s)}: {count} for each of {len(changes)} changes"
        )
        # Blocks end with the first function that fails; the rest of them continue.
        run = series.run(
            replace(timed, job=timed.job.with_options(interventions=plan)),
            "blocks",
            accept={INCOMPLETE},
        )
    # A run that is reused may have other blocks.
    answer = Why(run=run, plan=plan_of(run.job) or plan)
    if len(answer.numbers) < _FEWEST:
        raise UsageError("the functions did not run at the same time", hint="a longer `budget`")
    return answer


def _changes(job: JobSpec) -> tuple[str, ...]:
    """Return the changes of a job; half of its functions are changed while the others run.

    Raises
    ------
    UsageError
        If there are too few functions, or they do not run at the same time.
    """
    check_side_by_side(job.executor)
    least = 2 * (1 + len(job.endpoints))
    at_least("number", job.number, least, hint="half of them are changed while the others run")
    at_least(
        "concurrency",
        job.concurrency,
        job.number,
        hint=f"with `concurrency` {job.number}, all of them run at the same time",
    )
    return changes_for(job)


def _check_budget(changes: Sequence[str], block_s: float, budget_s: float) -> None:
    """Reject a budget without room for enough blocks of each change."""
    least_s = 1.5 * (MIN_BLOCKS + 1) * len(changes) * block_s
    if budget_s < least_s:
        raise UsageError(
            f"{len(changes)} changes in blocks of {format_seconds(block_s)} need more time than"
            f" {format_seconds(budget_s)}",
            hint=f"`budget` of at least {format_seconds(ceil(least_s))}, or smaller objects",
        )


def _plan(
    pilot: Run, changes: tuple[str, ...], block_s: float | None, budget_s: float, seed: int
) -> Interventions:
    """Return the blocks for requests that take as long as those of the pilot run.

    Raises
    ------
    UsageError
        If the blocks are too short for the requests, too few, or the clocks of the functions
        differ by more than the part of a block that is left out.
    """
    least_s = _MARGIN * least_block_s(pilot)
    chosen_s = block_s or max(_SHORTEST_S, ceil(20 * least_s) / 20)
    if chosen_s < least_s / _MARGIN:
        raise UsageError(
            f"blocks of {format_seconds(chosen_s)} are too short for these requests",
            hint=f"`block` of at least {format_seconds(least_s)}, or smaller objects",
        )
    _check_budget(changes, chosen_s, budget_s)
    apart_s = float(abs(worker_offsets(pilot).best_ns).max(initial=0)) / NS_PER_S
    if apart_s > chosen_s / 8:
        raise UsageError(
            f"the clocks of the functions differ by {format_seconds(apart_s)}",
            hint="synchronize them (NTP), or use longer blocks: `block`",
        )
    return Interventions(
        changes=changes, block_s=chosen_s, endpoints=1 + len(pilot.job.endpoints), seed=seed
    )
