"""What a simulation assumes: every parameter, where it comes from, and how a file changes it."""

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import msgspec

from serverless_bench.aws.cost.forecast import (
    LAUNCH_AT_ONCE,
    LAUNCH_PER_S,
    LIMIT_PER_S,
    LINE_BYTES_PER_S,
)
from serverless_bench.errors import UsageError
from serverless_bench.job.operations import OperationKind
from serverless_bench.user_files import read_text

_PUT, _GET = OperationKind.PUT, OperationKind.GET
_MOST: Final = 1e15
_S = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
_Sigma = Annotated[float, msgspec.Meta(ge=0, le=3)]
_Rate = Annotated[float, msgspec.Meta(gt=0, le=_MOST)]
_Amount = Annotated[float, msgspec.Meta(ge=0, le=_MOST)]
_Count = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How functions come to work; times are log-normal, by median and sigma."""

    submit_per_s: _Rate | None = None
    """Invocations that the driver sends in a second; None for all at once."""
    at_once: _Count | None = None
    """New environments that are there at once; None for as many as are asked for."""
    per_s: _Rate | None = None
    """More of them per second, once these are used up."""
    cold_s: _S = 0.0
    cold_sigma: _Sigma = 0.0
    """From the invocation to the handler, in a new environment."""
    warm_s: _S = 0.0
    warm_sigma: _Sigma = 0.0
    """The same in an environment that another invocation has left."""
    setup_s: _S = 0.0
    """From the handler to the first operation."""
    finish_s: _S = 0.0
    """From the last operation to the end of the function."""
    collect_s: _S = 0.0
    """From there until the driver has the record, and may launch another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionModel:
    """What one function can do."""

    burst_bytes: _Amount | None = None
    """In its network's bucket at first; half of it comes back. None: as Lambda's."""
    bytes_per_s: _Rate | None = None
    """Of its network after the burst; None: as Lambda's, by memory and quota."""
    line_put_bytes_per_s: _Rate | None = None
    line_get_bytes_per_s: _Rate | None = None
    """Of its network at any time; None for no limit."""
    connection_put_bytes_per_s: _Rate | None = None
    connection_get_bytes_per_s: _Rate | None = None
    """Of one connection; None for no limit."""
    connection_put_sigma: _Sigma = 0.0
    connection_get_sigma: _Sigma = 0.0
    """How much connections of different functions differ (log-normal)."""
    core_s_per_gib: _Amount | None = None
    """Processor time; None: as measured of the client over https."""
    on_lambda: bool = False
    """Whether it has a memory size, which gives it its processor, its network and a bill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """What the store gives to all functions together; latencies are log-normal."""

    put_s: _S = 0.0
    put_sigma: _Sigma = 0.0
    """From the last byte of a put to its acknowledgement; requests without a body take it, too."""
    get_s: _S = 0.0
    get_sigma: _Sigma = 0.0
    """From a get to its first byte."""
    put_per_s: _Rate | None = None
    get_per_s: _Rate | None = None
    """Requests of one partition; what is beyond that is answered with 503. None for no limit."""
    partitions: _Count = 1
    """At first: random keys go to each alike."""
    split_s: _Rate | None = None
    """Seconds with refused requests after which there is one more; None for never."""
    most_partitions: _Count = 1
    bytes_per_s: _Rate | None = None
    """Of all functions together; None for no limit."""
    share_sigma: _Sigma = 0.0
    """How unequally functions share it (log-normal weights of max-min fairness)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """All parameters of a simulation."""

    name: str
    launch: Launch = field(default_factory=Launch)
    function: FunctionModel = field(default_factory=FunctionModel)
    store: Store = field(default_factory=Store)


AWS_LAMBDA: Final = Model(
    name="aws-lambda",
    launch=Launch(
        submit_per_s=1000.0,
        at_once=LAUNCH_AT_ONCE,
        per_s=LAUNCH_PER_S,
        cold_s=1.5,
        cold_sigma=0.24,
        warm_s=0.2,
        warm_sigma=0.49,
        setup_s=0.06,
        finish_s=0.03,
        collect_s=0.5,
    ),
    function=FunctionModel(
        line_put_bytes_per_s=LINE_BYTES_PER_S[_PUT],
        line_get_bytes_per_s=LINE_BYTES_PER_S[_GET],
        connection_put_bytes_per_s=90e6,
        connection_put_sigma=0.12,
        connection_get_bytes_per_s=99.8e6,
        on_lambda=True,
    ),
    store=Store(
        put_s=0.04,
        put_sigma=0.38,
        get_s=0.027,
        get_sigma=0.62,
        put_per_s=LIMIT_PER_S[_PUT],
        get_per_s=LIMIT_PER_S[_GET],
        share_sigma=0.1,
    ),
)
"""AWS Lambda and Amazon S3 in one region.

launch
    1,000 environments at once and 100 more a second for each function's name (AWS Lambda
    developer guide, "Lambda function scaling"). Start-up: fitted to Lithops' published records of
    2022 (applications/benchmarks/object_storage), from ``host_submit_tstamp`` to
    ``worker_start_tstamp``: warm the median of 193 warm calls of its 100 functions, write and
    read, and the standard deviation of their logarithms; cold the median of its write by 1,000
    functions, most of them cold, and the logarithm of p99 to median over 2.33 (1.5 s, 2.6 s).
    ``setup_s`` and ``finish_s`` are medians of the 200 records. ``submit_per_s`` and
    ``collect_s`` are assumptions about the driver.
function
    Network by memory and quota as in ``aws.lambda_network``; line rates and core-seconds as in
    ``aws.cost.forecast``. Connections: medians of the same records; reads are alike to 0.1 %
    (99.8 MB/s), writes have 85 MB/s at 100 and 94 MB/s at 1,000 functions, sigma 0.12 by the
    quartiles of the logarithms.
store
    3,500 PUT and 5,500 GET per second and partition (Amazon S3 user guide, "Best practices
    design patterns"). Latency: median of 27 ms for a get and 40 ms for a put of 1 KiB, 95 % below
    75 ms (hpides/skyrise, EDBT 2025, section 4.3.3): sigma is the logarithm of 75 ms to the
    median, over 1.645. Partitions do not split by themselves here: Skyrise saw reads go from one
    to five in 26 minutes, which is ``split_s = 390`` and ``most_partitions = 5``, and writes not
    at all in two hours. No ceiling of the store is known: 250 GiB/s were reached. That functions
    would share one unequally, by 10 %, is an assumption.
"""
LOOPBACK: Final = Model(
    name="loopback",
    launch=Launch(setup_s=0.003, finish_s=0.001, collect_s=0.001),
    function=FunctionModel(core_s_per_gib=0.5),
    store=Store(put_s=0.0015, put_sigma=0.3, get_s=0.0015, get_sigma=0.3, share_sigma=0.1),
)
"""Functions and ``sbench serve`` on one machine, where nothing is limited but what a file says.

All workers stand before the first one begins, so launching takes no time. Latency, set-up and
core-seconds are rounded figures of single functions on a machine with two processors.
"""
MODELS: Final[Mapping[str, Model]] = {one.name: one for one in (AWS_LAMBDA, LOOPBACK)}
_PARTS: Final = ("launch", "function", "store")


def load_model(name: str) -> Model:
    """Return a model that sbench has, or the one of a file.

    Parameters
    ----------
    name
        ``aws-lambda``, ``loopback``, or a TOML file: ``base`` is the model that it changes, the
        tables ``launch``, ``function`` and ``store`` say in what.

    Raises
    ------
    UsageError
        If there is neither, or the file says what no model has; the message names the field.
    """
    if name in MODELS:
        return MODELS[name]
    path = Path(name)
    if not path.is_file():
        raise UsageError(
            f"there is no model {name!r}: neither a file nor one of {', '.join(MODELS)}",
            hint="--model FILE.toml; docs/simulate.md shows one",
        )
    try:
        data = tomllib.loads(read_text(path))
        return _changed(path.stem, data)
    except (OSError, ValueError) as exc:
        raise UsageError(
            f"{path} is no model: {exc}", hint="docs/simulate.md has all parameters"
        ) from exc


def _changed(name: str, data: Mapping[str, Any]) -> Model:
    base = data.get("base", AWS_LAMBDA.name)
    if base not in MODELS:
        raise ValueError(f"`base` must be one of {', '.join(MODELS)}")
    unknown = sorted(data.keys() - {"base", *_PARTS})
    if unknown:
        raise ValueError(f"`{unknown[0]}` is unknown, there are base, {', '.join(_PARTS)}")
    made = Model(
        name=name[:60],
        launch=_part(Launch, "launch", MODELS[base], data),
        function=_part(FunctionModel, "function", MODELS[base], data),
        store=_part(Store, "store", MODELS[base], data),
    )
    _check(made)
    return made


def _part(kind: type[T], part: str, base: Model, data: Mapping[str, Any]) -> T:
    given = data.get(part, {})
    if not isinstance(given, dict):
        raise ValueError(f"`{part}` must be a table")  # noqa: TRY004 - one error for a bad file
    known = {each.name for each in fields(kind)}  # type: ignore[arg-type] # a dataclass
    for field_name in sorted(given.keys() - known):
        raise ValueError(f"`{part}.{field_name}` is unknown")
    # "none" takes a limit of the base away: TOML has no null.
    own = {n: None if value == "none" else value for n, value in given.items()}
    try:
        return msgspec.convert({**asdict(getattr(base, part)), **own}, kind)
    except msgspec.ValidationError as exc:
        text, _, where = str(exc).partition(" - at ")
        raise ValueError(f"`{part}{where.strip('`').removeprefix('$')}`: {text}") from None


def _check(model: Model) -> None:
    """Refuse parameters that contradict each other."""
    launch, function, store = model.launch, model.function, model.store
    if (launch.at_once is None) != (launch.per_s is None):
        raise ValueError("`launch.at_once` and `launch.per_s` need each other")
    if function.burst_bytes is not None and function.bytes_per_s is None:
        raise ValueError("`function.burst_bytes` needs `function.bytes_per_s`")
    if store.most_partitions < store.partitions:
        raise ValueError("`store.most_partitions` is below `store.partitions`")
