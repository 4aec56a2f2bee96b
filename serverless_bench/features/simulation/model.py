"""Parameters of a simulation, their sources, and changes by a file."""

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import msgspec

from serverless_bench.base.errors import UsageError
from serverless_bench.base.user_files import read_text
from serverless_bench.features.cost.forecast import (
    LAUNCH_AT_ONCE,
    LAUNCH_PER_S,
    LIMIT_PER_S,
    LINE_BYTES_PER_S,
)
from serverless_bench.job.operations import OperationKind

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
    """Start of functions; times are log-normal, given by median and sigma."""

    submit_per_s: _Rate | None = None
    """Invocations that the driver sends per second; None for all at once."""
    burst: _Count | None = None
    """Burst of new environments; None for as many as are requested."""
    per_s: _Rate | None = None
    """Additional environments per second, once the burst is used up."""
    cold_s: _S = 0.0
    cold_sigma: _Sigma = 0.0
    """Time from the invocation to the handler, in a new environment."""
    warm_s: _S = 0.0
    warm_sigma: _Sigma = 0.0
    """The same in an environment used by an earlier invocation."""
    setup_s: _S = 0.0
    """Time from the handler to the first operation."""
    finish_s: _S = 0.0
    """Time from the last operation to the end of the function."""
    collect_s: _S = 0.0
    """Time from there until the driver has the record, and may launch another function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionModel:
    """Limits of one function."""

    burst_bytes: _Amount | None = None
    """Initial content of the network's bucket; half of it is restored. None: as in Lambda."""
    bytes_per_s: _Rate | None = None
    """Rate of the network after the burst; None: as in Lambda, by memory and quota."""
    line_put_bytes_per_s: _Rate | None = None
    line_get_bytes_per_s: _Rate | None = None
    """Rate of the network at any time; None for no limit."""
    connection_put_bytes_per_s: _Rate | None = None
    connection_get_bytes_per_s: _Rate | None = None
    """Rate of a connection; None for no limit."""
    connection_put_sigma: _Sigma = 0.0
    connection_get_sigma: _Sigma = 0.0
    """Differences between connections of different functions (log-normal)."""
    core_s_per_gib: _Amount | None = None
    """CPU time; None: as measured for the client over https."""
    on_lambda: bool = False
    """Whether it has a memory size, which determines CPU, network and bill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """Limits of the store for all functions together; latencies are log-normal."""

    put_s: _S = 0.0
    put_sigma: _Sigma = 0.0
    """Time from the last byte of a put to the acknowledgement; also of requests without a body."""
    get_s: _S = 0.0
    get_sigma: _Sigma = 0.0
    """Time from a get to the first byte."""
    put_per_s: _Rate | None = None
    get_per_s: _Rate | None = None
    """Requests per second of one partition; the excess gets 503. None for no limit."""
    partitions: _Count = 1
    """Number of partitions at first: random keys are spread over them evenly."""
    split_s: _Rate | None = None
    """Seconds with rejected requests until another partition is added; None for never."""
    most_partitions: _Count = 1
    bytes_per_s: _Rate | None = None
    """Rate of all functions together; None for no limit."""
    share_sigma: _Sigma = 0.0
    """Inequality of the functions' shares (log-normal weights of max-min fairness)."""


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
        burst=LAUNCH_AT_ONCE,
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
    1,000 environments at once and another 100 per second for each function's name (AWS Lambda
    developer guide, "Lambda function scaling"). Start-up: fitted to Lithops' published records of
    2022 (applications/benchmarks/object_storage), from ``host_submit_tstamp`` to
    ``worker_start_tstamp``: warm, the median of 193 warm calls of its 100 functions, write and
    read, and the standard deviation of their logarithms; cold, the median of its write by 1,000
    functions, most of them cold, and the logarithm of p99 to median over 2.33 (1.5 s, 2.6 s).
    ``setup_s`` and ``finish_s`` are medians of the 200 records. ``submit_per_s`` and
    ``collect_s`` are assumptions about the driver.
function
    Network by memory and quota as in ``features.aws.lambda_network``; line rates and core-seconds
    as in ``features.cost.forecast``. Connections: medians of the same records; reads agree to 0.1 %
    (99.8 MB/s), writes have 85 MB/s at 100 and 94 MB/s at 1,000 functions, sigma 0.12 by the
    quartiles of the logarithms.
store
    3,500 PUT and 5,500 GET per second and partition (Amazon S3 user guide, "Best practices
    design patterns"). Latency: median of 27 ms for a get and 40 ms for a put of 1 KiB, 95 % below
    75 ms (hpides/skyrise, EDBT 2025, section 4.3.3): sigma is the logarithm of 75 ms to the
    median, over 1.645. Partitions do not split in this model: Skyrise measured a growth of reads
    from one partition to five in 26 minutes, equivalent to ``split_s = 390`` and
    ``most_partitions = 5``, and no growth of writes in two hours. No ceiling of the store is
    documented: 250 GiB/s have been reached. The inequality of 10 % between functions is an
    assumption.
"""
LOOPBACK: Final = Model(
    name="loopback",
    launch=Launch(setup_s=0.003, finish_s=0.001, collect_s=0.001),
    function=FunctionModel(core_s_per_gib=0.5),
    store=Store(put_s=0.0015, put_sigma=0.3, get_s=0.0015, get_sigma=0.3, share_sigma=0.1),
)
"""Functions and ``sbench serve`` on a single machine, limited only by parameters of a file.

All workers are ready before the first of them starts, so launching takes no time. Latency, set-up
and core-seconds are rounded measurements of single functions on a machine with two CPUs.
"""
MODELS: Final[Mapping[str, Model]] = {model.name: model for model in (AWS_LAMBDA, LOOPBACK)}
_PARTS: Final = ("launch", "function", "store")


def load_model(name: str) -> Model:
    """Return a built-in model, or the model in a file.

    Parameters
    ----------
    name
        ``aws-lambda``, ``loopback``, or a TOML file: ``base`` is the model to change, and the
        tables ``launch``, ``function`` and ``store`` hold the changes.

    Raises
    ------
    UsageError
        If none exists, or the file has an unknown parameter; the message names it.
    """
    if name in MODELS:
        return MODELS[name]
    path = Path(name)
    if not path.is_file():
        raise UsageError(
            f"there is no model {name!r}: it is neither a file nor one of {', '.join(MODELS)}",
            hint='give --model FILE.toml; see "Simulation" in the documentation',
        )
    try:
        return _changed(path.stem, tomllib.loads(read_text(path)))
    except (OSError, ValueError) as exc:
        raise UsageError(
            f"{path} is not a model: {exc}",
            hint='see "Simulation" in the documentation',
        ) from exc


def _changed(name: str, data: Mapping[str, Any]) -> Model:
    base = data.get("base", AWS_LAMBDA.name)
    if base not in MODELS:
        raise ValueError(f"`base` must be one of {', '.join(MODELS)}")
    unknown = sorted(data.keys() - {"base", *_PARTS})
    if unknown:
        raise ValueError(f"`{unknown[0]}` is unknown; use base, {', '.join(_PARTS)}")
    model = Model(
        name=name[:60],
        launch=_part(Launch, "launch", MODELS[base], data),
        function=_part(FunctionModel, "function", MODELS[base], data),
        store=_part(Store, "store", MODELS[base], data),
    )
    _check(model)
    return model


def _part(kind: type[T], part: str, base: Model, data: Mapping[str, Any]) -> T:
    given = data.get(part, {})
    if not isinstance(given, dict):
        raise ValueError(f"`{part}` must be a table")  # noqa: TRY004 - one error for a bad file
    field_names = {parameter.name for parameter in fields(kind)}  # type: ignore[arg-type] # a dataclass
    for field_name in sorted(given.keys() - field_names):
        raise ValueError(f"`{part}.{field_name}` is unknown")
    # "none" removes a limit of the base: TOML has no null.
    changes = {n: None if value == "none" else value for n, value in given.items()}
    try:
        return msgspec.convert({**asdict(getattr(base, part)), **changes}, kind)
    except msgspec.ValidationError as exc:
        text, _, location = str(exc).partition(" - at ")
        raise ValueError(f"`{part}{location.strip('`').removeprefix('$')}`: {text}") from None


def _check(model: Model) -> None:
    """Check that parameters do not contradict each other."""
    launch, function, store = model.launch, model.function, model.store
    if (launch.burst is None) != (launch.per_s is None):
        raise ValueError("`launch.burst` and `launch.per_s` have to be set together")
    if function.burst_bytes is not None and function.bytes_per_s is None:
        raise ValueError("`function.burst_bytes` needs `function.bytes_per_s`")
    if store.most_partitions < store.partitions:
        raise ValueError("`store.most_partitions` is below `store.partitions`")
