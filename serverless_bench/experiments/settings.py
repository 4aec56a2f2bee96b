"""What a cell may set, and the job that comes of it.

Settings are the fields of ``JobSpec`` and of what it holds (``Transfer``, ``Load`` and
``Target``), all in one table; those of an array, and the options of libraries, have tables
of their own.
"""

import os
from collections.abc import Mapping
from dataclasses import asdict, fields
from math import prod
from typing import Final

import numpy as np

from serverless_bench.errors import UsageError
from serverless_bench.experiments.conversion import converted
from serverless_bench.experiments.definition import Setting, Settings
from serverless_bench.job.load import ArraySpec, Load
from serverless_bench.job.spec import DescribedJob, JobSpec
from serverless_bench.job.target import Target
from serverless_bench.job.transfer import Transfer
from serverless_bench.units import parse_size

STORES: Final = ("embedded", "loopback", "files")
"""Where objects go: the store that sbench runs, one that keeps nothing, a directory."""
OWN: Final[Mapping[str, str]] = {
    "cpus": "Processors that functions run on here, by affinity.",
    "store": f"{', '.join(STORES)}; a target of the user takes the place of embedded.",
    "total_objects": "Objects of all functions together, shared evenly.",
}
"""Settings that are no field of a job."""
SERVE: Final = (
    "check",
    "connection_rate",
    "function_burst",
    "function_rate",
    "get_limit",
    "latency",
    "put_limit",
)
"""Flags of ``sbench serve`` that shape the loopback store, below ``serve.``."""
_OPEN: Final = ("options", "array.options", "mix")
"""Tables whose names the clients, the array libraries and the mixed workload know."""
_CONTENT: Final = (
    "object_bytes",
    "sizes",
    "layout",
    "compressibility",
    "duplication",
    "block_bytes",
)
"""What says how objects are made, which a write in preparation takes over from its cells."""


def _names(kind: type, *without: str, optional: bool = False) -> set[str]:
    found = (one for one in fields(kind) if not optional or "None" in str(one.type))
    return {one.name for one in found} - set(without)


_FIELDS: Final = frozenset(
    _names(JobSpec, "name", "target", "transfer", "load", "control", "functions")
    | _names(Transfer)
    | _names(Load, "array", "mix", "code")
    | _names(Target, "bucket", "endpoint_url", "store", "options", "region")
    | {f"array.{name}" for name in _names(ArraySpec, "options")}
)
_MAY_BE_NONE: Final = frozenset(
    {name for kind in (JobSpec, Transfer, Load) for name in _names(kind, optional=True)}
    | {f"array.{name}" for name in _names(ArraySpec, optional=True)}
)


def known() -> list[str]:
    """Return the names of all settings; a star stands for whatever a library knows."""
    return sorted(
        [
            *_FIELDS,
            *OWN,
            *(f"serve.{name}" for name in SERVE),
            *(f"{name}.*" for name in _OPEN),
        ]
    )


def is_setting(name: str) -> bool:
    """Tell whether there is a setting of this name."""
    table, _, rest = name.rpartition(".")
    return name in known() or (bool(rest) and table in _OPEN)


def check_settings(settings: Settings, where: str) -> None:
    """Refuse settings that no job has.

    Raises
    ------
    UsageError
        If a name is unknown, or a store is.
    """
    for name in settings:
        if not is_setting(name):
            raise UsageError(f"{where}: there is no setting {name!r}", hint=", ".join(known()))
    store = settings.get("store", STORES[0])
    if store not in STORES:
        raise UsageError(f"{where}: store is one of {', '.join(STORES)}, not {store!r}")


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0


def job_of(settings: Settings, target: Target, *, name: str) -> JobSpec:
    """Return the job of a cell.

    Parameters
    ----------
    settings
        All of the cell, by dotted name.
    target
        Where its objects go; the cell may name a client, its options and a prefix.
    name
        Of the job.

    Raises
    ------
    UsageError
        If a value is none that the job can have.
    """
    given = {name: _value(name, value) for name, value in settings.items()}
    total, invocations = given.get("total_objects"), given.setdefault("invocations", 1)
    if isinstance(total, int) and isinstance(invocations, int):
        given["objects"] = max(1, total // invocations)
    place: dict[str, object] = {**asdict(target), "options": _options(given)}
    place |= {n: given[n] for n in ("client", "prefix", "addressing") if n in given}
    array = inner(given, "array")
    load: dict[str, object] = {**given, "mix": tuple(inner(given, "mix").items())}
    load["array"] = {**array, "options": _options(array)} if array else None
    values: dict[str, object] = {
        "concurrency": invocations,
        **given,
        "name": name,
        "workload": workload_of(settings),
        "target": place,
        "transfer": given,
        "load": load,
    }
    job: JobSpec = converted(values, DescribedJob, f"cell {name}")
    return job


def workload_of(settings: Settings) -> str:
    """Return the name of a cell's workload."""
    return str(settings.get("workload", "write"))


def planned_bytes(job: JobSpec) -> int:
    """Return the bytes that a job is going to have in the store; 0 if nobody can say."""
    count = job.invocations * job.objects
    array = job.load.array
    if array is not None:
        return count * prod(array.shape) * np.dtype(array.dtype).itemsize
    return count * (job.object_bytes or 0)


def prepared_by(prepare: Settings, cell: Settings) -> dict[str, Setting]:
    """Return the settings of the write that makes what a cell reads."""
    content = {name: cell[name] for name in _CONTENT if name in cell}
    return {"workload": "write", "executor": cell.get("executor", "local"), **content, **prepare}


def inner(settings: Settings, table: str) -> dict[str, Setting]:
    """Return the settings of a table, as in ``serve``, by their names in it."""
    start = f"{table}."
    return {n.removeprefix(start): v for n, v in settings.items() if n.startswith(start)}


def _options(given: Settings) -> tuple[tuple[str, str], ...]:
    options = inner(given, "options").items()
    return tuple((n, str(v).lower() if isinstance(v, bool) else str(v)) for n, v in options)


def _value(name: str, value: Setting) -> Setting:
    if value == "none" and name in _MAY_BE_NONE:
        return None
    return parse_size(value) if name.endswith("_bytes") and isinstance(value, str) else value
