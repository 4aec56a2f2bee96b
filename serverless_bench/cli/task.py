"""Jobs of commands that run them again and again, as a series takes them."""

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from serverless_bench.cli.flags.names import as_key, spelled
from serverless_bench.cli.job import prepare
from serverless_bench.cli.main import COMMANDS as ALL_COMMANDS
from serverless_bench.cli.main import open_command
from serverless_bench.cli.nested import check_known, flags_of
from serverless_bench.cli.output.terminal import aside, complain, note, working
from serverless_bench.errors import UsageError
from serverless_bench.job.workload import WORKLOADS, Workload, open_workload
from serverless_bench.settings.schema import located
from serverless_bench.user_files import read_toml

if TYPE_CHECKING:
    from serverless_bench.series.runs import Listener, Task


def commands_where(declares: Callable[[Workload], bool]) -> dict[str, click.Command]:
    """Return the commands of workloads by their declaration."""
    return {
        name: open_command(name)
        for name in WORKLOADS
        if name in ALL_COMMANDS and declares(open_workload(name))
    }


COMMANDS: Final = commands_where(lambda workload: workload.deals_objects)
"""Of those that move whole objects. Of two flags of one name the help of the first is shown."""
OWN_FLAGS: Final = frozenset({"format", "name", "pickle", "run_dir", "from", "trust"})
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
    own = {str(parameter.name) for parameter in commands[job].params}
    own -= {*decided, *_overwritten(job)}
    for parameter in job_parameters(commands, decided):
        name = str(parameter.name)
        given = context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        if given and name not in own:
            raise UsageError(f"{job} has no {parameter.opts[0]}", hint=f"sbench {job} --help")
    return {name: flags[name] for name in own}


def _overwritten(job: str) -> tuple[str, ...]:
    """Return the flags of a command that name a file which every run would write anew."""
    return () if "key_file" in open_workload(job).settings else ("key_file",)


def listener() -> "Listener":
    """Return what tells the user what happens beside the results of a series."""
    from serverless_bench.series.runs import Listener

    return Listener(note=note, aside=aside, complain=complain, working=working)


def prepare_task(workload: str, flags: Mapping[str, Any]) -> "Task":
    """Check the flags of a job that reports nothing; where its runs go is said when they run.

    Raises
    ------
    UsageError
        If one is wrong.
    PluginError
        If a client or executor is unknown or lacks its library.
    """
    own = {"run_dir": Path(), "name": "any", "format": None, "pickle": None}
    return prepare(workload, {**flags, **own}).task()


def load_task(path: Path) -> "Task":
    """Return the task that a job file describes.

    ``command`` is one of ``COMMANDS``, and every other key is a flag of it, spelled as in
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
            f"{path}: the command is {name!r}", hint=f"`command` is {' or '.join(COMMANDS)}"
        )
    command = COMMANDS[name]
    with located(str(path), as_key):
        check_known(command, data, without=map(spelled, {*OWN_FLAGS, *_overwritten(name)}))
        flags = flags_of(command, {spelled(key): value for key, value in data.items()})
        return prepare_task(name, flags)
