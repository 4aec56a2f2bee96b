"""Parameters of forecasts and simulations: a data file, and changes by another.

``models`` has the files that come with sbench; each value has a source, a date and a confidence.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import msgspec
import numpy as np

from serverless_bench.base.errors import UsageError
from serverless_bench.base.user_files import read_text
from serverless_bench.job.endpoint import is_directory_bucket
from serverless_bench.job.operations import OperationKind
from serverless_bench.rundir.tables import Floats

_MOST: Final = 1e15
_S = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
_Sigma = Annotated[float, msgspec.Meta(ge=0, le=3)]
_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
_Slope = Annotated[float, msgspec.Meta(gt=1, le=100)]
_Factor = Annotated[float, msgspec.Meta(ge=1, le=_MOST)]
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
    billed_s: _S = 0.0
    """Billed time outside of a function's record: its imports, its claim and the record itself."""


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
    slow_put_share: _Share = 0.0
    slow_get_share: _Share = 0.0
    """Fraction of the functions whose connections are slower by a factor from a Pareto law."""
    slow_slope: _Slope = 2.0
    """Exponent of that law."""
    slow_most: _Factor = _MOST
    """Largest factor."""
    core_s_per_gib: _Amount | None = None
    """CPU time; None: as measured for the client over https, by the four below."""
    thin_put_core_s_per_gib: _Amount = 0.0
    thin_get_core_s_per_gib: _Amount = 0.0
    other_put_core_s_per_gib: _Amount = 0.0
    other_get_core_s_per_gib: _Amount = 0.0
    vpc_bytes_per_s: _Rate | None = None
    """Rate of all functions of a VPC together; None for no limit."""
    on_lambda: bool = False
    """Whether it has a memory size, which determines CPU, network and bill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """Latencies, and limits of the store for all functions together."""

    put_s: _S = 0.0
    put_sigma: _Sigma = 0.0
    """Time from the last byte of a put to the acknowledgement; also of requests without a body.
    Median and sigma of a log-normal body.
    """
    put_tail: _Share = 0.0
    put_tail_from: _Factor = 1.0
    put_tail_slope: _Slope = 2.0
    """Fraction of the requests in a Pareto tail, its begin in medians, and its exponent."""
    put_drift_sigma: _Sigma = 0.0
    put_spread_sigma: _Sigma = 0.0
    """Differences of latency between runs, and between the functions of a run (log-normal)."""
    get_s: _S = 0.0
    get_sigma: _Sigma = 0.0
    """Time from a get to the first byte."""
    get_tail: _Share = 0.0
    get_tail_from: _Factor = 1.0
    get_tail_slope: _Slope = 2.0
    get_drift_sigma: _Sigma = 0.0
    get_spread_sigma: _Sigma = 0.0
    longest_s: _Rate | None = None
    """Longest latency of the tail; None for no limit."""
    connect_s: _S = 0.0
    """Additional time of the first request of a connection."""
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

    def latencies(
        self, kind: OperationKind, shape: tuple[int, ...], rng: np.random.Generator
    ) -> Floats:
        """Draw latencies of a put or a get, without drift and spread."""
        median, sigma, tail, begin, slope = (
            getattr(self, f"{kind}_{name}")
            for name in ("s", "sigma", "tail", "tail_from", "tail_slope")
        )
        drawn = np.asarray(median * np.exp(sigma * rng.standard_normal(shape)))
        if tail:
            slow = rng.random(shape) < tail
            long = median * begin * rng.random(int(slow.sum())) ** (-1 / slope)
            drawn[slow] = np.maximum(drawn[slow], np.minimum(long, self.longest_s or np.inf))
        return drawn

    def factors(
        self, kind: OperationKind, shape: tuple[int, ...], rng: np.random.Generator
    ) -> Floats:
        """Draw the factor of latency of functions; the first dimension are runs."""
        drift, spread = (getattr(self, f"{kind}_{name}_sigma") for name in ("drift", "spread"))
        # A model without these draws no numbers, so that its simulations stay the same.
        runs = rng.standard_normal((shape[0], 1)) if drift else 0.0
        functions = rng.standard_normal(shape) if spread else 0.0
        return np.broadcast_to(np.exp(drift * runs + spread * functions), shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """All parameters of a simulation."""

    name: str
    launch: Launch = field(default_factory=Launch)
    function: FunctionModel = field(default_factory=FunctionModel)
    store: Store = field(default_factory=Store)
    express: Store | None = None
    """Directory buckets; None if they are like the standard ones."""

    def store_of(self, bucket: str) -> Store:
        """Return the parameters of a bucket's class."""
        return self.express if self.express and is_directory_bucket(bucket) else self.store


_PARTS: Final = {"launch": Launch, "function": FunctionModel, "store": Store, "express": Store}


def load_model(name: str) -> Model:
    """Return a built-in model, or the model in a file.

    Parameters
    ----------
    name
        ``aws-lambda``, ``loopback``, or a TOML file: ``base`` is the model to change, and the
        tables ``launch``, ``function``, ``store`` and ``express`` hold the changes.

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
    return model_of(name[:60], MODELS[base], data)


def model_of(name: str, base: Model, data: Mapping[str, Any]) -> Model:
    """Return a model with changes of another, by table."""
    parts: dict[str, Any] = {part: getattr(base, part) for part in _PARTS}
    for part in data.keys() & _PARTS.keys():
        parts[part] = _part(_PARTS[part], part, parts[part] or base.store, data[part])
    model = Model(name=name, **parts)
    _check(model)
    return model


def _part(kind: type[T], part: str, base: T, given: object) -> T:
    if not isinstance(given, dict):
        raise ValueError(f"`{part}` must be a table")  # noqa: TRY004 - one error for a bad file
    field_names = {parameter.name for parameter in fields(kind)}  # type: ignore[arg-type] # a dataclass
    for field_name in sorted(given.keys() - field_names):
        raise ValueError(f"`{part}.{field_name}` is unknown")
    values = {n: one["value"] if isinstance(one, dict) else one for n, one in given.items()}
    # "none" removes a limit of the base: TOML has no null.
    changes = {n: None if value == "none" else value for n, value in values.items()}
    try:
        return msgspec.convert({**asdict(base), **changes}, kind)  # type: ignore[call-overload] # a dataclass
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


def _built_in(name: str) -> Model:
    path = Path(__file__).parent / "models" / f"{name}.toml"
    return model_of(name, Model(name=name), tomllib.loads(path.read_text("utf-8")))


AWS_LAMBDA: Final = _built_in("aws-lambda")
LOOPBACK: Final = _built_in("loopback")
MODELS: Final[Mapping[str, Model]] = {model.name: model for model in (AWS_LAMBDA, LOOPBACK)}
