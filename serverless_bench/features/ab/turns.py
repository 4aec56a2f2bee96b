"""Run sides, which are jobs or commands, alternately in blocks; ``ab`` compares two sides."""

import os
import shlex
import subprocess
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from signal import SIGINT
from typing import Final

from serverless_bench.base.errors import UsageError
from serverless_bench.driver.task import Listener, Task
from serverless_bench.features.compare.run_comparison import (
    DEFAULT_METRIC,
    RunComparison,
    compare_sides,
)
from serverless_bench.features.compare.runs import (
    CutOff,
    JobSeries,
    check_cost,
    interleaved,
    series_in,
    task_of,
)
from serverless_bench.features.compare.samples import (
    MeasuredRun,
    Sample,
    check_comparable,
    measured_run,
    more_is_better,
    sample_of,
)
from serverless_bench.features.compare.verdict import MIN_BLOCKS, THRESHOLD
from serverless_bench.job.spec import JobSpec
from serverless_bench.rundir.run import load_run

Side = JobSpec | Task | str
"""A job, a task, or a command that creates a single run."""
OnRun = Callable[[str, MeasuredRun], object]
"""Callback with the block and the label as text, and the run."""
_HINT: Final = "write a command like '.venv/bin/sbench write --number 4', without --run-dir"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """Number and order of the runs of each side.

    Raises
    ------
    UsageError
        If there are too few blocks for a verdict, or ``warm_up_blocks`` is negative.
    """

    blocks: int
    warm_up_blocks: int
    """Number of blocks at the start that are excluded."""
    seed: int
    allow: Collection[str] = ()
    """Settings that may differ although they change the work of the job."""
    on_run: OnRun = lambda *_: None

    def __post_init__(self) -> None:
        if self.blocks < MIN_BLOCKS or self.warm_up_blocks < 0:
            raise UsageError(
                f"`blocks` must be at least {MIN_BLOCKS} and `warm_up_blocks` 0,"
                f" got {self.blocks} and {self.warm_up_blocks}",
                hint="a verdict needs more runs",
            )

    def order(self, labels: Sequence[str]) -> Iterator[tuple[int, str]]:
        """Yield the number of each block, from 1, with its sides in order."""
        yield from interleaved(labels, self.warm_up_blocks, self.seed)
        # A separate call, so that the blocks that count are balanced.
        for number, label in interleaved(labels, self.blocks, self.seed):
            yield self.warm_up_blocks + number, label

    def block(self, number: int) -> tuple[str, str]:
        """Return the title and the directory name of a block."""
        if number <= self.warm_up_blocks:
            # Warm-up runs are in a subdirectory, which ``sbench compare`` ignores.
            return f"warm-up {number} of {self.warm_up_blocks}", f"warm-up/{number}"
        number -= self.warm_up_blocks
        width = len(str(self.blocks))
        return f"block {number} of {self.blocks}", f"{number:0{width}}"


def run_interleaved(
    series: JobSeries, sides: Mapping[str, Side], turns: Turns, keys: Sequence[str] = ()
) -> list[Sample]:
    """Run each side once per block in balanced order; return its runs without the warm-up.

    Parameters
    ----------
    series
        Series that contains a directory per side, named by its label in lower case.
    sides
        Sides by label.
    turns
        Number and order of the blocks.
    keys
        Objects that the jobs read.

    Raises
    ------
    UsageError
        If the sides differ in their work.
    CostError
        If the runs are expected to cost more than the limit of a side.
    CutOff
        If a run fails.
    """
    ready = {label: _ready(side, keys, label) for label, side in sides.items()}
    tasks = [side for side in ready.values() if isinstance(side, Task)]
    check_cost(task for task in tasks for _ in range(turns.warm_up_blocks + turns.blocks))
    runs: dict[str, list[MeasuredRun]] = {label: [] for label in sides}
    embedded = any(task.embedded for task in tasks)
    with ExitStack() as kept:
        kept.enter_context(series.keep_store(needed=embedded))
        for number, label in turns.order([*sides]):
            title, folder = turns.block(number)
            run = _measured(series, ready[label], Path(label.lower(), folder))
            if run.settings.get("target.store") and not embedded:
                # Otherwise it would start for each command, which takes seconds.
                kept.enter_context(series.keep_store(needed=True))
                embedded = True
            runs[label].append(run)
            turns.on_run(f"{title}: {label}", run)
            if len({len(measured_runs) for measured_runs in runs.values()}) == 1:
                check_comparable(_samples(runs, series.root), allowed=turns.allow)
    return _samples(
        {label: measured_runs[turns.warm_up_blocks :] for label, measured_runs in runs.items()},
        series.root,
    )


def _ready(side: Side, keys: Sequence[str], label: str) -> Task | tuple[str, ...]:
    """Return a task, or the words of a command split like in a shell, without expansion.

    Raises
    ------
    UsageError
        If a command is empty, or has an unclosed quotation.
    """
    if isinstance(side, Task):
        return side
    if isinstance(side, JobSpec):
        return task_of(side, keys)
    try:
        words = shlex.split(side)
    except ValueError as exc:
        raise UsageError(f"`{label}` is not a command: {exc}", hint=_HINT) from None
    if not words:
        raise UsageError(f"`{label}` is missing", hint=_HINT)
    return tuple(words)


def _measured(series: JobSeries, side: Task | tuple[str, ...], place: Path) -> MeasuredRun:
    if isinstance(side, Task):
        return measured_run(series.run(side, str(place)))
    return run_command(series, side, (series.root / place).parent)


def _samples(runs: Mapping[str, Sequence[MeasuredRun]], root: Path) -> list[Sample]:
    return [
        sample_of(measured_runs, label=label, directory=root / label.lower())
        for label, measured_runs in runs.items()
    ]


def run_command(series: JobSeries, command: Sequence[str], folder: Path) -> MeasuredRun:
    """Run a command, and return the run that it created in the folder.

    The objects of the run are deleted unless they are kept.

    Raises
    ------
    UsageError
        If it cannot be started, fails without a run, or does not create exactly one run.
    CutOff
        If the run failed.
    """
    before = _runs(folder)
    try:
        code, last = _started(command, folder)
        created = sorted(_runs(folder) - before)
        if code > 0 and len(created) == 1:
            raise CutOff(created[0], code)
        if code:
            raise UsageError(f"{shlex.join(command)} ended with exit code {code}: {last}")
        if len(created) != 1:
            raise UsageError(
                f"{shlex.join(command)} created {len(created)} runs in {folder} instead of one",
                hint="the directory is in SBENCH_RUN_DIR; " + _HINT,
            )
        return measured_run(load_run(created[0], detail=False))
    finally:
        for directory in _runs(folder) - before:
            series.delete(directory)


def _runs(folder: Path) -> set[Path]:
    return {header.parent for header in folder.glob("*/run.json")}


def _started(command: Sequence[str], folder: Path) -> tuple[int, str]:
    """Run a command; return its exit code and the last line of its standard error."""
    environment = {**os.environ, "SBENCH_RUN_DIR": str(folder.absolute())}
    # Remove the name, because consecutive runs need different names.
    environment.pop("SBENCH_NAME", None)
    try:
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
    except OSError as exc:
        raise UsageError(f"cannot start {command[0]}: {exc.strerror}", hint=_HINT) from exc
    with process:
        try:
            stderr = process.communicate()[1]
        except BaseException:
            # An interrupted run saves its records.
            process.send_signal(SIGINT)
            process.wait()
            raise
    lines = [line for line in stderr.splitlines() if line.strip()]
    return process.returncode, (lines or ["no error message"])[-1][:500]


def ab(  # noqa: PLR0913 - the flags of the command
    a: Side,
    b: Side,
    directory: str | Path | None = None,
    *,
    keys: Sequence[str] = (),
    blocks: int = 6,
    warm_up_blocks: int = 1,
    metric: str = DEFAULT_METRIC,
    threshold: float = THRESHOLD,
    allow: Collection[str] = (),
    seed: int = 0,
    keep: bool = False,
    resume: bool = False,
    on_run: OnRun = lambda *_: None,
    listener: Listener | None = None,
) -> RunComparison:
    """Run two jobs alternately and compare them, like ``sbench ab``.

    Each block runs both jobs once, with A first in half of the blocks, so that both are affected
    equally if the store becomes slower over time. They are compared within blocks.

    Parameters
    ----------
    a, b
        A job, or a command that creates one run, such as ``"old/bin/sbench write --number 4"``.
    directory
        New directory of the series; None for one in ``sbench-runs``. Its subdirectories ``a`` and
        ``b`` contain the runs of the sides.
    keys
        Objects that the jobs read.
    blocks
        Number of runs of each side, at least six.
    warm_up_blocks
        Number of blocks at the start that are excluded from the comparison.
    metric, threshold, allow
        See ``compare``.
    seed
        Seed of the order of the runs.
    keep
        Whether to keep the objects of the runs in the store.
    resume
        Whether to reuse completed runs in the directory.
    on_run
        Called after each run with the block and the side as text, and the run.
    listener
        Custom display.

    Returns
    -------
    RunComparison
        Comparison of B with A.

    Raises
    ------
    UsageError
        If there are too few blocks, or the jobs differ in their work.
    SbenchError
        If a run fails; ``exit_code`` is the exit code of that run.

    Examples
    --------
    >>> larger = replace(writing, transfer=sbench.Transfer(block_size=2 * MIB))
    >>> found = sbench.ab(writing, larger, "ab", blocks=6, warm_up_blocks=0)
    >>> [side["runs"] for side in found.to_json()["sides"]]
    [6, 6]
    >>> found.to_json() == sbench.compare("ab/a", "ab/b").to_json()
    True
    """
    more_is_better(metric)
    turns = Turns(
        blocks=blocks,
        warm_up_blocks=warm_up_blocks,
        seed=seed,
        allow=allow,
        on_run=on_run,
    )
    series = series_in(directory, "ab", keep=keep, resume=resume, listener=listener)
    samples = run_interleaved(series, {"A": a, "B": b}, turns, keys)
    with series.listener.working("comparing the runs"):
        return compare_sides(samples, metric=metric, threshold=threshold, allowed=allow)
