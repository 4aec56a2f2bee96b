"""The names of settings, and what stands for each: from ``settings``, which declares them."""

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any, get_type_hints

from serverless_bench.errors import UsageError
from serverless_bench.job.types import wrong
from serverless_bench.job.workload import open_workload
from serverless_bench.settings.job import JobSettings
from serverless_bench.settings.meaning import Meaning


@cache
def meanings() -> Mapping[str, Meaning]:
    """Return what each setting is, by name, in their order."""
    hints = get_type_hints(JobSettings, include_extras=True)
    return {one.name: hints[one.name].__metadata__[0] for one in fields(JobSettings)}


@cache
def _by_field() -> Mapping[str, str]:
    """Return settings by the fields of specifications that are other names of them."""
    return {one.also: name for name, one in meanings().items() if one.also}


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


def setting_of(name: str) -> str:
    """Return the setting that a field of a specification stands for; other names as they are."""
    return _by_field().get(name, name)


def make_settings(given: Mapping[str, Any]) -> JobSettings:
    """Return settings, by whatever names they are given.

    Parameters
    ----------
    given
        Values by name: of settings, or of fields of ``JobSpec``, ``Target``, ``Transfer``,
        ``Load`` and ``ArraySpec``. Hyphens stand for underscores. ``workload`` must be there.

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
        plain = spelled.replace("-", "_")
        name = setting_of(plain)
        if name not in known:
            raise UsageError(
                f"the workload {workload} has no setting {spelled!r}",
                hint=f"known: {', '.join(sorted(known))}",
                field=spelled,
            )
        if name in values:
            raise wrong(name, f"is given twice, once as {spelled}")
        read = meanings()[name].of_field
        values[name] = read(value) if read and name != plain and value is not None else value
    return JobSettings(**values)
