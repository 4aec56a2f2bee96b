"""The run that a command is about: its directory, its name, or the last one."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from serverless_bench.cli.flags.options import DEFAULT_RUN_DIR, run_dir_option
from serverless_bench.cli.output.terminal import aside

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class RunName(click.ParamType):  # type: ignore[type-arg] # as PluginName
    """A run's directory or its name; the shell completes names."""

    name = "run"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem]":
        """Return the names of saved runs that begin so, and leave paths to the shell."""
        from click.shell_completion import CompletionItem

        from serverless_bench.rundir.listing import entries

        del param
        names = [entry.name for entry in entries(ctx.params.get("run_dir") or DEFAULT_RUN_DIR)]
        found = [CompletionItem(name) for name in names if name.startswith(incomplete)]
        return found or [CompletionItem(incomplete, type="dir")]


def run_argument(command: Callable[..., Any]) -> Callable[..., Any]:
    """Declare RUN and hand the command its ``directory``; without one it is the latest run."""

    @wraps(command)
    def found(*, run: str | None, run_dir: Path, **flags: object) -> object:
        return command(the_run(run, run_dir), **flags)

    declare = click.argument("run", type=RunName(), required=False, metavar="[RUN]")
    return declare(run_dir_option(found))


def the_run(run: str | None, run_dir: Path) -> Path:
    """Return the directory of a run; which one it is, is said where nobody named it.

    Raises
    ------
    ArchiveError
        If there is none.
    """
    from serverless_bench.rundir.listing import find_run, latest_run

    if run is not None:
        return find_run(run, run_dir)
    latest = latest_run(run_dir)
    aside(f"the latest run: {latest}")
    return latest


def runs_named(name: str, run_dir: Path) -> Path:
    """Return a directory with one or several runs in it: of that path, or of that name.

    Raises
    ------
    ArchiveError
        If there is none.
    """
    from serverless_bench.rundir.listing import find_run

    for path in (Path(name), run_dir / name):
        if path.is_dir():
            return path
    return find_run(name, run_dir)
