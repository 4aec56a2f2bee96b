"""Jobs of commands that run a job repeatedly, in the form that ``series`` needs."""

from collections.abc import Callable, Collection, Iterator, Mapping
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from serverless_bench.base.errors import SbenchError, UsageError, suggestion
from serverless_bench.base.user_files import read_toml
from serverless_bench.cli.flags.options import spelled
from serverless_bench.cli.job import prepare
from serverless_bench.cli.lookup import named_source
from serverless_bench.cli.main import COMMANDS as ALL_COMMANDS
from serverless_bench.cli.main import LEFT, open_command
from serverless_bench.cli.output.terminal import aside, complain, note, working
from serverless_bench.features.stages.prepared import as_key, check_keys, flags_of
from serverless_bench.job.setting_schema import located
from serverless_bench.job.settings import declared
from serverless_bench.job.workload import WORKLOADS, Trait, Workload, open_workload

if TYPE_CHECKING:
    from serverless_bench.driver.task import Listener, Task
    from serverless_bench.job.spec import JobSpec


def commands_where(declares: Callable[[Workload], bool]) -> dict[str, click.Command]:
    """Return the commands of the workloads that satisfy a condition."""
    return {
        name: open_command(name)
        for name in WORKLOADS
        if name in ALL_COMMANDS and declares(open_workload(name))
    }


COMMANDS: Final = commands_where(lambda workload: Trait.DEALS_OBJECTS in workload.traits)
"""Commands of workloads that transfer objects."""
OWN_FLAGS: Final = frozenset({"format", "name", "pickle", "run_dir", "from", "trust"})
"""Parameters of these commands that the repeating command sets."""


def job_parameters(
    commands: Mapping[str, click.Command], decided: Collection[str]
) -> Iterator[click.Parameter]:
    """Yield the parameters of these commands, except ``decided``; shared flags are yielded once."""
    seen = set(decided)
    for parameter in (param for command in commands.values() for param in command.params):
        if parameter.name not in seen:
            seen.add(str(parameter.name))
            yield _shared(parameter, commands.values())


def _shared(parameter: click.Parameter, commands: Collection[click.Command]) -> click.Parameter:
    """Return a flag with a help text that is true for each of the commands that have it."""
    texts = {
        other.help or ""
        for command in commands
        for other in command.params
        if isinstance(other, click.Option) and other.name == parameter.name
    }
    if len(texts) < 2:
        return parameter
    shared = copy(parameter)
    usual = "  [default: that of the job]" if any("[default: " in text for text in texts) else ""
    vars(shared)["help"] = f"{declared()[str(parameter.name)].meaning.what}{usual}"
    return shared


def flags_of_job(
    context: click.Context,
    commands: Mapping[str, click.Command],
    job: str,
    flags: Mapping[str, Any],
    decided: Collection[str],
) -> dict[str, Any]:
    """Return the flags that belong to the job, out of the flags of all ``commands``.

    Parameters
    ----------
    context
        Context of the command that declares the flags of all jobs.
    commands, decided
        Same as for ``job_parameters``.
    job
        Name of the command to run.
    flags
        Values of all flags by parameter name, including defaults.

    Raises
    ------
    UsageError
        If the user gave a flag that this job does not have.
    """
    own = {str(parameter.name) for parameter in commands[job].params}
    own -= {*decided, *_overwritten(job)}
    for parameter in job_parameters(commands, decided):
        name = str(parameter.name)
        given = context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        if given and name not in own:
            raise UsageError(f"{job} has no {parameter.opts[0]}", hint=f"sbench {job} --help")
    if "from" in own:
        flags = {**flags, **named_source(context, flags, flags["run_dir"])}
    return {name: flags[name] for name in own - {"from", "trust"}}


def _overwritten(job: str) -> tuple[str, ...]:
    """Return the flags that name an output file, which each run would overwrite."""
    return () if "key_file" in open_workload(job).settings else ("key_file",)


def listener() -> "Listener":
    """Return a listener that prints the progress and the problems of a series.

    If objects stay, the command ends with their exit code.
    """
    from serverless_bench.driver.task import Listener
    from serverless_bench.features.compare.runs import ObjectsStay

    def complain_and_end(error: SbenchError) -> None:
        code = complain(error)
        if isinstance(error, ObjectsStay):
            click.get_current_context().meta[LEFT] = code

    return Listener(note=note, aside=aside, complain=complain_and_end, working=working)


def prepare_task(workload: str, flags: Mapping[str, Any]) -> "Task":
    """Check the flags of a job that prints no report and gets the run directory later.

    Raises
    ------
    UsageError
        If a flag is invalid.
    PluginError
        If a client or executor is unknown, or its library is not installed.
    """
    own = {"run_dir": Path(), "name": "any", "format": None, "pickle": None}
    return prepare(workload, {**flags, **own}).task()


def task_in_one_batch(context: click.Context, task: "Task") -> "Task":
    """Return the task with as many functions as run at once, unless the user said how many.

    In every block all functions have to take part, and a second batch would double its time.
    """
    source = context.get_parameter_source("number")
    if source is not click.core.ParameterSource.DEFAULT or task.keys:
        return task
    return replace(task, job=in_one_batch(task.job))


def in_one_batch(job: "JobSpec") -> "JobSpec":
    """Return the job with as many functions as run at once."""
    return replace(job, number=job.max_concurrency, concurrency=job.max_concurrency)


def load_task(path: Path) -> "Task":
    """Return the task that a job file describes.

    ``command`` is the name of a command in ``COMMANDS``, and the remaining keys are its flags,
    spelled like in sbench.toml. The environment and sbench.toml supply the missing flags.

    Raises
    ------
    UsageError
        If the file cannot be read, or has a key that is not a flag of the command.
    """
    data = read_toml(path, "the job file", hint="sbench examples wire.toml writes an example")
    name = data.pop("command", None)
    if not isinstance(name, str) or name not in COMMANDS:
        problem = "command is missing" if name is None else f"unknown command {name!r}"
        raise UsageError(f"{path}: {problem}", hint=suggestion(str(name), COMMANDS))
    command = COMMANDS[name]
    with located(str(path), as_key):
        check_keys(command, data, without=map(spelled, {*OWN_FLAGS, *_overwritten(name)}))
        flags = flags_of(command, {spelled(key): value for key, value in data.items()})
        return prepare_task(name, flags)
