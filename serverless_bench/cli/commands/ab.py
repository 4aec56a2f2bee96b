"""``sbench ab``."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from serverless_bench.analysis.requirements import require_scipy
from serverless_bench.cli.commands.compare import (
    compare_options,
    conclude,
)
from serverless_bench.cli.flags.options import (
    DEFAULT_RUN_DIR,
    FOLDER,
    group,
    harmless,
    keep_option,
    new_name,
    option,
)
from serverless_bench.cli.job import Prepared
from serverless_bench.cli.output.pages import require_pages
from serverless_bench.cli.output.terminal import say, working
from serverless_bench.cli.task import load_task
from serverless_bench.cli.turns import (
    Side,
    check_blocks,
    run_in_turns,
    samples,
    side_of_command,
    side_of_task,
)
from serverless_bench.cli.user_command import words_of

if TYPE_CHECKING:
    from serverless_bench.analysis.samples import MeasuredRun

series_options = group(
    harmless("--seed", type=int, default=0, help="Of the order of the runs."),
    keep_option,
    option(
        "--run-dir",
        type=FOLDER,
        default=DEFAULT_RUN_DIR,
        help="Directory that the series goes into.",
    ),
    harmless("--name", help="Name of the series; a time stamp without it."),
)


@click.command("ab")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@harmless("--blocks", type=int, default=6, help="Runs of each side.")
@harmless(
    "--warm-up-blocks",
    type=int,
    default=1,
    help="Blocks that come first and are not compared.",
)
@series_options
@compare_options
def command(
    a: str,
    b: str,
    name: str | None,
    run_dir: Path,
    **flags: Any,  # noqa: ANN401 - the shared groups of flags
) -> int:
    """Run two jobs in turns and compare them.

    A and B are job files, or commands that each make one run, as 'sbench write --threads 8'.

    Each block runs both once, in random order, so that a store that gets slower by the
    hour does so for both. A store that has just started is slow, which the first block is for.
    """
    require_scipy()
    require_pages(flags["format"])
    from serverless_bench.analysis.run_comparison import compare_sides
    from serverless_bench.analysis.samples import more_is_better
    from serverless_bench.reporters.comparison import format_metric
    from serverless_bench.statistics.unpaired import MIN_RUNS

    metric, keep, quiet = flags["metric"], flags["keep"], flags["format"] != "text"
    more_is_better(metric)
    check_blocks(flags["blocks"], flags["warm_up_blocks"], least=MIN_RUNS)
    tasks = {"A": _task(a), "B": _task(b)}
    root = run_dir / new_name("ab", name)

    def show(turn: str, run: "MeasuredRun") -> None:
        say(f"{turn} {format_metric(metric, run.metric(metric))}  {run.path}", err=quiet)

    runs = run_in_turns(
        {label: _side(task, keep=keep) for label, task in tasks.items()},
        root,
        flags,
        embedded=any(isinstance(task, Prepared) and task.embedded for task in tasks.values()),
        show=show,
    )
    with working("comparing the runs"):
        comparison = compare_sides(
            samples(runs, root),
            metric=metric,
            threshold=flags["threshold"],
            allowed=flags["allow"],
        )
    return conclude(comparison, flags["format"])


def _task(text: str) -> Prepared | list[str]:
    """Return the job of a file, or the words of a command: what has several is no file's name."""
    if len(text.split()) > 1 and not Path(text).exists():
        return words_of(text, repr(text))
    return load_task(Path(text))


def _side(task: Prepared | list[str], *, keep: bool) -> Side:
    if isinstance(task, Prepared):
        return side_of_task(task, keep=keep)
    return side_of_command(task, keep=keep)
