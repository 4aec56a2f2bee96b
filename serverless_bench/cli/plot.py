"""``sbench plot``."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from serverless_bench.cli.lookup import RunName, the_run
from serverless_bench.cli.options import FILE, option, run_dir_option
from serverless_bench.cli.terminal import say, working
from serverless_bench.errors import ArchiveError, PluginError

if TYPE_CHECKING:
    from serverless_bench.rundir.run import Run


@click.command("plot")
@click.argument("runs", nargs=-1, type=RunName(), metavar="[RUN]...")
@run_dir_option
@click.option(
    "--output",
    type=FILE,
    help="Picture to write, in the format that its name says.  [default: RUN/figure.png]",
)
@option("--latency", is_flag=True, help="Draw how long operations took, also of a plain run.")
def command(runs: tuple[str, ...], run_dir: Path, output: Path | None, *, latency: bool) -> None:
    """Draw one run, or a write and its read, into one picture.

    RUN is a run's name or its directory; the latest run without it.
    """
    from serverless_bench.rundir.run import load_run

    found = [load_run(the_run(run, run_dir)) for run in runs or (None,)]
    path = output or found[-1].path / "figure.png"
    with working("drawing the picture"):
        save_figure(found, path, latency=latency)
    say(f"figure: {path}")


def require_plots() -> None:
    """Check that the library is there, before anything runs whose end is a picture.

    Raises
    ------
    PluginError
        If matplotlib is not installed.
    """
    if find_spec("matplotlib") is None:
        raise PluginError(
            "plots need 'matplotlib', which is not installed",
            hint="pip install matplotlib",
        )


def save_figure(runs: "Sequence[Run]", path: Path, *, latency: bool = False) -> None:
    """Draw ``runs`` and save the picture.

    Parameters
    ----------
    runs, latency
        As in ``plots.figure``.
    path
        Its end says which format. It takes the place of another file; a link is not followed.

    Raises
    ------
    PluginError
        If matplotlib is not installed.
    ArchiveError
        If the picture cannot be written.
    """
    require_plots()
    from serverless_bench.plots import figure
    from serverless_bench.rundir.files import replacing

    drawn = figure(runs, latency=latency)
    try:
        with replacing(path) as file:
            drawn.savefig(file, dpi=120, format=path.suffix.removeprefix(".") or None)
    except (OSError, ValueError) as exc:
        raise ArchiveError(f"cannot write {path}: {exc}", hint="choose another --output") from exc
