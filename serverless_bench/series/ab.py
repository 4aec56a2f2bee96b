"""Two jobs in turns, and whether the second is faster."""

from collections.abc import Collection, Sequence
from pathlib import Path

from serverless_bench.analysis.run_comparison import DEFAULT_METRIC, RunComparison, compare_sides
from serverless_bench.analysis.samples import more_is_better
from serverless_bench.series.runs import series_in
from serverless_bench.series.task import Listener
from serverless_bench.series.turns import OnRun, Side, Turns, run_in_turns
from serverless_bench.statistics.requirements import require_scipy
from serverless_bench.statistics.unpaired import MIN_RUNS
from serverless_bench.statistics.verdict import THRESHOLD


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
    """Run two jobs in turns and compare them, as ``sbench ab`` does.

    Each block runs both once, in random order, so that a store that gets slower by the hour
    does so for both.

    Parameters
    ----------
    a, b
        A job, or a command that makes one run, as in ``"old/bin/sbench write --number 4"``.
    directory
        New directory of the series; None for one in ``sbench-runs``. Runs of the sides lie
        in ``a`` and ``b``.
    keys
        Objects that jobs read.
    blocks
        Runs of each side, four at least.
    warm_up_blocks
        Blocks that come first and are not compared.
    metric, threshold, allow
        As in ``compare``.
    seed
        Of the order of the runs.
    keep
        Whether the objects of the runs stay in the store.
    resume
        Whether runs that have come to their end in the directory are taken, and not made again.
    on_run
        Called with the block and the side in words, and the run, after each.
    listener
        For a display of your own.

    Returns
    -------
    RunComparison
        Of B with A.

    Raises
    ------
    UsageError
        If there are too few blocks, or the jobs do not do the same work.
    SbenchError
        If a run does not come to a good end; ``exit_code`` is that run's.

    Examples
    --------
    >>> larger = replace(writing, transfer=sbench.Transfer(block_bytes=2 * MIB))
    >>> found = sbench.ab(writing, larger, "ab", blocks=4, warm_up_blocks=0)
    >>> [side["runs"] for side in found.to_json()["sides"]]
    [4, 4]
    >>> found.to_json() == sbench.compare("ab/a", "ab/b").to_json()
    True
    """
    require_scipy()
    more_is_better(metric)
    turns = Turns(
        blocks=blocks,
        warm_up_blocks=warm_up_blocks,
        least=MIN_RUNS,
        seed=seed,
        allow=allow,
        on_run=on_run,
    )
    series = series_in(directory, "ab", keep=keep, resume=resume, listener=listener)
    samples = run_in_turns(series, {"A": a, "B": b}, turns, keys)
    with series.listener.working("comparing the runs"):
        return compare_sides(samples, metric=metric, threshold=threshold, allowed=allow)
