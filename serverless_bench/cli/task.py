"""``write`` or ``read`` as a thing that ``ab`` and ``scale`` run again and again."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from serverless_bench.cli.commands.read import command as read_command
from serverless_bench.cli.commands.write import command as write_command
from serverless_bench.cli.flags.from_files import check_known, flags_of
from serverless_bench.cli.flags.names import as_key, spelled
from serverless_bench.cli.job import Prepared, prepare, run
from serverless_bench.cli.output.terminal import aside, working
from serverless_bench.errors import INTERRUPTED, SbenchError, UsageError
from serverless_bench.executors import info_of
from serverless_bench.job.defaults import DEFAULT_EXECUTOR
from serverless_bench.settings.schema import located
from serverless_bench.user_files import read_toml

if TYPE_CHECKING:
    from serverless_bench.rundir.run import Run

COMMANDS: Final[Mapping[str, click.Command]] = {"read": read_command, "write": write_command}
"""In this order, because of two flags of one name the help of the first is shown."""
OWN_FLAGS: Final = frozenset({"format", "name", "pickle", "run_dir"})
"""Parameters of these commands that whoever repeats them decides."""


def job_parameters(
    commands: Mapping[str, click.Command], decided: Collection[str]
) -> Iterator[click.Parameter]:
    """Yield the flags of several commands, once each, but for those that are decided."""
    seen = set(decided)
    for parameter in (one for command in commands.values() for one in command.params):
        if parameter.name not in seen:
            seen.add(str(parameter.name))
            yield parameter


def flags_of_job(
    context: click.Context,
    commands: Mapping[str, click.Command],
    job: str,
    flags: Mapping[str, Any],
    decided: Collection[str],
) -> dict[str, Any]:
    """Return those of the flags of several commands that are this job's.

    Parameters
    ----------
    context
        Of the command that has the flags of all of them.
    commands, decided
        As for ``job_parameters``.
    job
        Which of the commands is to run.
    flags
        All that the user gave, or not, by parameter name.

    Raises
    ------
    UsageError
        If one of another job is given.
    """
    own = {str(parameter.name) for parameter in commands[job].params} - set(decided)
    if job == "write":
        # It would be overwritten by every run.
        own.discard("key_file")
    for parameter in job_parameters(commands, decided):
        name = str(parameter.name)
        given = context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        if given and name not in own:
            raise UsageError(f"{job} has no {parameter.opts[0]}", hint=f"sbench {job} --help")
    return {name: flags[name] for name in own}


def check_side_by_side(flags: Mapping[str, Any]) -> None:
    """Refuse to raise the number of functions at once where there is one.

    Raises
    ------
    UsageError
        If the executor runs one after the other.
    """
    executor = flags["executor"]
    if info_of(executor).in_process:
        raise UsageError(
            f"{executor} runs one function at a time", hint=f"--executor {DEFAULT_EXECUTOR}"
        )


class CutOff(SbenchError):
    """A run among several did not come to a good end; ``exit_code`` is that run's."""

    def __init__(self, directory: Path, exit_code: int) -> None:
        if exit_code == INTERRUPTED:
            super().__init__("interrupted; the runs so far are saved")
        else:
            super().__init__(f"the run in {directory} ended with exit code {exit_code}")
        self.hint = f"sbench report {directory}"
        self.exit_code = exit_code


def prepare_task(workload: str, flags: Mapping[str, Any]) -> Prepared:
    """Check the flags of a run that reports nothing; where it goes is said when it runs.

    Raises
    ------
    UsageError
        If one is wrong.
    PluginError
        If a client or executor is unknown or lacks its library.
    """
    own = {"run_dir": Path(), "name": "any", "format": None, "pickle": None}
    return prepare(workload, {**flags, **own})


def run_task(task: Prepared, directory: Path, **changes: object) -> "Run":
    """Run a task into a new run directory, without a word on standard output.

    Raises
    ------
    CutOff
        If the run has not come to a good end.
    """
    done = run(task.again(run_dir=directory.parent, name=directory.name, **changes))
    if done.exit_code:
        raise CutOff(directory, done.exit_code)
    return done.run


def load_task(path: Path) -> Prepared:
    """Return the task that a job file describes.

    ``command`` is write or read, and every other key is a flag of it, spelled as in
    sbench.toml. What the file does not say comes from the environment and sbench.toml.

    Raises
    ------
    UsageError
        If the file cannot be read, or names something that the command does not know.
    """
    data = read_toml(path, "the job file")
    name = data.pop("command", None)
    if not isinstance(name, str) or name not in COMMANDS:
        raise UsageError(
            f"{path}: the command is {name!r}", hint='command = "write" or command = "read"'
        )
    command = COMMANDS[name]
    with located(str(path), as_key):
        check_known(command, data, without=map(spelled, OWN_FLAGS))
        flags = flags_of(command, {spelled(key): value for key, value in data.items()})
        return prepare_task(name, flags)


@contextmanager
def store_kept_up(*, needed: bool) -> Iterator[None]:
    """Keep the embedded store up from run to run if one of them uses it.

    Only a lease: its credentials are in the environment during the runs that need them,
    because another task may go to a store with credentials of its own.
    """
    from serverless_bench.stores.embedded import Lease, default_directory

    lease = Lease.take(default_directory()) if needed else None
    try:
        yield
    finally:
        if lease is not None:
            lease.release()


@contextmanager
def run_directory(directory: Path, *, keep: bool) -> Iterator[Path]:
    """Yield the directory for a run; in the end, the objects of that run are deleted."""
    try:
        yield directory
    finally:
        if not keep and (directory / "run.json").exists():
            from serverless_bench.driver.clean import clean

            with working(f"deleting what {directory} wrote"):
                clean(directory, on_message=aside)
