"""Settings of a job: plain values, the same on the command line, in files and in Python.

A setting has the name of its flag, with underscores, and of the specification's field (in
``JobSpec`` and its parts) that is made from it. Help texts, docs/settings.md and the conversion of
texts are defined here. msgspec checks types and choices; ``job.spec`` checks the values when
specifications are created. The parts of a specification are made from settings by name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Annotated, Any, Literal

from serverless_bench.base.errors import PluginError, UsageError, suggestion
from serverless_bench.base.units import (
    MIB,
    parse_duration,
    parse_rate,
    parse_size,
)
from serverless_bench.job.defaults import (
    DEFAULT_EXECUTOR,
    DEFAULT_MB,
    DEFAULT_MIX,
    DEFAULT_PREFIX,
)
from serverless_bench.job.meaning import (
    DECLARED,
    Declared,
    Meaning,
    canonical_sizes,
    declared_beside,
    declared_for,
    declared_in,
    declared_options,
    read_mix,
    read_pairs,
)
from serverless_bench.job.setting_schema import checked, converted
from serverless_bench.job.target import Addressing, Stat, Verify
from serverless_bench.job.types import wrong
from serverless_bench.job.workload import WORKLOADS, Load, Trait, open_workload


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    """Settings of one job, with checked types; docs/settings.md lists them in a table.

    Raises
    ------
    UsageError
        If a value has the wrong type.
    """

    workload: Annotated[
        str,
        Meaning(
            "Workload of the functions: write, read, conditional ...; the command, not a flag."
        ),
    ]
    name: Annotated[str | None, Meaning("Name of the run directory; a time stamp without it.")] = (
        None
    )
    number: Annotated[
        int | None,
        Meaning(
            "Number of functions.",
            otherwise=lambda workload: (
                workload.default_number or "enough to read all keys, at least 1"
            ),
        ),
    ] = None
    objects: Annotated[
        int | None,
        Meaning("Objects per function.", otherwise=lambda workload: workload.default_objects),
    ] = None

    # Location of the objects.
    bucket: Annotated[
        str | None,
        Meaning(
            "Bucket: NAME, or az://CONTAINER or gs://BUCKET on another cloud; without it, and"
            " without an endpoint, a store is started on this machine.",
            decides=True,
        ),
    ] = None
    endpoint_url: Annotated[
        str | None,
        Meaning(
            "URL of any S3-compatible store; the cloud's by default if a bucket is given. Functions"
            " take turns at several URLs, separated by commas.",
            decides=True,
        ),
    ] = None
    region: Annotated[str | None, Meaning("Region of the bucket; looked up by default.")] = None
    create_bucket: Annotated[
        bool, Meaning("Create the bucket of an S3-compatible store if it does not exist.")
    ] = False
    addressing: Annotated[
        Addressing, Meaning("Place of the bucket: in the host name or in the path.")
    ] = Addressing.AUTO
    client: Annotated[
        str | None,
        Meaning(
            "Library that transfers the bytes.",
            otherwise=lambda _: "wire; obstore for az:// and gs://",
        ),
    ] = None
    client_option: Annotated[
        str | tuple[str, ...] | dict[str, str | int | float | bool],
        Meaning(
            'An option of the client library; see "Clients" in the documentation.',
            read=lambda name, given: tuple(sorted(read_pairs(name, given))),
            metavar="NAME=VALUE",
        ),
    ] = ()
    prefix: Annotated[str, Meaning("Prefix of all random keys.", own=True)] = DEFAULT_PREFIX

    # Transfer of an object.
    connections: Annotated[int, Meaning("Connections of each function.")] = 1
    part_size: Annotated[
        str | int | None,
        Meaning("Size of a part or range, as in 16MiB; full objects by default.", parse=parse_size),
    ] = None
    block_size: Annotated[str | int, Meaning("Bytes transferred at a time.", parse=parse_size)] = (
        "1MiB"
    )
    verify: Annotated[Verify, Meaning("Amount of the bytes read that is compared.")] = Verify.FULL
    retries: Annotated[
        int, Meaning("Further attempts after a transient failure; 15 s each if throttled.")
    ] = 4
    timeout: Annotated[
        float | str,
        Meaning("Time without a byte after which an attempt ends.", parse=parse_duration),
    ] = 60.0
    min_split_size: Annotated[
        str | int | None,
        Meaning("Objects below this size are read in one request.", parse=parse_size),
    ] = None
    stat: Annotated[
        Stat,
        Meaning("Source of sizes before a read: the key, a HEAD each, or all HEADs first."),
    ] = Stat.KEY

    # Pace of a function's operations.
    threads: Annotated[int, Meaning("Concurrent operations of each function.", own=True)] = 1
    rate: Annotated[
        float | None,
        Meaning(
            "Operations per second of all running functions together (open loop).",
            own=True,
        ),
    ] = None
    arrivals: Annotated[
        Literal["uniform", "poisson"],
        Meaning("Distribution of the start times, with --rate.", own=True),
    ] = "uniform"

    # New objects.
    mb: Annotated[
        int | None,
        Meaning(
            "Size of an object in MiB.",
            own=True,
            otherwise=lambda workload: DEFAULT_MB if Trait.NEEDS_SIZE in workload.traits else None,
        ),
    ] = None
    size: Annotated[
        str | int | None,
        Meaning("Size of an object, as in 2GB, 64MiB or 1000 (bytes).", own=True, parse=parse_size),
    ] = None
    sizes: Annotated[
        str | None,
        Meaning(
            'Distribution of sizes, as loguniform:4KiB:64MiB; see "Payload" in the documentation.',
            own=True,
            parse=canonical_sizes,
        ),
    ] = None
    layout: Annotated[str, Meaning("Keys: random, sharded:N or sequential.", own=True)] = "random"
    compressibility: Annotated[
        float, Meaning("Factor by which a compressor makes the bytes smaller.", own=True)
    ] = 1.0
    duplication: Annotated[float, Meaning("Copies of each 4 KiB block in an object.", own=True)] = (
        1.0
    )

    # Reads.
    key: Annotated[str | None, Meaning("Key of an object that all functions read.", own=True)] = (
        None
    )
    key_file: Annotated[
        str | None,
        Meaning("File with the keys of the objects to read, one per line.", own=True, path="file"),
    ] = None
    read_times: Annotated[int, Meaning("Reads of each object.", own=True)] = 1
    split: Annotated[
        int | None,
        Meaning("Functions that share each object; each reads a range.", own=True),
    ] = None

    # Operations of several kinds.
    mix: Annotated[
        str | dict[str, float], Meaning("Operations and their weights.", own=True, read=read_mix)
    ] = DEFAULT_MIX
    operations: Annotated[
        int | None, Meaning("Operations per function; or use --duration.", own=True)
    ] = None
    range_size: Annotated[
        str | int, Meaning("Bytes that a get_range reads.", own=True, parse=parse_size)
    ] = "1MiB"

    # Location and duration of the functions.
    executor: Annotated[str, Meaning("Executor of the functions.", decides=True)] = DEFAULT_EXECUTOR
    concurrency: Annotated[
        int | None, Meaning('Concurrent functions; see "Executors" in the documentation.')
    ] = None
    deadline: Annotated[
        float | str,
        Meaning(
            "Stop each function after this time and keep its results.",
            parse=parse_duration,
        ),
    ] = 900.0
    duration: Annotated[
        float | str | None,
        Meaning("Time for which functions repeat their objects.", parse=parse_duration),
    ] = None
    warm_up: Annotated[
        int,
        Meaning("Rounds through the objects before the measurement."),
    ] = 0
    network_rate: Annotated[
        float | str | None,
        Meaning(
            "Capacity of the network, as in 20Gbit: results above it are rejected.",
            parse=parse_rate,
        ),
    ] = None
    seed: Annotated[int, Meaning("Seed of all random choices.")] = 0

    own: Mapping[str, Any] = field(default_factory=dict)
    """Values of settings that its workload, an executor or a policy declares, by name."""

    def __post_init__(self) -> None:
        for name in declared_in(JobSettings):
            object.__setattr__(self, name, checked(JobSettings, name, getattr(self, name)))
        own = {
            name: converted(setting.kind, name, self.own.get(name, setting.default))
            for name, setting in declared_beside(self.workload).items()
        }
        object.__setattr__(self, "own", own)

    def value(self, name: str) -> Any:
        """Return the value of a setting, as given."""
        return self.own[name] if name in self.own else getattr(self, name)


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
                hint=suggestion(
                    name, valid_names, otherwise='see "Settings of a job" in the documentation'
                ),
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
