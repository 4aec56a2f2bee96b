"""Commands within commands: as a stage of a job file, or behind ``plan``.

Flags come from a file or from words; what those do not say comes from the environment and
sbench.toml.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from serverless_bench.cli.flags.defaults import defaults_for
from serverless_bench.cli.flags.names import as_key, spelled
from serverless_bench.cli.flags.of_jobs import TARGET
from serverless_bench.cli.job import Prepared, prepare
from serverless_bench.cli.main import COMMANDS as ALL_COMMANDS
from serverless_bench.cli.main import open_command
from serverless_bench.errors import UsageError
from serverless_bench.job.workload import WORKLOADS, open_workload
from serverless_bench.settings.job_file import JobFile, Kind, Setting, Stage
from serverless_bench.settings.schema import located

if TYPE_CHECKING:
    from serverless_bench.driver.outlook import JobPlan
    from serverless_bench.job.spec import JobSpec

_WORKLOADS: Final = {open_workload(name).command or name: name for name in WORKLOADS}
"""By the command that runs each."""
COMMANDS: Final = tuple(name for name in ALL_COMMANDS if name in _WORKLOADS)
_ABOUT_COMMAND: Final = frozenset(
    {
        "arch",
        "format",
        "memory",
        "model",
        "network_quota",
        "prices",
        "quota",
        "region",
        "runs",
        "show_prices",
        "simulate",
        "stack",
        "words",
    }
)
"""Flags before a command that say something of it."""
_OWN: Final = frozenset({"format", "from", "name", "pickle", "run-dir", "trust"})
"""Flags of these commands that ``sbench run`` decides."""
_SIZES: Final = frozenset({"mb", "size", "sizes"})
"""Flags of which a stage may have one: its own replaces one that is for all stages."""
_KEYS: Final = frozenset({"key", "key-file"})
STAGES: Final = tuple(name for name in ALL_COMMANDS if name in WORKLOADS)
"""Workloads of stages; each is the name of the command that runs it."""


def options_of(command: click.Command) -> dict[str, click.Parameter]:
    """Return the flags of a command, and what it takes without a flag, by how they are spelled."""
    return {spelled(parameter.name): parameter for parameter in command.params if parameter.name}


def check_known(command: click.Command, keys: Iterable[str], without: Iterable[str]) -> None:
    """Refuse keys that are no flags of a command.

    Parameters
    ----------
    command
        Of which they should be.
    keys
        As a file spells them.
    without
        Flags that the command has and the file may not set.

    Raises
    ------
    UsageError
        If there is one.
    """
    known = options_of(command).keys() - set(without)
    for key in keys:
        if spelled(key) not in known:
            raise UsageError(
                f"{command.name} has no flag {key!r}", hint=f"known: {', '.join(sorted(known))}"
            )


def flags_of(command: click.Command, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all flags of a command by parameter name, those given as they are.

    Parameters
    ----------
    command
        Whose flags.
    given
        Values by flag; of flags that the command does not have, nothing is taken.

    Raises
    ------
    UsageError
        If an argument is missing, or what the environment or sbench.toml says is wrong.
    """
    own = {flag: parameter for flag, parameter in options_of(command).items() if flag in given}
    arguments = []
    for parameter in command.params:
        if isinstance(parameter, click.Argument) and parameter.name:
            if parameter.name not in given:
                raise UsageError(f"{parameter.name} is missing")
            arguments.append(str(given[parameter.name]))
    try:
        context = command.make_context(
            str(command.name),
            arguments,
            parent=click.get_current_context(silent=True),
            default_map=defaults_for(command),
        )
    except click.ClickException as exc:
        # Some of click's messages have several lines.
        raise UsageError(" ".join(exc.format_message().split())) from exc
    return {**context.params, **{str(own[flag].name): given[flag] for flag in own}}


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedStage:
    """A stage that runs."""

    number: int
    """Among all stages, from 1."""
    stage: Stage
    flags: Mapping[str, Any]
    """Of its command, by parameter name."""
    prepared: Prepared
    """What it starts; with ``keys`` of another stage, these are examples."""

    @property
    def folder(self) -> str:
        """Name of its run directory."""
        return f"{self.number:02}-{self.stage.name}"


def steps_of(
    job: JobFile, given: Mapping[str, Setting], *, style: str = "text"
) -> Mapping[str, PreparedStage]:
    """Return the stages that run, by name, all checked, before any starts.

    Parameters
    ----------
    job
        The file.
    given
        Flags from the command line: they win over what the file says.
    style
        Name of the reporter.

    Raises
    ------
    UsageError
        If a flag is unknown or wrong; it names file, stage and flag.
    PluginError
        If something is unknown, or a library is missing.
    """
    _check_common(job)
    _check_given(job, given)
    steps: dict[str, PreparedStage] = {}
    for number, stage in enumerate(job.stages, start=1):
        if stage.kind is not Kind.CLEANUP:
            steps[stage.name] = _step(job, number, stage, given, steps, style)
    return steps


def _step(
    job: JobFile,
    number: int,
    stage: Stage,
    given: Mapping[str, Setting],
    before: Mapping[str, PreparedStage],
    style: str,
) -> PreparedStage:
    with located(f"{job.path}: {stage.where}", as_key):
        if stage.workload not in STAGES:
            what = f"workload is {stage.workload!r}"
            raise UsageError(what, hint=f"one of {', '.join(STAGES)}")
        flags = _flags(job, stage, open_command(stage.workload), given)
        flags |= {"name": "example", "run_dir": Path(), "format": style, "pickle": None}
        keys = None
        if stage.keys is not None:
            source = before[stage.keys]
            wanted = open_workload(stage.workload).source.partition(" ")[0]
            if source.stage.workload != wanted:
                raise UsageError(
                    f"keys names {stage.keys!r}, whose workload is {source.stage.workload!r}",
                    hint=f"what a stage of workload {wanted!r} wrote can be read",
                )
            from serverless_bench.driver.outlook import example_keys

            keys = tuple(example_keys(source.prepared.job, source.prepared.keys))
        prepared = prepare(stage.workload, flags, keys)
    return PreparedStage(number=number, stage=stage, flags=flags, prepared=prepared)


def given_flags(context: click.Context) -> dict[str, Setting]:
    """Return the flags of ``sbench run`` that stand on its command line."""
    return {
        spelled(parameter.name): _as_setting(context.params[parameter.name])
        for parameter in context.command.params
        if isinstance(parameter, click.Option)
        and parameter.name
        and spelled(parameter.name) not in {*_OWN, "dry-run"}
        and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
    }


def _as_setting(value: Any) -> Setting:  # noqa: ANN401 - whatever a flag has become
    if isinstance(value, tuple | list):
        return tuple(map(str, value))
    return value if isinstance(value, int | float) else str(value)


def _check_common(job: JobFile) -> None:
    """Refuse keys of [target] and [run] that no command has."""
    known = {flag for name in STAGES for flag in options_of(open_command(name))} - _OWN
    where = {"prefix", *map(spelled, TARGET)}
    for title, settings, allowed in (
        ("[target]", job.target, where),
        ("[run]", job.run, known - where - _KEYS),
    ):
        for key in settings:
            if spelled(key) not in allowed:
                raise UsageError(
                    f"{job.path}: {title}: unknown key {key!r}",
                    hint=f"known: {', '.join(sorted(allowed))}",
                )


def _check_given(job: JobFile, given: Mapping[str, Setting]) -> None:
    """Refuse a flag of the command line that changes no stage."""
    workloads = {stage.workload for stage in job.stages} & set(STAGES)
    known = {flag for name in workloads if name for flag in options_of(open_command(name))}
    for flag in given:
        if workloads and flag not in known:
            raise UsageError(f"--{flag} means nothing to the stages of {job.path}")


def _flags(
    job: JobFile, stage: Stage, command: click.Command, given: Mapping[str, Setting]
) -> dict[str, Any]:
    """Return the flags of a stage by parameter name."""
    workload = open_workload(stage.workload or "")
    writes = "operation" in workload.settings and stage.settings.get("operation") != "read"
    if stage.keys is not None and (writes or not workload.source):
        raise UsageError("keys is for what reads", hint='workload = "read"')
    check_known(command, stage.settings, without=_OWN)
    own = {spelled(key): value for key, value in stage.settings.items()}
    if stage.keys is not None and own.keys() & _KEYS:
        raise UsageError("keys and key-file both say what to read")
    common = {spelled(key): value for key, value in {**job.target, **job.run}.items()}
    if own.keys() & _SIZES:
        common = {flag: value for flag, value in common.items() if flag not in _SIZES}
    return flags_of(command, {**common, **own, **given})


def check_flags(words: Sequence[str]) -> None:
    """Refuse flags before a command that belong behind it.

    Raises
    ------
    UsageError
        If there is one: it would say nothing.
    """
    context = click.get_current_context()
    for parameter in context.command.params if words else ():
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name not in _ABOUT_COMMAND and source is ParameterSource.COMMANDLINE:
            flag = parameter.opts[-1]
            raise UsageError(
                f"{flag} stands before {words[0]}, where it says nothing of it",
                hint=f"give {flag} behind {words[0]}, if that has it",
            )


def plan_command(words: Sequence[str], **how: Any) -> "JobPlan":  # noqa: ANN401 - of plan
    """Return what a command would use and cost, if its functions ran on AWS Lambda.

    Parameters
    ----------
    words
        The command and its flags, as behind ``sbench``.
    how
        As in ``driver.outlook.plan``.

    Raises
    ------
    UsageError
        If there is no such command, or one of its flags is wrong.
    """
    from serverless_bench.driver.outlook import plan

    prepared = prepare_command(words)
    return plan(job_of(prepared), prepared.keys, **how)


def job_of(prepared: Prepared) -> "JobSpec":
    """Return the job of a command, as it would run where all its functions run at once."""
    # Elsewhere all functions are launched at once, unless the flags say otherwise.
    at_once = prepared.checked.settings.concurrency or prepared.job.number
    target, remote = prepared.job.target, prepared.checked.remote
    endpoints: Sequence[str] = (target.endpoint_url, *prepared.job.endpoints)
    if target.store is None and not target.endpoint_url:
        from serverless_bench.driver.target import configured_endpoints

        endpoints = tuple(configured_endpoints(target.protocol))
    target = replace(
        target,
        endpoint_url=next(iter(endpoints), ""),
        # A bucket in a region that nobody names is where the functions are, unless that is denied.
        region=target.region or ("" if remote.far else remote.region or ""),
    )
    return replace(prepared.job, target=target, endpoints=tuple(endpoints[1:]), concurrency=at_once)


def prepare_command(words: Sequence[str]) -> Prepared:
    """Return a command with its flags, checked.

    Raises
    ------
    UsageError
        If there is no such command, or one of its flags is wrong.
    """
    name, *arguments = words
    if name not in COMMANDS:
        raise UsageError(
            f"there is no command {name!r} to plan", hint=f"one of {', '.join(COMMANDS)}"
        )
    command = open_command(name)
    flags = command.make_context(
        name,
        arguments,
        parent=click.get_current_context(),
        default_map=defaults_for(command),
    ).params
    return prepare(_WORKLOADS[name], flags)
