"""Settings of a cell, and their conversion into a job.

Cells have the settings of any job (docs/settings.md), with dotted names for the entries of a
table, and a few settings of studies only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args

from serverless_bench.base.errors import UsageError, check_known
from serverless_bench.executors import info_of
from serverless_bench.features.studies.definition import Setting, Settings
from serverless_bench.job.defaults import DEFAULT_EXECUTOR
from serverless_bench.job.settings import declared, setting_names
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import StoreProtocol, Target

if TYPE_CHECKING:
    from serverless_bench.driver.checked_job import CheckedJob

V = TypeVar("V")

STORES: Final = ("embedded", "loopback", "files")
"""Destinations of objects: the embedded store, a store that keeps no data, a directory."""
OWN: Final = ("cpus", "protocol", "store", "total_objects")
"""Settings of studies only; README.md explains them."""
SERVE: Final = (
    "check",
    "connection_rate",
    "express",
    "function_burst",
    "function_memory",
    "function_rate",
    "function_scale",
    "get_limit",
    "latency",
    "network_quota",
    "put_limit",
    "reset_get",
)
"""Flags of ``sbench serve`` that shape the loopback store, below ``serve.``."""
_CONTENT: Final = (
    "mb",
    "size",
    "sizes",
    "layout",
    "compressibility",
    "duplication",
    "block_size",
)
"""Settings of the content of objects; a write that prepares objects takes them from the cells."""
_OTHERS: Final = (
    *("name", "bucket", "endpoint_url", "region", "stack", "function", "control_prefix"),
    *("key", "key_file", "code"),
)
"""Settings of a job that cells do not have: place, name and keys to read."""
_CELL_SETTINGS: Final = frozenset(
    {"workload", *setting_names(), *OWN, *(f"serve.{name}" for name in SERVE)}
    | {f"{table}.*" for table in ("client_option", "library_option", "mix")}
) - {*_OTHERS}
"""All settings; a star stands for the entries that a library, or the workload, supports."""
_MAY_BE_NONE: Final = frozenset(
    name for name, setting in declared().items() if NoneType in get_args(setting.kind)
)


def is_setting(name: str) -> bool:
    """Return whether a setting with this name exists."""
    table, dot, _ = name.partition(".")
    return name in _CELL_SETTINGS or table + ".*" * len(dot) in _CELL_SETTINGS


def check_settings(settings: Settings) -> None:
    """Check that all settings are known.

    Raises
    ------
    UsageError
        If a name, a store or a protocol is unknown.
    """
    unknown = (name for name in settings if not is_setting(name))
    rest = 'see "Settings of a job" in the documentation'
    check_known(unknown, _CELL_SETTINGS, "there is no setting", otherwise=rest)
    store = settings.get("store", STORES[0])
    if store not in STORES:
        raise UsageError(f"store is one of {', '.join(STORES)}, not {store!r}")
    protocol = settings.get("protocol", StoreProtocol.S3)
    if protocol not in set(StoreProtocol):
        raise UsageError(f"protocol is one of {', '.join(StoreProtocol)}, not {protocol!r}")


def merged(*tables: Settings) -> dict[str, Setting]:
    """Merge tables; later tables take precedence."""
    return {name: value for table in tables for name, value in table.items()}


def check_cell(
    settings: Settings,
    *,
    name: str = "cell",
    keys: Sequence[str] = (),
    functions: tuple[str, ...] = (),
) -> "CheckedJob":
    """Return the job of a cell, checked as far as possible without a store.

    Parameters
    ----------
    settings
        All settings of the cell, by dotted name.
    name
        Name of the job.
    keys
        Objects that it reads.
    functions
        Functions to invoke, for executors that need them, as far as known.

    Raises
    ------
    UsageError
        If the job does not permit a value.
    PluginError
        If a library is missing.
    """
    # Names of settings are checked without what checks their values.
    from serverless_bench.driver.checked_job import check_job

    workload = workload_of(settings)
    given: dict[str, Any] = {"workload": workload, "name": name, "bucket": "any"}
    # Objects that are read were prepared according to their cell.
    left_out = {*OWN, "serve", *(set(_CONTENT) - set(setting_names(workload)))}
    for name_in_cell, value in settings.items():
        table, _, entry = name_in_cell.partition(".")
        if entry:
            given.setdefault(table, {})[entry] = value
        else:
            given[table] = None if value == "none" and table in _MAY_BE_NONE else value
    given = {name: value for name, value in given.items() if name not in left_out}
    number = given.setdefault("number", 1)
    given.setdefault("concurrency", number)
    total = settings.get("total_objects")
    if isinstance(total, int) and isinstance(number, int):
        given["objects"] = max(1, total // max(1, number))
    if settings.get("store") == "files":
        given.setdefault("path", ".")
    if "function" in info_of(given.get("executor", DEFAULT_EXECUTOR)).settings:
        given["function"] = functions or ("any",)
    return check_job(given, keys)


def job_of(
    settings: Settings,
    target: Target,
    *,
    name: str,
    keys: Sequence[str] = (),
    functions: tuple[str, ...] = (),
) -> JobSpec:
    """Return the job of a cell, see ``check_cell``.

    Parameters
    ----------
    settings, name, keys, functions
        Parameters as for ``check_cell``.
    target
        Destination of the objects; the cell may set a client, its options and a prefix.
    """
    job = check_cell(settings, name=name, keys=keys, functions=functions).job
    place: dict[str, Any] = {
        name: settings[name] for name in ("client", "prefix", "addressing") if name in settings
    }
    place |= {name: getattr(job.target, name) for name in ("client_option", "sse")}
    return replace(job, target=replace(target, **place)).with_options(function=functions)


def workload_of(settings: Settings) -> str:
    """Return the name of a cell's workload."""
    return str(settings.get("workload", "write"))


def prepared_by(prepare: Settings, cell: Settings) -> dict[str, Setting]:
    """Return the settings of the write that prepares the objects of a cell."""
    content = {name: value for name, value in cell.items() if name in _CONTENT}
    # A loopback store generates objects from their keys, so a plain store can prepare for any.
    place = {name: cell[name] for name in ("executor", "store") if name in cell}
    if place.get("store") == "files":
        # Only arrays are in files; other objects to read are in a bucket.
        del place["store"]
    return merged({"workload": "write"}, place, content, prepare)


def inner(values: Mapping[str, V], table: str) -> dict[str, V]:
    """Return the entries of a table such as ``serve``, by the names in the table."""
    start = f"{table}."
    return {n.removeprefix(start): v for n, v in values.items() if n.startswith(start)}


def is_shaped(settings: Settings) -> bool:
    """Return whether a cell has a store with configured delays, limits or faults."""
    return settings.get("store") == "loopback" and bool(inner(settings, "serve").keys() - {"check"})
