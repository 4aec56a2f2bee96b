"""Settings by name, as declared in ``job``, and the parts of a specification made from them."""

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any

from serverless_bench.base.errors import PluginError, UsageError, suggestion
from serverless_bench.base.units import MIB
from serverless_bench.job.defaults import DEFAULT_MB
from serverless_bench.job.meaning import (
    DECLARED,
    Declared,
    declared_beside,
    declared_for,
    declared_in,
    declared_options,
)
from serverless_bench.job.settings import JobSettings
from serverless_bench.job.types import wrong
from serverless_bench.job.workload import WORKLOADS, Load, Trait, open_workload


@cache
def declared() -> Mapping[str, Declared]:
    """Return every setting by name: those of all jobs, then those that a workload alone has."""
    settings = {**declared_in(JobSettings), **declared_options()}
    for workload in filter(WORKLOADS.__contains__, DECLARED):
        settings.update(declared_for(workload))
    return settings


def setting_names(workload: str | None = None) -> tuple[str, ...]:
    """Return the names of a workload's settings, or of all settings, in order of declaration.

    Raises
    ------
    PluginError
        If no package provides the workload, or it declares a setting of all jobs again.
    """
    if workload is None:
        return tuple(name for name in declared() if name != "workload")
    own = open_workload(workload).settings
    common, beside = declared_in(JobSettings), declared_beside(workload)
    for name in common.keys() & beside.keys():
        raise PluginError(
            f"`{name}` of the workload {workload} is a setting of all jobs",
            hint="another name for the field of its loads",
        )
    names = (name for name, (*_, meaning) in common.items() if name in own or not meaning.own)
    return (*(name for name in names if name != "workload"), *beside)


def make_settings(given: Mapping[str, Any]) -> JobSettings:
    """Return settings from their values by name.

    Parameters
    ----------
    given
        Values by name, including ``workload``. Hyphens are accepted for underscores.

    Raises
    ------
    UsageError
        If a name is unknown or given twice, or a value has the wrong type.
    PluginError
        If no package provides the workload.
    """
    workload = given.get("workload")
    if not isinstance(workload, str):
        raise wrong("workload", "is missing", hint='as in workload = "write"')
    valid_names = {"workload", *setting_names(workload)}
    values: dict[str, Any] = {}
    for spelled, value in given.items():
        name = spelled.replace("-", "_")
        if name not in valid_names:
            raise UsageError(
                f"the workload {workload} has no setting {spelled!r}",
                hint=suggestion(name, valid_names, otherwise="docs/settings.md lists them"),
                field=spelled,
            )
        if name in values:
            raise wrong(name, f"is given twice, once as {spelled}")
        values[name] = value
    own = {name: values.pop(name) for name in declared_beside(workload) if name in values}
    return JobSettings(**values, own=own)


def values_of(kind: type, settings: JobSettings) -> dict[str, Any]:
    """Return the values of settings that are fields of a class, by name, with texts converted.

    Raises
    ------
    UsageError
        If a text is invalid.
    """
    names = [field.name for field in fields(kind) if field.name in declared_in(JobSettings)]
    return {name: _value(settings, name) for name in names}


def options_of(settings: JobSettings) -> dict[str, Any]:
    """Return the given values of the settings that executors and policies declare, by name."""
    usual = {name: declared.default for name, declared in declared_options().items()}
    own = settings.own.items()
    given = [name for name, value in own if name in usual and value != usual[name]]
    return {name: _value(settings, name) for name in given}


def load_of(settings: JobSettings) -> Load:
    """Return the load of a function according to the settings."""
    workload = open_workload(settings.workload)
    names = (*workload.settings, *declared_for(settings.workload))
    return workload.load_type.made({name: _value(settings, name) for name in names})


def size_of(settings: JobSettings) -> int | None:
    """Return the size of a new object in bytes; None if sizes are drawn, or no object is created.

    Raises
    ------
    UsageError
        If several settings give the size of an object, or a size is invalid.
    """
    given = [name for name in ("mb", "size", "sizes") if getattr(settings, name) is not None]
    workload = open_workload(settings.workload)
    if "size" not in workload.settings or not (Trait.NEEDS_SIZE in workload.traits or given):
        return None
    if len(given) > 1:
        both = " and ".join(f"`{name}`" for name in given)
        raise UsageError(f"{both} give the size of an object", hint="use one of them")
    if given == ["sizes"]:
        return None
    if given == ["size"]:
        return int(_value(settings, "size"))
    mb = DEFAULT_MB if settings.mb is None else settings.mb
    if mb < 1:
        raise wrong("mb", f"must be at least 1, got {mb}", hint="for smaller objects, use `size`")
    return mb * MIB


def _value(settings: JobSettings, name: str) -> Any:
    own = name in settings.own
    known = declared_beside(settings.workload) if own else declared_in(JobSettings)
    given, meaning = settings.value(name), known[name].meaning
    try:
        if meaning.parse is not None and isinstance(given, str):
            return meaning.parse(given)
        return given if given is None or meaning.read is None else meaning.read(name, given)
    except UsageError as exc:
        if exc.field:
            raise
        raise UsageError(f"`{name}`: {exc}", hint=exc.hint, field=name) from exc
