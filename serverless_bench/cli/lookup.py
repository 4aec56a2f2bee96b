"""Lookup of runs: that of a command, by directory, name or as the latest, and that of a read."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from serverless_bench.base.errors import SbenchError
from serverless_bench.cli.flags.options import run_dir_option
from serverless_bench.cli.output.terminal import aside
from serverless_bench.cli.process import load_numpy
from serverless_bench.rundir.listing import DEFAULT_ROOT, HEADER, entries, find_run, latest_run

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from serverless_bench.job.spec import JobSpec
    from serverless_bench.rundir.run import Run


def latest_where(run_dir: Path, accepts: "Callable[[Path, JobSpec], bool]") -> Path | None:
    """Return the latest run that a condition accepts and ``sbench clean`` has not begun to clean.

    Damaged runs are skipped.
    """
    runs = [entry.path for entry in entries(run_dir) if entry.is_run]
    if not runs:
        return None
    # Import libraries only now, so that the message for an invalid flag does not wait for them.
    from serverless_bench.rundir.files import refuse_cleaned
    from serverless_bench.rundir.run import read_header
    from serverless_bench.rundir.schema import check_header

    for path in runs:
        with suppress(SbenchError):
            # The records of other runs may be large, and there may be many of them.
            if accepts(path, check_header(path / HEADER, read_header(path))):
                refuse_cleaned(path)
                return path
    return None


def named_source(context: click.Context, flags: Mapping[str, Any], run_dir: Path) -> dict[str, Any]:
    """Return the settings for reading the objects of the run that ``--from`` names, if it does."""
    if not flags.get("from"):
        return {}
    from serverless_bench.rundir.run import load_run

    saved = load_run(find_run(flags["from"], run_dir), detail=False)
    return settings_of(context, saved, flags, trust=flags.get("trust", False))


def settings_of(
    context: click.Context, saved: "Run", flags: Mapping[str, Any], *, trust: bool
) -> dict[str, Any]:
    """Return the settings for reading the objects of a run, without those that the user gave."""
    from serverless_bench.driver.origin import confirm
    from serverless_bench.driver.source import settings_to_read

    if places := confirm(saved, trust=trust):
        aside(places)
    return settings_to_read(saved, given_flags(context, flags))


def given_flags(context: click.Context, flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags that the user gave: in the command line, the environment or a file."""
    usual = (None, ParameterSource.DEFAULT)
    return {
        name: value
        for name, value in flags.items()
        if context.get_parameter_source(name) not in usual
    }


class RunName(click.ParamType):  # type: ignore[type-arg] # as PluginName
    """Directory or name of a run, with shell completion of names."""

    name = "run"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem]":
        """Return the names of saved runs with this prefix, or let the shell complete paths."""
        from click.shell_completion import CompletionItem

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
    directory = latest_run(run_dir) if run is None else find_run(run, run_dir)
    if run is None:
        aside(f"the latest run: {directory}")
    # All callers read the run next, which takes NumPy.
    load_numpy()
    return directory
