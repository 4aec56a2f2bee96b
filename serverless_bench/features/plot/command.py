"""``sbench plot``."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from serverless_bench.cli.flags.options import FILE, option, run_dir_option
from serverless_bench.cli.lookup import RunName, the_run
from serverless_bench.cli.output.terminal import say, working
from serverless_bench.features.answers.showing import answer_of

if TYPE_CHECKING:
    from serverless_bench.features.plot.picture import Picture


@click.command("plot")
@click.argument("runs", nargs=-1, type=RunName(), metavar="[RUN]...")
@run_dir_option
@click.option(
    "--output",
    type=FILE,
    help="Picture to write, a .png, .svg or .pdf file.  [default: RUN/plot.png]",
)
@option(
    "--latency", is_flag=True, help="Plot latencies even of runs that do not show them by default."
)
def command(runs: tuple[str, ...], run_dir: Path, output: Path | None, *, latency: bool) -> None:
    """Plot a run, or a write and its read, into a single picture.

    RUN is the name or the directory of a run, or of a series of runs; the default is the latest
    run.
    """
    if len(runs) == 1 and (series := answer_of(runs[0], run_dir)) is not None:
        from serverless_bench.features.plot.answer_charts import answer_picture

        path, answer = series
        _save(partial(answer_picture, answer, runs[0]), output or path / "plot.png")
        return
    directories = [the_run(run, run_dir) for run in runs or (None,)]
    from serverless_bench.features.plot.picture import figure
    from serverless_bench.rundir.run import load_run

    saved_runs = [load_run(directory) for directory in directories]
    _save(partial(figure, saved_runs, latency=latency), output or saved_runs[-1].path / "plot.png")


def _save(draw: "Callable[[], Picture]", path: Path) -> None:
    with working("drawing the picture"):
        draw().save(path)
    say(f"plot: {path}")
