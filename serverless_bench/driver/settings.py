"""What a user says of a job: plain settings, the same on the command line, in files and in Python.

A setting is called like its flag, with underscores. The fields of a specification
(``JobSpec`` and what it holds) are other names for the same: ``object_bytes = 4096`` is
``size = "4096B"``. msgspec checks types and choices here; what values can be is checked
where specifications are made, in ``job.spec``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal

from serverless_bench.driver.schema import checked
from serverless_bench.errors import UsageError
from serverless_bench.job.defaults import DEFAULT_MIX, DEFAULT_PREFIX
from serverless_bench.job.load import BUILT_IN, MEANT_FOR, OWN_FUNCTION
from serverless_bench.job.target import Addressing
from serverless_bench.job.transfer import Stat, Verify
from serverless_bench.job.types import wrong
from serverless_bench.units import KIB, MIB, parse_size


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    """Settings of one job, of the right types; docs/settings.md says what each means.

    Raises
    ------
    UsageError
        If a value is of another type.
    """

    workload: str
    name: str | None = None
    number: int | None = None
    objects: int | None = None

    # Where objects are.
    bucket: str | None = None
    endpoint_url: str | None = None
    region: str | None = None
    addressing: Addressing = Addressing.AUTO
    client: str = "wire"
    client_option: str | tuple[str, ...] | dict[str, str | int | float | bool] = ()
    prefix: str = DEFAULT_PREFIX

    # How an object is moved.
    connections: int = 1
    part_mb: float | None = None
    block_kib: float = 1024
    verify: Verify = Verify.FULL
    retries: int = 4
    timeout: float = 60.0
    min_split_mb: float | None = None
    stat: Stat = Stat.KEY

    # How a function goes through its operations.
    threads: int = 1
    rate: float | None = None
    arrivals: Literal["uniform", "poisson"] = "uniform"

    # New objects.
    mb: int | None = None
    size: str | None = None
    sizes: str | None = None
    layout: str = "random"
    compressibility: float = 1.0
    duplication: float = 1.0

    # Reads.
    key: str | None = None
    key_file: str | None = None
    read_times: int = 1
    split: int | None = None

    # Operations of several kinds.
    mix: str | dict[str, float] = DEFAULT_MIX
    operations: int | None = None
    range_kib: float = 1024

    # Arrays.
    operation: Literal["write", "append", "read"] | None = None
    library: str = "tensorstore"
    driver: str = "zarr"
    shape: str | tuple[int, ...] = "4096,4096"
    chunks: str | tuple[int, ...] = "1024,1024"
    shards: str | tuple[int, ...] | None = None
    dtype: str = "float32"
    codec: str = "none"
    source: str = "numpy"
    path: str | None = None
    library_option: str | tuple[str, ...] | dict[str, str | int | float | bool] = ()

    # A function of the user's own, as ``driver.pickling.pack`` makes it.
    code: str | None = None

    # Where functions run, and for how long.
    executor: str = "local"
    concurrency: int | None = None
    deadline: float = 900.0
    duration: float | None = None
    warm_up: int = 0
    gate: float | None = None
    gate_timeout: float = 60.0
    link: str | float | None = None
    seed: int = 0

    # Functions elsewhere.
    stack: str | None = None
    function: str | tuple[str, ...] = ()
    control_prefix: str | None = None
    start_timeout: float = 60.0

    def __post_init__(self) -> None:
        for one in fields(self):
            value = checked(JobSettings, one.name, getattr(self, one.name))
            object.__setattr__(self, one.name, value)


def _as_text(size: object) -> str:
    return f"{size}B" if isinstance(size, int) else str(size)


def _in(unit: int) -> Callable[[Any], object]:
    """Return what turns bytes, a number or a text with a unit, into ``unit``."""
    return lambda size: (parse_size(size) if isinstance(size, str) else size) / unit


_FIELDS: Final[Mapping[str, tuple[str, Callable[[Any], object] | None]]] = {
    "invocations": ("number", None),
    "repeats": ("read_times", None),
    "deadline_s": ("deadline", None),
    "duration_s": ("duration", None),
    "warmup": ("warm_up", None),
    "gate_timeout_s": ("gate_timeout", None),
    "start_timeout_s": ("start_timeout", None),
    "link_bytes_per_s": ("link", None),
    "functions": ("function", None),
    "timeout_s": ("timeout", None),
    "rate_per_s": ("rate", None),
    "options": ("client_option", None),
    "object_bytes": ("size", _as_text),
    "part_bytes": ("part_mb", _in(MIB)),
    "min_split_bytes": ("min_split_mb", _in(MIB)),
    "block_bytes": ("block_kib", _in(KIB)),
    "range_bytes": ("range_kib", _in(KIB)),
}
"""Fields of specifications whose settings have other names, and what makes the one of the other."""


def setting_names(workload: str | None = None) -> tuple[str, ...]:
    """Return the names of the settings that a workload has, or of all, in their order."""
    return tuple(
        one.name
        for one in fields(JobSettings)
        if one.name != "workload"
        and (workload not in BUILT_IN or workload in _ONLY.get(one.name, BUILT_IN))
    )


def setting_of(name: str) -> str:
    """Return the setting that a field of a specification stands for; other names as they are."""
    return _FIELDS.get(name, (name, None))[0]


_ARRAYS: Final = ("array",)
_ONLY: Final[Mapping[str, tuple[str, ...]]] = {
    **{setting_of(name): workloads for name, workloads in MEANT_FOR.items()},
    # Arrays at a rate are for Python alone.
    **dict.fromkeys(("rate", "arrivals"), MEANT_FOR["threads"]),
    "prefix": ("write", "mixed", "array", OWN_FUNCTION, "noop"),
    **dict.fromkeys(("mb", "size"), MEANT_FOR["sizes"]),
    "key": ("read",),
    "key_file": ("read", "array", OWN_FUNCTION),
    "read_times": ("read", "array"),
    **dict.fromkeys(("operation", "library", "driver", "shape", "chunks", "shards"), _ARRAYS),
    **dict.fromkeys(("dtype", "codec", "source", "path", "library_option"), _ARRAYS),
}
"""Settings that not every workload has, and which have them; one of a plugin has all."""


def field_of(setting: str) -> str:
    """Return the field of a specification that a setting becomes, if that has another name."""
    return next((name for name, (other, _) in _FIELDS.items() if other == setting), "")


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
    """
    workload = given.get("workload")
    if not isinstance(workload, str):
        raise wrong("workload", "is missing", hint='as in workload = "write"')
    known = {"workload", *setting_names(workload)}
    values: dict[str, Any] = {}
    for spelled, value in given.items():
        field_name = spelled.replace("-", "_")
        name, convert = _FIELDS.get(field_name, (field_name, None))
        if name not in known:
            raise UsageError(
                f"the workload {workload} has no setting {spelled!r}",
                hint=f"known: {', '.join(sorted(known))}",
                field=spelled,
            )
        if name in values:
            raise wrong(name, f"is given twice, once as {spelled}")
        if convert is not None and value is not None:
            value = convert(value)  # noqa: PLW2901 - the same in another unit
        values[name] = value
    return JobSettings(**values)
