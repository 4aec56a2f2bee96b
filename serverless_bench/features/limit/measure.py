"""Search for a limit by running the job at each requested level."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from serverless_bench.base.clock import monotonic_ns
from serverless_bench.base.errors import INCOMPLETE, UsageError
from serverless_bench.base.units import NS_PER_S, format_seconds
from serverless_bench.driver.task import Listener, Task
from serverless_bench.features.compare.runs import series_in, task_of
from serverless_bench.features.compare.verdict import require_scipy
from serverless_bench.features.limit.block import Block, Objective, block_of
from serverless_bench.features.limit.result import Limit, result_of
from serverless_bench.features.limit.search import Search
from serverless_bench.features.scale.measure import check_side_by_side
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.types import wrong
from serverless_bench.rundir.run import Run

SETTLING: Final = 0.2
"""Share of a block that is excluded, while connections are opened and queues fill."""
_RANGES: Final = {"rate": (10, 100_000), "number": (1, 1000)}
_RANGE: Final = (1, 256)
OnBlock = Callable[[Block, Objective], object]


KNOBS: Final[Mapping[str, Callable[[JobSpec, int], JobSpec]]] = {
    "rate": lambda job, level: replace(job, load=replace(job.load, rate=level)),
    "number": lambda job, level: replace(job, number=level, concurrency=level),
    "connections": lambda job, level: replace(
        job, transfer=replace(job.transfer, connections=level)
    ),
    "threads": lambda job, level: replace(job, load=replace(job.load, threads=level)),
}
"""Functions that set the level of a job, by the varied parameter."""


def limit(  # noqa: PLR0913 - the flags of the command
    job: JobSpec | Task,
    directory: str | Path | None = None,
    *,
    keys: Sequence[str] = (),
    p99_s: float | None = None,
    errors: float | None = None,
    over: str = "rate",
    lowest: int | None = None,
    highest: int | None = None,
    precision: float = 0.05,
    budget_s: float = 600.0,
    block_s: float = 5.0,
    seed: int = 0,
    max_cost: float | None = None,
    keep: bool = False,
    resume: bool = False,
    on_block: OnBlock = lambda *_: None,
    listener: Listener | None = None,
) -> Limit:
    """Find the highest rate, or number of functions, that meets an objective.

    Levels double until a level breaks it, followed by rounds of short runs at levels around the
    limit, in random order, until the limit is known precisely enough or the budget is spent, like
    ``sbench limit``. "Limit" in the documentation lists the
    guarantees of the interval.

    Parameters
    ----------
    job
        Job to run; the search sets its duration, number of operations and level.
    directory
        New directory of the series; None for one in ``sbench-runs``.
    keys
        Objects to read.
    p99_s
        Maximum duration of 99 of 100 operations in seconds.
    errors
        Allowed share of operations that fail or do not start: 0.001 for 0.1 %.
    over
        Parameter to vary: ``rate`` in operations per second, ``number`` of functions,
        ``connections`` or ``threads`` per function.
    lowest, highest
        First and last level; by default 10 to 100,000 for a rate, 1 to 1,000 functions, 1 to 256
        connections or threads.
    precision
        Half-width of the interval relative to the limit at which the search ends.
    budget_s
        Maximum duration; no run starts that would exceed it.
    block_s
        Duration of a run.
    seed
        Seed of the order of the levels, and of the runs.
    max_cost
        Cost limit of all runs together, in dollars.
    keep
        Whether to keep the objects of the runs in the store.
    resume
        Whether to reuse completed runs in the directory.
    on_block
        Called with the result of each run and the objective.
    listener
        Custom display.

    Returns
    -------
    Limit
        The limit with an interval, and a row per level.

    Raises
    ------
    UsageError
        If there is no objective, or a level or a time is invalid.
    CostError
        If a run is expected to cost more than the remainder of ``max_cost``.
    SbenchError
        If a run is cut short; ``exit_code`` is the exit code of that run.

    Examples
    --------
    >>> quick = {"lowest": 10, "highest": 20, "block_s": 0.3, "precision": 0.2}
    >>> found = sbench.limit(writing, "limit", p99_s=5.0, budget_s=5.0, **quick)
    >>> found.over, found.to_json()["rows"][0]["level"]
    ('rate', 10)
    """
    require_scipy()
    task = job if isinstance(job, Task) else task_of(job, keys, max_cost=max_cost)
    objective = Objective(p99_s=p99_s, errors=errors)
    first, last = _levels(over, lowest, highest)
    _check_times(block_s, budget_s, lowest=first if over == "rate" else None)
    if over == "number":
        check_side_by_side(task.job.executor)
    load = replace(task.job.load, rate=None, operations=None)
    timed = replace(task.job, duration=block_s, load=load).with_options(until_stable=None)
    search = Search(
        allowed=objective.allowed, lowest=first, highest=last, precision=precision, seed=seed
    )
    series = series_in(directory, "limit", keep=keep, resume=resume, listener=listener)
    blocks, begun_ns, settle_s = list[Block](), monotonic_ns(), SETTLING * block_s

    def run(name: str, level: int) -> Run:
        # Use different seeds, so that runs have different random arrival times.
        at_level = replace(KNOBS[over](timed, level), seed=seed + len(blocks))
        # Failed functions are a possible result of an excessive level.
        return series.run(replace(task, job=at_level), name, accept={INCOMPLETE})

    with series.keep_store(needed=task.embedded):
        # The first run on a newly started store is slow.
        run("warm-up/1", first)
        for block in _blocks(search, objective, run, settle_s, begun_ns + budget_s * NS_PER_S):
            blocks.append(block)
            on_block(block, objective)
    took_s = (monotonic_ns() - begun_ns) / NS_PER_S
    return result_of(
        search, blocks, objective, over=over, block_s=block_s, settle_s=settle_s, took_s=took_s
    )


def _blocks(
    search: Search,
    objective: Objective,
    run: Callable[[str, int], Run],
    settle_s: float,
    until_ns: float,
) -> Iterator[Block]:
    """Yield blocks until the limit is known, or the remaining time may be too short."""
    longest_ns, tried = 0, Counter[int]()
    while (level := search.next_level()) is not None:
        begun_ns = monotonic_ns()
        if tried and begun_ns + longest_ns > until_ns:
            return
        tried[level] += 1
        block = block_of(run(f"{level}-{tried[level]}", level), level, settle_s)
        longest_ns = max(longest_ns, monotonic_ns() - begun_ns)
        search.add(level, block.bad(objective), block.due)
        yield block


def _levels(over: str, lowest: int | None, highest: int | None) -> tuple[int, int]:
    """Return the first and the last level.

    Raises
    ------
    UsageError
        If ``over`` is unknown, or the first level is above the last.
    """
    if over not in KNOBS:
        raise wrong("over", f"must be one of {', '.join(KNOBS)}, got {over!r}")
    low, high = _RANGES.get(over, _RANGE)
    first = lowest or low
    last = highest or max(high, first)
    if first > last:
        raise UsageError(f"`lowest` {first} is above `highest` {last}", hint="swap them")
    return first, last


def _check_times(block_s: float, budget_s: float, *, lowest: int | None) -> None:
    """Reject blocks that would exceed the budget, or in which no operation would start."""
    if block_s > budget_s:
        raise UsageError(
            f"`block` {format_seconds(block_s)} is longer than `budget` {format_seconds(budget_s)}",
            hint='a search needs many blocks; see "Limit" in the documentation',
        )
    if lowest is not None and lowest * block_s < 1:
        raise UsageError(
            f"at `lowest` {lowest} no operation starts in a `block` of {format_seconds(block_s)}",
            hint=f"`block` of at least {format_seconds(1 / lowest)}, or a higher `lowest`",
        )
