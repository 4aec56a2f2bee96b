"""Lookup of the run that a command works on: a directory, a name, or the latest run."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from serverless_bench.cli.flags.options import run_dir_option
from serverless_bench.cli.output.terminal import aside
from serverless_bench.cli.process import load_numpy

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class RunName(click.ParamType):  # type: ignore[type-arg] # as PluginName
    """Directory or name of a run, with shell completion of names."""

    name = "run"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem]":
        """Return the names of saved runs with this prefix, or let the shell complete paths."""
        from click.shell_completion import CompletionItem

        from serverless_bench.rundir.listing import DEFAULT_ROOT, entries

        del param
        names = [entry.name for entry in entries(ctx.params.get("run_dir") or DEFAULT_ROOT)]
        items = [CompletionItem(name) for name in names if name.startswith(incomplete)]
        return items or [CompletionItem(incomplete, type="dir")]


def run_argument(command: Callable[..., Any]) -> Callable[..., Any]:
    """Declare the argument RUN, and pass its ``directory`` to the command; default: latest run."""

    @wraps(command)
    def with_directory(*, run: str | None, run_dir: Path, **flags: object) -> object:
        return command(the_run(run, run_dir), **flags)

    declare = click.argument("run", type=RunName(), required=False, metavar="[RUN]")
    return declare(run_dir_option(with_directory))


def the_run(run: str | None, run_dir: Path) -> Path:
    """Return the directory of a run; print the choice if the user named no run.

    Raises
    ------
    ArchiveError
        If the run does not exist.
    """
    from serverless_bench.rundir.listing import find_run, latest_run

    directory = latest_run(run_dir) if run is None else find_run(run, run_dir)
    if run is None:
        aside(f"the latest run: {directory}")
    # All callers read the run next, which takes NumPy.
    load_numpy()
    return directory
