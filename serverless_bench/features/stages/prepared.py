"""Commands within commands: stages of a job file.

The flags come from the file or from the command line; the environment and sbench.toml supply
defaults.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from serverless_bench.base.errors import UsageError, check_known, suggestion
from serverless_bench.cli.flags.defaults import defaults_for
from serverless_bench.cli.flags.of_jobs import TARGET
from serverless_bench.cli.flags.options import as_flag, message_of, spelled
from serverless_bench.cli.job import Prepared, prepare
from serverless_bench.cli.main import COMMANDS as ALL_COMMANDS
from serverless_bench.cli.main import open_command
from serverless_bench.features.stages.job_file import JobFile, Kind, Stage
from serverless_bench.job.setting_schema import Setting, located
from serverless_bench.job.workload import WORKLOADS, open_workload

_OWN: Final = frozenset({"format", "from", "name", "pickle", "run-dir", "trust"})
"""Flags of these commands that ``sbench run`` sets."""
_SIZES: Final = frozenset({"mb", "size", "sizes"})
"""Mutually exclusive flags: a size in a stage replaces the size for all stages."""
_KEYS: Final = frozenset({"key", "key-file"})
STAGES: Final = tuple(name for name in ALL_COMMANDS if name in WORKLOADS)
"""Workloads of stages, which have the same names as their commands."""


def as_key(name: str) -> str:
    """Return the key of a setting in a file."""
    return as_flag(name).removeprefix("--")


def options_of(command: click.Command) -> dict[str, click.Parameter]:
    """Return the flags and arguments of a command by their current spelling."""
    return {spelled(parameter.name): parameter for parameter in command.params if parameter.name}


def check_keys(command: click.Command, keys: Iterable[str], without: Iterable[str]) -> None:
    """Check that the keys of a file are flags of a command.

    Parameters
    ----------
    command
        Command that needs to have the flags.
    keys
        Keys in the spelling of the file.
    without
        Flags of the command that the file must not set.

    Raises
    ------
    UsageError
        If a key is not such a flag.
    """
    allowed = options_of(command).keys() - set(without)
    rest = f"sbench {command.name} --help-all lists them"
    check_known(map(spelled, keys), allowed, f"{command.name} has no flag", otherwise=rest)


def flags_of(command: click.Command, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all flags of a command by parameter name, with the given values unchanged.

    Parameters
    ----------
    command
        Command with the flags.
    given
        Values by flag; flags that the command does not have are ignored.

    Raises
    ------
    UsageError
        If an argument is missing, or a value in the environment or sbench.toml is invalid.
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
        raise UsageError(message_of(exc)) from exc
    return {**context.params, **{str(own[flag].name): given[flag] for flag in own}}


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedStage:
    """Stage with a job to run."""

    number: int
    """Position among all stages, from 1."""
    stage: Stage
    flags: Mapping[str, Any]
    """Flags of the command, by parameter name."""
    prepared: Prepared
    """Checked job; if the keys come from another stage, it has example keys."""

    @property
    def folder(self) -> str:
        """Name of the run directory."""
        return f"{self.number:02}-{self.stage.name}"


def steps_of(
    job: JobFile, given: Mapping[str, Setting], *, style: str = "text"
) -> Mapping[str, PreparedStage]:
    """Check all stages that run jobs, before the first one starts, and return them by name.

    Parameters
    ----------
    job
        Contents of the job file.
    given
        Flags from the command line, which override the file.
    style
        Name of the reporter.

    Raises
    ------
    UsageError
        If a flag is unknown or invalid; the message names file, stage and flag.
    PluginError
        If a plugin is unknown, or its library is not installed.
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
            problem = f"unknown workload {stage.workload!r}"
            raise UsageError(problem, hint=suggestion(str(stage.workload), STAGES))
        flags = _flags(job, stage, open_command(stage.workload), given)
        flags |= {"name": None, "run_dir": Path(), "format": style, "pickle": None}
        keys = None
        if stage.keys is not None:
            source = before[stage.keys]
            wanted = open_workload(stage.workload).source.partition(" ")[0]
            if source.stage.workload != wanted:
                raise UsageError(
                    f"keys names stage {stage.keys!r} of workload {source.stage.workload!r}",
                    hint=f"name a stage of workload {wanted!r}",
                )
            from serverless_bench.features.stages.examples import example_keys

            keys = tuple(example_keys(source.prepared.job, source.prepared.keys))
        prepared = prepare(stage.workload, flags, keys)
    return PreparedStage(number=number, stage=stage, flags=flags, prepared=prepared)


def given_flags(context: click.Context) -> dict[str, Setting]:
    """Return the flags that the user gave on the command line of ``sbench run``."""
    return {
        spelled(parameter.name): _as_setting(context.params[parameter.name])
        for parameter in context.command.params
        if isinstance(parameter, click.Option)
        and parameter.name
        and spelled(parameter.name) not in {*_OWN, "dry-run"}
        and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
    }


def _as_setting(value: Any) -> Setting:
    if isinstance(value, tuple | list):
        return tuple(map(str, value))
    return value if isinstance(value, int | float) else str(value)


def _check_common(job: JobFile) -> None:
    """Check that the keys of [target] and [run] are flags of some command."""
    # All commands are imported only for a [run], as it is slow.
    stages = STAGES if job.run else ()
    all_flags = {flag for name in stages for flag in options_of(open_command(name))} - _OWN
    where = {"prefix", *map(spelled, TARGET)}
    for title, settings, allowed in (
        ("[target]", job.target, where),
        ("[run]", job.run, all_flags - where - _KEYS),
    ):
        with located(f"{job.path}: {title}"):
            check_known(
                map(spelled, settings),
                allowed,
                "unknown key",
                otherwise='see "Job files" in the documentation',
            )


def _check_given(job: JobFile, given: Mapping[str, Setting]) -> None:
    """Check that each flag of the command line applies to a stage."""
    workloads = set(STAGES) & {stage.workload for stage in job.stages}
    stage_flags = {flag for name in workloads for flag in options_of(open_command(name))}
    for flag in given:
        if workloads and flag not in stage_flags:
            raise UsageError(f"--{flag} applies to none of the stages of {job.path}")


def _flags(
    job: JobFile, stage: Stage, command: click.Command, given: Mapping[str, Setting]
) -> dict[str, Any]:
    """Return the flags of a stage by parameter name."""
    workload = open_workload(stage.workload or "")
    writes = "operation" in workload.settings and stage.settings.get("operation") != "read"
    if stage.keys is not None and (writes or not workload.source):
        raise UsageError("keys needs a stage that reads", hint='set workload = "read"')
    check_keys(command, stage.settings, without=_OWN)
    own = {spelled(key): value for key, value in stage.settings.items()}
    if stage.keys is not None and own.keys() & _KEYS:
        raise UsageError("keys and key-file are mutually exclusive; remove one of them")
    common = {spelled(key): value for key, value in {**job.target, **job.run}.items()}
    if own.keys() & _SIZES:
        common = {flag: value for flag, value in common.items() if flag not in _SIZES}
    return flags_of(command, {**common, **own, **given})
