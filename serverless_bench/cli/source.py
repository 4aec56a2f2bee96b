"""The run that wrote the objects of a read."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from serverless_bench.base.errors import SbenchError
from serverless_bench.cli.output.terminal import aside

if TYPE_CHECKING:
    from serverless_bench.job.spec import JobSpec
    from serverless_bench.rundir.run import Run


def latest_where(run_dir: Path, accepts: "Callable[[Path, JobSpec], bool]") -> Path | None:
    """Return the latest run that a condition accepts and ``sbench clean`` has not begun to clean.

    Damaged runs are skipped.
    """
    from serverless_bench.rundir.listing import HEADER, entries

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
    from serverless_bench.rundir.listing import find_run
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
