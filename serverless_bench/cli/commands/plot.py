"""``sbench plot``."""

import os
from collections.abc import Sequence
from contextlib import chdir
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from serverless_bench.cli.flags.options import FILE, harmless, run_dir_option
from serverless_bench.cli.lookup import RunName, the_run
from serverless_bench.cli.output.terminal import say, working
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
@harmless("--latency", is_flag=True, help="Draw how long operations took, also of a plain run.")
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


def load_matplotlib() -> None:
    """Import Matplotlib, without the settings that lie in the current directory.

    It looks for a ``matplotlibrc`` there before it looks where its user has one: LaTeX would run,
    or a file that cannot be read would end the command.

    Raises
    ------
    PluginError
        If it is not installed.
    """
    require_plots()
    from serverless_bench.process import environment

    if Path("matplotlibrc").exists():
        paths = {name: os.environ.get(name) for name in ("MATPLOTLIBRC", "MPLCONFIGDIR")}
        own = {name: path and str(Path(path).absolute()) for name, path in paths.items()}
        with environment(own), chdir("/"):
            import matplotlib as mpl

            del mpl


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
    load_matplotlib()
    from serverless_bench.reporters.plots import figure
    from serverless_bench.rundir.files import replacing

    drawn = figure(runs, latency=latency)
    try:
        with replacing(path) as file:
            drawn.savefig(file, dpi=120, format=path.suffix.removeprefix(".") or None)
    except (OSError, ValueError) as exc:
        raise ArchiveError(f"cannot write {path}: {exc}", hint="choose another --output") from exc
