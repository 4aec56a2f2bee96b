"""``sbench plot``."""

from pathlib import Path

import click

from serverless_bench.cli.flags.options import FILE, harmless, run_dir_option
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
@harmless("--latency", is_flag=True, help="Draw how long operations took, also of a plain run.")
def command(runs: tuple[str, ...], run_dir: Path, output: Path | None, *, latency: bool) -> None:
    """Draw one run, or a write and its read, into one picture.

    RUN is a run's name or its directory; the latest run without it.
    """
    from serverless_bench.reporters.picture import figure
    from serverless_bench.rundir.run import load_run

    found = [load_run(the_run(run, run_dir)) for run in runs or (None,)]
    path = output or found[-1].path / "figure.png"
    with working("drawing the picture"):
        figure(found, latency=latency).save(path)
    say(f"figure: {path}")
