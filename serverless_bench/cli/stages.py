"""From the stages of a job file to commands with flags: every flag as the command has it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from serverless_bench.cli.flags.from_files import check_known, flags_of, options_of
from serverless_bench.cli.flags.names import as_key, spelled
from serverless_bench.cli.flags.of_jobs import TARGET
from serverless_bench.cli.job import Prepared, prepare
from serverless_bench.cli.main import COMMANDS, open_command
from serverless_bench.driver.outlook import example_keys
from serverless_bench.errors import UsageError
from serverless_bench.job.workload import WORKLOADS, open_workload
from serverless_bench.settings.job_file import JobFile, Kind, Setting, Stage
from serverless_bench.settings.schema import located

_OWN: Final = frozenset({"format", "name", "pickle", "run-dir"})
"""Flags of these commands that ``sbench run`` decides."""
_SIZES: Final = frozenset({"mb", "size", "sizes"})
"""Flags of which a stage may have one: its own replaces one that is for all stages."""
_KEYS: Final = frozenset({"key", "key-file"})
STAGES: Final = tuple(name for name in COMMANDS if name in WORKLOADS)
"""Workloads of stages; each is the name of the command that runs it."""


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
        and context.get_parameter_source(parameter.name) is click.core.ParameterSource.COMMANDLINE
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
