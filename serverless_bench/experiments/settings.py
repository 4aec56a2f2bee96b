"""What a cell may set, and the job that comes of it.

Settings are the fields of ``JobSpec`` and of what it holds (``Transfer``, ``Load`` and
``Target``), all in one table; those of an array, and the knobs of libraries, have tables
of their own.
"""

import os
from collections.abc import Mapping
from dataclasses import Field, fields
from math import prod
from typing import Any, Final

import numpy as np

from serverless_bench.errors import UsageError
from serverless_bench.experiments.schema import Setting, Settings
from serverless_bench.job.spec import ArraySpec, DescribedJob, JobSpec, Load, Target, Transfer
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


def _fields(kind: type, *without: str) -> dict[str, Field[Any]]:
    return {field.name: field for field in fields(kind) if field.name not in without}


_JOB: Final = _fields(JobSpec, "name", "target", "transfer", "load", "control", "functions")
_TRANSFER: Final = _fields(Transfer)
_LOAD: Final = _fields(Load, "array", "mix", "code")
_TARGET: Final = _fields(Target, "bucket", "endpoint_url", "store", "options", "region")
_ARRAY: Final = _fields(ArraySpec, "options")


def known() -> list[str]:
    """Return the names of all settings; a star stands for whatever a library knows."""
    return sorted(
        [
            *(*_JOB, *_TRANSFER, *_LOAD, *_TARGET, *OWN),
            *(f"array.{name}" for name in _ARRAY),
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
        Where its objects go; the cell may name a client, its knobs and a prefix.
    name
        Of the job.

    Raises
    ------
    UsageError
        If a value is none that the job can have.
    """
    given = dict(settings)
    total = given.pop("total_objects", None)
    invocations = given.get("invocations", 1)
    if isinstance(total, int) and isinstance(invocations, int):
        given["objects"] = max(1, total // invocations)
    given.setdefault("concurrency", invocations)
    given["workload"] = workload_of(settings)
    given.setdefault("invocations", 1)
    try:
        return DescribedJob(
            name=name,
            target=_target(given, target),
            transfer=Transfer(**_taken(given, _TRANSFER)),
            load=_load(given),
            functions=(),
            **_taken(given, _JOB),
        )
    except (TypeError, ValueError) as exc:
        raise UsageError(f"cell {name}: {exc}", hint="docs/experiments/README.md") from exc


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


def _target(given: Settings, target: Target) -> Target:
    own = _taken(given, _TARGET)
    knobs = tuple((name, _knob(value)) for name, value in inner(given, "options").items())
    return Target(
        **{
            "client": target.client,
            "prefix": target.prefix,
            "addressing": target.addressing,
            **own,
            "bucket": target.bucket,
            "endpoint_url": target.endpoint_url,
            "region": target.region,
            "store": target.store,
            "options": knobs,
        }
    )


def _load(given: Settings) -> Load:
    mix = tuple((name, float(str(weight))) for name, weight in inner(given, "mix").items())
    array = inner(given, "array")
    return Load(**_taken(given, _LOAD), mix=mix, array=_array(array) if array else None)


def _array(given: Settings) -> ArraySpec:
    knobs = tuple((name, _knob(value)) for name, value in inner(given, "options").items())
    return ArraySpec(**_taken(given, _ARRAY), options=knobs)


def _taken(given: Settings, known_fields: Mapping[str, Field[Any]]) -> dict[str, Any]:
    return {
        name: _value(field, given[name]) for name, field in known_fields.items() if name in given
    }


def _value(field: Field[Any], value: Setting) -> Any:  # noqa: ANN401 - a field's own type
    kind = str(field.type)
    if value == "none" and "None" in kind:
        return None
    if field.name.endswith("_bytes") and isinstance(value, str):
        return parse_size(value)
    if "float" in kind and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind.startswith("<class 'int'>") and not isinstance(value, int):
        raise ValueError(f"{field.name} is a whole number, not {value!r}")
    return value


def _knob(value: Setting) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
