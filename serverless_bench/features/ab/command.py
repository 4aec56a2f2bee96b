"""``sbench ab``."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from serverless_bench.base.errors import UsageError
from serverless_bench.cli.flags.of_jobs import settings
from serverless_bench.cli.flags.options import (
    FOLDER,
    group,
    keep_option,
    new_name,
    option,
)
from serverless_bench.cli.output.terminal import say, sections
from serverless_bench.features.compare.command import compare_options, conclude
from serverless_bench.features.compare.task import listener, load_task
from serverless_bench.rundir.listing import DEFAULT_ROOT

if TYPE_CHECKING:
    from serverless_bench.driver.task import Task

series_options = group(
    settings(
        *("seed", "name"),
        seed="Seed for the order of the runs.",
        name="Name of the series.  [default: a time stamp]",
    ),
    keep_option,
    option(
        "--run-dir",
        type=FOLDER,
        default=DEFAULT_ROOT,
        help="Parent directory of the series.",
    ),
)


resume_option = click.option(
    "--resume",
    type=click.Path(path_type=Path),
    help="Resume the series with this name, or in this directory: the other arguments again, and"
    " the runs that are complete.",
)


def series_root(kind: str, name: str | None, run_dir: Path, resume: Path | None) -> Path:
    """Return the directory of a series, a new one or that of the series to resume.

    Raises
    ------
    UsageError
        If there is no such series, or the name is invalid.
    """
    if resume is None:
        return run_dir / new_name(kind, name)
    root = resume if resume.is_dir() else run_dir / resume
    if not root.is_dir():
        raise UsageError(f"there is no series {str(resume)!r}", hint="sbench ls lists them")
    return root


@sections({"Series": "blocks warm-up-blocks metric threshold allow resume"})
@click.command("ab")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@option("--blocks", type=int, default=6, help="Runs of each side.")
@option(
    "--warm-up-blocks",
    type=int,
    default=1,
    help="Blocks at the start that are not compared.",
)
@series_options
@resume_option
@compare_options
def command(
    a: str,
    b: str,
    name: str | None,
    run_dir: Path,
    resume: Path | None,
    **flags: Any,
) -> int:
    """Run two jobs, interleaved, and compare them.

    A and B are job files, or commands that make a run, such as 'sbench write --threads 8'.

    Each block runs both jobs once, and half of the blocks run A first, so that a store that
    slows down over time affects both. The first block is a warm-up, because a store that has
    just started is slow.
    """
    metric, style = flags["metric"], flags.pop("format")
    sides = _side(a), _side(b)
    # Import the libraries of the series only after the jobs are checked.
    from serverless_bench.features.ab.turns import ab
    from serverless_bench.features.compare.report import format_metric

    root = series_root("ab", name, run_dir, resume)
    comparison = ab(
        *sides,
        root,
        resume=resume is not None,
        on_run=lambda turn, run: say(
            f"{turn} {format_metric(metric, run.metric(metric))}  {run.path}", err=style != "text"
        ),
        listener=listener(),
        **flags,
    )
    return conclude(comparison, style, root)


def _side(text: str) -> "Task | str":
    """Return the task of a job file, or the text of a command, which has more than one word."""
    if len(text.split()) > 1 and not Path(text).exists():
        return text
    return load_task(Path(text))
