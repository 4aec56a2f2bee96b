"""Sides that run in turns, block by block: for ``ab`` and ``history check``."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from serverless_bench.cli.task import run_directory, run_task, store_kept_up
from serverless_bench.cli.user_command import run_command
from serverless_bench.errors import UsageError

if TYPE_CHECKING:
    from serverless_bench.analysis.samples import MeasuredRun, Sample
    from serverless_bench.cli.job import Prepared

Side = Callable[[Path, str], "MeasuredRun"]
"""Makes a run, given the directory of the side and the name of the block, and measures it."""


def side_of_task(task: "Prepared", *, keep: bool) -> Side:
    """Return a side whose runs are a task's, each in a directory named after its block."""
    from serverless_bench.analysis.samples import measured_run

    def run(folder: Path, block: str) -> "MeasuredRun":
        # Every run finds the store as the others do: without the objects of the last.
        with run_directory(folder / block, keep=keep) as directory:
            return measured_run(run_task(task, directory))

    return run


def side_of_command(words: Sequence[str], *, keep: bool) -> Side:
    """Return a side whose runs a command of the user's makes, which names them itself."""

    def run(folder: Path, block: str) -> "MeasuredRun":
        return run_command(words, (folder / block).parent, keep=keep)

    return run


def run_in_turns(
    sides: Mapping[str, Side],
    root: Path,
    flags: Mapping[str, Any],
    *,
    embedded: bool,
    show: Callable[[str, "MeasuredRun"], None],
) -> "dict[str, Sequence[MeasuredRun]]":
    """Run each side once in every block, in random order; return its runs but the warm-ups.

    Parameters
    ----------
    sides
        By label.
    root
        Where the series lies.
    flags
        ``blocks`` and ``warm_up_blocks``: how many; ``seed`` of the order; ``allow``: settings
        that may differ although they make another job of it.
    embedded
        Whether it is known that a side uses the embedded store.
    show
        Gets the block and the label as words, and the run.

    Raises
    ------
    UsageError
        If the sides do not do the same work.
    CutOff
        If a run fails.
    """
    import numpy as np

    from serverless_bench.analysis.samples import check_comparable

    runs: dict[str, list[MeasuredRun]] = {label: [] for label in sides}
    rng, warm_ups = np.random.default_rng(flags["seed"]), flags["warm_up_blocks"]
    with ExitStack() as kept:
        kept.enter_context(store_kept_up(needed=embedded))
        for title, block in _blocks(warm_ups, flags["blocks"]):
            for label in map(str, rng.permutation(list(sides))):
                run = sides[label](root / label.lower(), block)
                if run.settings.get("target.store") and not embedded:
                    # It would start anew for each command, which takes seconds.
                    kept.enter_context(store_kept_up(needed=True))
                    embedded = True
                runs[label].append(run)
                show(f"{title}: {label}", run)
            check_comparable(samples(runs, root), allowed=flags["allow"])
    return {label: made[warm_ups:] for label, made in runs.items()}


def check_blocks(blocks: int, warm_ups: int, *, least: int) -> None:
    """Refuse a series that is too short for a verdict.

    Raises
    ------
    UsageError
        If it has fewer than ``least`` blocks, or fewer than no warm-ups.
    """
    if blocks < least or warm_ups < 0:
        raise UsageError(
            f"--blocks must be at least {least} and --warm-up-blocks 0,"
            f" got {blocks} and {warm_ups}",
            hint="fewer runs allow no verdict",
        )


def _blocks(warm_ups: int, blocks: int) -> Iterator[tuple[str, str]]:
    """Yield a title and a directory name for each block."""
    # Those of the warm-up lie one deeper, where ``sbench compare`` does not look.
    for number in range(1, warm_ups + 1):
        yield f"warm-up {number} of {warm_ups}", f"warm-up/{number}"
    for number in range(1, blocks + 1):
        yield f"block {number} of {blocks}", f"{number:0{len(str(blocks))}}"


def samples(runs: Mapping[str, Sequence["MeasuredRun"]], root: Path) -> list["Sample"]:
    """Return the runs of each side as a sample, by its label."""
    from serverless_bench.analysis.samples import sample_of

    return [
        sample_of(made, label=label, directory=root / label.lower()) for label, made in runs.items()
    ]
