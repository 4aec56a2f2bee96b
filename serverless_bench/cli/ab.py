"""``sbench ab``."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from serverless_bench.analysis.requirements import require_scipy
from serverless_bench.cli.compare import (
    compare_options,
    conclude,
)
from serverless_bench.cli.options import (
    DEFAULT_RUN_DIR,
    FILE,
    FOLDER,
    group,
    keep_option,
    new_name,
    option,
)
from serverless_bench.cli.pages import require_pages
from serverless_bench.cli.task import load_task, run_directory, run_task, store_kept_up
from serverless_bench.cli.terminal import say, working
from serverless_bench.errors import UsageError

if TYPE_CHECKING:
    from serverless_bench.analysis.samples import MeasuredRun, Sample

series_options = group(
    option("--seed", type=int, default=0, help="Of the order of the runs."),
    keep_option,
    option(
        "--run-dir",
        type=FOLDER,
        default=DEFAULT_RUN_DIR,
        help="Directory that the series goes into.",
    ),
    option("--name", help="Name of the series; a time stamp without it."),
)


@click.command("ab")
@click.argument("a", type=FILE, metavar="A.toml")
@click.argument("b", type=FILE, metavar="B.toml")
@option("--blocks", type=int, default=6, help="Runs of each side.")
@option(
    "--warm-up-blocks",
    type=int,
    default=1,
    help="Blocks that come first and are not compared.",
)
@series_options
@compare_options
def command(
    a: Path,
    b: Path,
    blocks: int,
    warm_up_blocks: int,
    name: str | None,
    run_dir: Path,
    **flags: Any,  # noqa: ANN401 - the shared groups of flags
) -> int:
    """Run two jobs in turns and compare them.

    Each block runs both once, in random order, so that a store that gets slower by the
    hour does so for both. A store that has just started is slow, which the first block is for.
    """
    require_scipy()
    require_pages(flags["format"])
    import numpy as np

    from serverless_bench.analysis.compare import MIN_RUNS
    from serverless_bench.analysis.run_comparison import compare_sides
    from serverless_bench.analysis.samples import check_comparable, measured_run, more_is_better
    from serverless_bench.reporters.comparison import format_metric

    more_is_better(flags["metric"])
    check_blocks(blocks, warm_up_blocks, least=MIN_RUNS)
    tasks = {"A": load_task(a), "B": load_task(b)}
    root = run_dir / new_name("ab", name)
    metric, quiet = flags["metric"], flags["format"] != "text"
    runs: dict[str, list[MeasuredRun]] = {label: [] for label in tasks}
    rng = np.random.default_rng(flags["seed"])
    with store_kept_up(needed=any(task.embedded for task in tasks.values())):
        for title, block in blocks_of(warm_up_blocks, blocks):
            for label in map(str, rng.permutation(list(tasks))):
                # Every run finds the store as the others do: without the objects of the last.
                with run_directory(root / label.lower() / block, keep=flags["keep"]) as directory:
                    run = measured_run(run_task(tasks[label], directory))
                runs[label].append(run)
                value = format_metric(metric, run.metric(metric))
                say(f"{title}: {label} {value}  {run.path}", err=quiet)
            check_comparable(sides(runs, root), allowed=flags["allow"])
    counted = {label: made[warm_up_blocks:] for label, made in runs.items()}
    with working("comparing the runs"):
        comparison = compare_sides(
            sides(counted, root),
            metric=metric,
            threshold=flags["threshold"],
            allowed=flags["allow"],
        )
    return conclude(comparison, flags["format"])


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


def blocks_of(warm_ups: int, blocks: int) -> Iterator[tuple[str, str]]:
    """Yield a title and a directory name for each block."""
    # Those of the warm-up lie one deeper, where ``sbench compare`` does not look.
    for number in range(1, warm_ups + 1):
        yield f"warm-up {number} of {warm_ups}", f"warm-up/{number}"
    for number in range(1, blocks + 1):
        yield f"block {number} of {blocks}", f"{number:0{len(str(blocks))}}"


def sides(runs: Mapping[str, Sequence["MeasuredRun"]], root: Path) -> list["Sample"]:
    """Return the runs of each side as a sample, by its label."""
    from serverless_bench.analysis.samples import sample_of

    return [
        sample_of(made, label=label, directory=root / label.lower()) for label, made in runs.items()
    ]
