"""Settings by name, as ``job`` declares them, and the parts of a specification that they make."""

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any, get_type_hints

from serverless_bench.errors import UsageError
from serverless_bench.job.defaults import DEFAULT_MB
from serverless_bench.job.load import ArraySpec, Load
from serverless_bench.job.types import wrong
from serverless_bench.job.workload import open_workload
from serverless_bench.settings.job import JobSettings
from serverless_bench.settings.meaning import Meaning
from serverless_bench.units import MIB


@cache
def meanings() -> Mapping[str, Meaning]:
    """Return what each setting is, by name, in their order."""
    hints = get_type_hints(JobSettings, include_extras=True)
    return {one.name: hints[one.name].__metadata__[0] for one in fields(JobSettings)}


def setting_names(workload: str | None = None) -> tuple[str, ...]:
    """Return the names of the settings that a workload has, or of all, in their order.

    Raises
    ------
    PluginError
        If nobody has the workload.
    """
    every = tuple(name for name in meanings() if name != "workload")
    if workload is None:
        return every
    own = open_workload(workload).settings
    return tuple(name for name in every if name in own or not meanings()[name].own)


def make_settings(given: Mapping[str, Any]) -> JobSettings:
    """Return settings from their values by name.

    Parameters
    ----------
    given
        Values by name, ``workload`` among them. Hyphens stand for underscores.

    Raises
    ------
    UsageError
        If a name is unknown or given twice, or a value is of another type.
    PluginError
        If nobody has the workload.
    """
    workload = given.get("workload")
    if not isinstance(workload, str):
        raise wrong("workload", "is missing", hint='as in workload = "write"')
    known = {"workload", *setting_names(workload)}
    values: dict[str, Any] = {}
    for spelled, value in given.items():
        name = spelled.replace("-", "_")
        if name not in known:
            raise UsageError(
                f"the workload {workload} has no setting {spelled!r}",
                hint=f"known: {', '.join(sorted(known))}",
                field=spelled,
            )
        if name in values:
            raise wrong(name, f"is given twice, once as {spelled}")
        values[name] = value
    return JobSettings(**values)


def values_of(kind: type, settings: JobSettings) -> dict[str, Any]:
    """Return what settings say of the fields of a class, by name, with their texts read.

    Raises
    ------
    UsageError
        If a text cannot be read.
    """
    names = [one.name for one in fields(kind) if one.name in meanings()]
    return {name: _value(settings, name) for name in names}


def load_of(settings: JobSettings) -> Load:
    """Return what the settings say of a function's operations."""
    own = open_workload(settings.workload).load
    values = {name: value for name, value in values_of(Load, settings).items() if name in own}
    return Load(**values, array=_array(settings) if "array" in own else None)


def size_of(settings: JobSettings) -> int | None:
    """Return the bytes of a new object; None if they are drawn, or if none is made.

    Raises
    ------
    UsageError
        If several settings give the size of an object, or one names no size.
    """
    given = [name for name in ("mb", "size", "sizes") if getattr(settings, name) is not None]
    workload = open_workload(settings.workload)
    if "size" not in workload.settings or not (workload.needs_size or given):
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
        raise wrong("mb", f"must be at least 1, got {mb}", hint="`size` takes smaller ones")
    return mb * MIB


def _array(settings: JobSettings) -> ArraySpec:
    """Return the array that a library writes, appends to or reads."""
    if settings.operation is None:
        raise wrong("operation", "is missing", hint='as in operation = "write"')
    return ArraySpec(**values_of(ArraySpec, settings))


def _value(settings: JobSettings, name: str) -> Any:  # noqa: ANN401 - of the field's type
    given, read = getattr(settings, name), meanings()[name].read
    return given if given is None or read is None else read(name, given)
