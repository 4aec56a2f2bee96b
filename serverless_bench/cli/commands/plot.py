"""``sbench plot``."""

from pathlib import Path

import click

from serverless_bench.cli.flags.options import FILE, option, run_dir_option
from serverless_bench.cli.lookup import RunName, the_run
from serverless_bench.cli.output.terminal import say, working


@click.command("plot")
@click.argument("runs", nargs=-1, type=RunName(), metavar="[RUN]...")
@run_dir_option
@click.option(
    "--output",
    type=FILE,
    help="Picture to write, a .png, .svg or .pdf file.  [default: RUN/figure.png]",
)
@option(
    "--latency", is_flag=True, help="Plot latencies even of runs that do not show them by default."
)
def command(runs: tuple[str, ...], run_dir: Path, output: Path | None, *, latency: bool) -> None:
    """Plot a run, or a write and its read, into a single picture.

    RUN is the name or the directory of a run; the default is the latest run.
    """
    directories = [the_run(run, run_dir) for run in runs or (None,)]
    from serverless_bench.report.picture import figure
    from serverless_bench.rundir.run import load_run

    saved_runs = [load_run(directory) for directory in directories]
    path = output or saved_runs[-1].path / "figure.png"
    with working("drawing the picture"):
        figure(saved_runs, latency=latency).save(path)
    say(f"figure: {path}")
