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
