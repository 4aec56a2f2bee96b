"""What the user asks for: plain values, checked once, when they are made.

Everything here is JSON both ways (``dataclasses.asdict`` out, ``from_json`` in), because
specifications cross machines and are kept in run directories.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Final, Self

from serverless_bench.errors import UsageError
from serverless_bench.job.types import check_types
from serverless_bench.units import GIB, KIB, MIB

MAX_PARTS: Final = 10_000
MIN_PART_BYTES: Final = 5 * MIB
MAX_PART_BYTES: Final = 5 * GIB
"""Amazon S3 user guide, "Amazon S3 multipart upload limits"."""
DEFAULT_PART_BYTES: Final = 64 * MIB
"""1,800 functions at 95 MB/s make 2,550 UploadPart/s at 64 MiB, below the 3,500 PUT/s of
one S3 partition; at boto3's 8 MiB it would be 20,400."""

POLLS_PER_S: Final = 2000
"""At a gate, of all functions together: well below the 5,500 GET/s of one partition (Amazon
S3 user guide, "Best practices design patterns")."""
LEAST_POLL_S: Final = 0.05

OWN_FUNCTION: Final = "function"
"""The workload whose operations are decided by code that comes with the invocation."""
MAX_DUE: Final = 10_000_000
"""Operations that the schedules of a run may ask for in all; nobody could hold more records."""


class Verify(StrEnum):
    """How much of what is read is compared with what was written."""

    FULL = "full"
    SAMPLE = "sample"
    """One block in sixteen, and the first and the last."""
    NONE = "none"


class Addressing(StrEnum):
    """Where a request names its bucket."""

    AUTO = "auto"
    """Host name on AWS, path elsewhere."""
    PATH = "path"
    VIRTUAL = "virtual"


class Stat(StrEnum):
    """How the size of an object is learned before it is read."""

    KEY = "key"
    """It stands in the key: no request."""
    EACH = "each"
    """A HEAD before every get, as libraries do that split what they read into ranges."""
    BEFORE = "before"
    """All HEADs before the first get, and none after (sai3-bench's pre-stat)."""


class OperationKind(StrEnum):
    """The measured actions that a workload can ask for."""

    PUT = "put"
    GET = "get"
    GET_RANGE = "get_range"
    HEAD = "head"
    LIST = "list"
    DELETE = "delete"
    DELETE_MANY = "delete_many"
    COPY = "copy"
    WRITE_ARRAY = "write_array"
    APPEND_ARRAY = "append_array"
    READ_ARRAY = "read_array"
    CALL = "call"
    """A stretch of the user's own function."""

    @property
    def creates(self) -> bool:
        """Whether it makes an object at its key."""
        return self in {OperationKind.PUT, OperationKind.COPY}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where objects live, and which library reaches them.

    Parameters
    ----------
    client
        Library that moves the bytes: wire, boto3, or another one of docs/clients.md.
    bucket
        Name of the bucket, which must be there.
    prefix
        Goes before every new key; existing keys in a key file already have theirs.
    endpoint_url
        ``http(s)://host[:port]`` of the store, without the bucket; empty for AWS, where it is
        found out.
    region
        Region of the bucket. Without an endpoint it is found out.
    addressing
        Where a request names its bucket: auto, path or virtual.
    store
        Which store sbench runs here itself; None for any other. ``embedded_target`` sets it.
    options
        The client library's own options, as names and values; docs/clients.md has them.

    Examples
    --------
    >>> sbench.Target(bucket="mine", endpoint_url="https://store.example:9000").region
    'us-east-1'
    """

    client: str = "wire"
    bucket: str
    prefix: str = "sbench/"
    endpoint_url: str = ""
    region: str = "us-east-1"
    addressing: Addressing = Addressing.AUTO
    store: str | None = None
    options: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        check_types(self)
        # JSON has no tuples, and a target is a key of dictionaries.
        object.__setattr__(self, "options", tuple((n, v) for n, v in self.options))


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """How one object is moved and checked.

    Parameters
    ----------
    connections
        Requests of one operation in flight at once.
    part_bytes
        Size of a part of an upload and of a range of a download; None moves objects whole.
    block_bytes
        Bytes generated, moved and compared at a time.
    verify
        How much of what is read is compared with what was written: full, sample or none.
    retries
        Further attempts after an attempt that failed for a reason that may pass; 0 for none.
    timeout_s
        An attempt ends when no byte has moved for this long.
    min_split_bytes
        Objects below this size are read whole, whatever ``part_bytes`` says.
    stat
        How the size of an object is learned before it is read: key, each or before.

    Examples
    --------
    >>> transfer = sbench.Transfer(part_bytes=8 << 20, connections=4)
    >>> transfer.verify.value, transfer.retries
    ('full', 4)
    """

    connections: int = 1
    part_bytes: int | None = None
    block_bytes: int = MIB
    verify: Verify = Verify.FULL
    retries: int = 4
    timeout_s: float = 60.0
    min_split_bytes: int | None = None
    stat: Stat = Stat.KEY

    def __post_init__(self) -> None:
        check_types(self)
        if self.min_split_bytes is not None:
            _at_least("min_split_bytes", self.min_split_bytes, 1)
        _at_least("connections", self.connections, 1)
        if self.block_bytes < KIB:
            raise wrong("block_bytes", f"must be at least 1 KiB, got {self.block_bytes} bytes")
        _at_least("retries", self.retries, 0)
        _positive("timeout_s", self.timeout_s)
        if self.part_bytes is not None and not (KIB <= self.part_bytes <= MAX_PART_BYTES):
            raise wrong(
                "part_bytes",
                f"must be at most 5120 MiB, got {self.part_bytes / MIB:g}",
                hint="S3 takes parts of 5 MiB to 5 GiB",
            )

    def part_size(self, kind: OperationKind, size: int) -> int | None:
        """Return the size of a part or range of an object, or None to move it whole.

        Several connections need parts, and so does a put of more than 5 GiB (Amazon S3 user
        guide, "Uploading objects"): both get a size where none was asked for.
        """
        if kind is OperationKind.GET and size < (self.min_split_bytes or 0):
            return None
        chosen = self.part_bytes
        if chosen is None and self.connections > 1:
            share = -(-size // self.connections)
            chosen = max(MIN_PART_BYTES, min(DEFAULT_PART_BYTES, -(-share // MIB) * MIB))
        if chosen is None and kind is OperationKind.PUT and size > MAX_PART_BYTES:
            chosen = DEFAULT_PART_BYTES
        if chosen is None or size <= chosen:
            return None
        return max(chosen, -(-size // MAX_PARTS))


@dataclass(frozen=True, slots=True, kw_only=True)
class ArraySpec:
    """An array that a library writes, appends to or reads; docs/arrays.md.

    Parameters
    ----------
    library
        tensorstore, zarr, ome_zarr or cpp_zarr; docs/arrays.md.
    operation
        write, append or read.
    driver
        Format on the store: zarr (version 2) or zarr3.
    shape
        Of the array, and of what one append adds.
    chunks
        Of the array, one length per axis.
    shards
        Chunks that share an object; None for an object per chunk.
    dtype
        Type of an element.
    codec
        none, blosc-lz4 or zstd.
    source
        What holds the data in memory: numpy or jax.
    path
        A directory for arrays in files; None for the target's bucket.
    options
        The library's own options, as names and values.

    Examples
    --------
    >>> array = sbench.ArraySpec(library="zarr", shape=(512, 512), chunks=(256, 256))
    >>> array.dtype, array.codec
    ('float32', 'none')
    """

    library: str
    operation: str = "write"
    driver: str = "zarr"
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    shards: tuple[int, ...] | None = None
    dtype: str = "float32"
    codec: str = "none"
    source: str = "numpy"
    path: str | None = None
    options: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        check_types(self)
        for name in ("shape", "chunks", "shards"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, tuple(value))
        object.__setattr__(self, "options", tuple((n, v) for n, v in self.options))


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What the operations of a function are like, beyond how many objects there are.

    Parameters
    ----------
    threads
        Operations of one function in flight at once; each thread has objects of its own.
    sizes
        Distribution of object sizes, as in docs/payload.md; None for one size.
    layout
        How keys are laid out: random, sharded:N or sequential.
    compressibility
        How many times smaller a compressor makes the bytes.
    duplication
        How often each 4 KiB block stands in an object, on average.
    mix
        Weights of the operations of a mixed workload, by kind.
    operations
        Operations that a function performs of a mix; None for as long as ``duration_s``.
    rate_per_s
        Operations that are to begin per second, whether or not earlier ones are through (open
        loop): of the whole job, or in an invocation its share. None for a closed loop.
    arrivals
        When they begin: at even distances, or poisson.
    split
        Functions that share each object read; None if each reads whole objects.
    range_bytes
        Length of what a get_range of a mix reads, at a random offset.
    array
        The array of a workload ``array``; None for objects.
    code
        A function of the user's own, as ``run_job`` packs it.

    Examples
    --------
    >>> load = sbench.Load(threads=4, mix=(("get", 3), ("put", 1)), operations=100)
    >>> load.mix
    (('get', 3.0), ('put', 1.0))
    """

    threads: int = 1
    sizes: str | None = None
    layout: str = "random"
    compressibility: float = 1.0
    duplication: float = 1.0
    mix: tuple[tuple[str, float], ...] = ()
    operations: int | None = None
    rate_per_s: float | None = None
    arrivals: str = "uniform"
    split: int | None = None
    range_bytes: int = MIB
    array: ArraySpec | None = None
    code: str | None = None

    def __post_init__(self) -> None:
        check_types(self)
        object.__setattr__(self, "mix", tuple((str(n), float(w)) for n, w in self.mix))
        _at_least("threads", self.threads, 1)
        for name, value in (("operations", self.operations), ("split", self.split)):
            if value is not None:
                _at_least(name, value, 1)
        _at_least("range_bytes", self.range_bytes, 1)
        if self.rate_per_s is not None:
            _positive("rate_per_s", self.rate_per_s)
        for name, ratio, most in (
            ("compressibility", self.compressibility, 50),
            ("duplication", self.duplication, 100),
        ):
            if not 1 <= ratio <= most:
                raise wrong(name, f"must be between 1 and {most}, got {ratio:g}")
            if self.array is not None and ratio != 1:
                raise wrong(name, "is for objects, not for arrays")
        if self.arrivals not in {"uniform", "poisson"}:
            raise wrong("arrivals", f"must be uniform or poisson, got {self.arrivals!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:  # noqa: PLW1641 - the dataclass makes its hash
    """One benchmark: a workload, run by many invocations against one target.

    Parameters
    ----------
    name
        What reports call the run.
    workload
        What a function does: write, read, mixed, array, function or noop; docs/workloads.md.
    target
        Where the objects are, and which library reaches them.
    transfer
        How one object is moved and checked.
    executor
        Where functions run: local, inline, lambda or lithops; docs/executors.md.
    invocations
        Functions to call in all.
    concurrency
        Invocations alive at once, at most.
    objects
        Objects that one invocation moves, one after the other.
    object_bytes
        Size of a new object; None for workloads that make none, or if ``load`` has sizes.
    repeats
        How often an invocation reads each of its objects.
    deadline_s
        An invocation stops by itself after this long, with a partial record.
    duration_s
        Invocations go through their objects again and again for this long; None for once.
    warmup
        Rounds through the objects of an invocation that reports leave out.
    gate
        Share of the invocations that have to be there before any begins; None for no gate.
    gate_timeout_s
        The gate opens after this long, whoever is there.
    link_bytes_per_s
        What the network between functions and store carries at most, as the user declares.
    seed
        Decides what is drawn at random, sizes for instance, but neither keys nor bytes.
    functions
        Names of the deployed functions to invoke, for executors that invoke such.
    control
        Where functions claim their work and leave their records, and the driver finds them; None
        for executors that bring records back by themselves.
    start_timeout_s
        What has not begun this long after its launch is launched again, and can not begin any
        more; only with ``control``.
    load
        What the operations of a function are like, beyond how many objects there are.
    endpoints
        Further endpoints of the same bucket; the functions take turns.

    Raises
    ------
    UsageError
        If a value is of another type or cannot be; ``field`` is its name.
    PluginError
        If nobody has a workload, executor or client of this name.

    Examples
    --------
    >>> target = sbench.Target(bucket="mine")
    >>> job = sbench.JobSpec(workload="write", target=target, invocations=4, object_bytes=1 << 20)
    >>> job.executor, job.concurrency
    ('local', 8)
    >>> sbench.JobSpec(workload="write", target=target, invocations="4", object_bytes=1)
    Traceback (most recent call last):
        ...
    serverless_bench.errors.UsageError: `invocations` must be a whole number, got '4'
    """

    name: str = "job"
    workload: str
    target: Target
    transfer: Transfer = field(default_factory=Transfer)
    executor: str = "local"
    invocations: int
    concurrency: int = 8
    objects: int = 1
    object_bytes: int | None = None
    repeats: int = 1
    deadline_s: float = 900.0
    duration_s: float | None = None
    warmup: int = 0
    gate: float | None = None
    gate_timeout_s: float = 60.0
    link_bytes_per_s: float | None = None
    seed: int = 0
    functions: tuple[str, ...] = ()
    control: Target | None = None
    start_timeout_s: float = 60.0
    load: Load = field(default_factory=Load)
    endpoints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._check_values()
        self.check_asked()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, JobSpec):
            return NotImplemented
        return all(getattr(self, one.name) == getattr(other, one.name) for one in fields(JobSpec))

    def check_asked(self) -> None:
        """Refuse what cannot be run here, whatever its values.

        Raises
        ------
        UsageError
            If new objects have no size.
        PluginError
            If nobody has the workload, the executor or the client.
        """
        sizes = self.object_bytes or self.load.sizes
        if self.workload in {"write", "mixed"} and sizes is None:
            raise UsageError(
                f"`object_bytes` is missing: a {self.workload} makes objects",
                hint="object_bytes=64 << 20 for 64 MiB, or sizes in `load`",
                field="object_bytes",
            )
        # Their tables stand in rooms above this one, which only the package's front may enter.
        from serverless_bench import check_names  # noqa: PLC0415

        check_names(self)

    def _check_values(self) -> None:
        check_types(self)
        for name, value in (
            ("invocations", self.invocations),
            ("concurrency", self.concurrency),
            ("objects", self.objects),
            ("repeats", self.repeats),
        ):
            _at_least(name, value, 1)
        _at_least("warmup", self.warmup, 0)
        for name in ("deadline_s", "gate_timeout_s", "start_timeout_s"):
            _positive(name, getattr(self, name))
        for name in ("duration_s", "link_bytes_per_s"):
            if (limit := getattr(self, name)) is not None:
                _positive(name, limit)
        if self.gate is not None and not 0 < self.gate <= 1:
            raise wrong(
                "gate",
                f"must be above 0 and at most 1, got {self.gate:g}",
                hint="it is the share of the functions to wait for: `gate` 0.95",
            )
        self._check_rate()
        part_bytes = self.transfer.part_bytes
        if self.workload != "read" and part_bytes is not None and part_bytes < MIN_PART_BYTES:
            raise wrong(
                "part_bytes",
                f"must be between 5 and 5120 MiB, got {part_bytes / MIB:g}",
                hint="S3 takes parts of 5 MiB to 5 GiB; ranges of a read may be smaller",
            )
        if self.object_bytes is not None:
            _at_least("object_bytes", self.object_bytes, 1)
            parts = -(-self.object_bytes // (self.transfer.part_bytes or MAX_PART_BYTES))
            if parts > MAX_PARTS:
                raise UsageError(
                    f"{parts} parts make one object, S3 takes at most {MAX_PARTS}",
                    hint="raise `part_bytes`",
                )

    def _check_rate(self) -> None:
        rate = self.load.rate_per_s
        if rate is None:
            return
        if self.workload in {OWN_FUNCTION, "noop"}:
            raise wrong(
                "rate_per_s",
                f"means nothing to the workload {self.workload}",
                hint="it has no operations of its own that could be due",
            )
        due = rate * (self.duration_s or 0) * -(-self.invocations // self.concurrency)
        if due > MAX_DUE:
            raise wrong(
                "rate_per_s",
                f"{rate:g} asks for {due:,.0f} operations, a run may have {MAX_DUE:,}",
                hint="ask for fewer a second, or for a shorter `duration_s`",
            )

    @property
    def gate_poll_s(self) -> float:
        """How often one function asks for the common start."""
        return max(LEAST_POLL_S, self.concurrency / POLLS_PER_S)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "JobSpec":
        """Return the job that ``asdict`` made ``data`` from."""
        return DescribedJob(
            **{
                **data,
                "target": Target(**data["target"]),
                "transfer": Transfer(**data["transfer"]),
                "functions": tuple(data.get("functions", ())),
                "control": _target_or_none(data.get("control")),
                "load": _load(data.get("load", {})),
                "endpoints": tuple(data.get("endpoints", ())),
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DescribedJob(JobSpec):
    """A job that need not be one that could be run here: of a saved run, or of another tool.

    It may have names of plugins that are not installed, and lack what older versions left out.
    """

    def __post_init__(self) -> None:
        self._check_values()


@dataclass(frozen=True, slots=True, kw_only=True)
class InvocationSpec:
    """Everything one function call needs, and no more; below 4 KB as JSON.

    It carries no credentials: a worker has its own, from its environment or its role.
    """

    run_id: str
    index: int
    launch: int = 0
    """0, and one more each time the driver invokes this index again."""
    workload: str
    target: Target
    transfer: Transfer
    objects: int
    object_bytes: int | None
    repeats: int
    keys: tuple[str, ...] = ()
    """Existing objects to read; empty for workloads that make their own keys."""
    deadline_s: float
    duration_s: float | None = None
    """Go through the objects again and again for this long; None for once."""
    warmup: int = 0
    """Rounds through the objects that come first and do not count."""
    gate_poll_s: float | None = None
    """How often to ask for the common start; None to begin at once."""
    gate_timeout_s: float = 0.0
    """How long the driver waits at the gate."""
    not_after_ns: int
    """Refuse to start after this instant (driver clock): the run is long over."""
    seed: int
    """Unrelated to the seeds of the other invocations."""
    control: Target | None = None
    """As in ``JobSpec``."""
    load: Load = field(default_factory=Load)
    """As in ``JobSpec``; its rate is this function's share."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the invocation that ``asdict`` made ``data`` from."""
        return cls(
            **{
                **data,
                "target": Target(**data["target"]),
                "transfer": Transfer(**data["transfer"]),
                "keys": tuple(data["keys"]),
                "control": _target_or_none(data.get("control")),
                "load": _load(data.get("load", {})),
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationSpec:
    """One planned action on one object."""

    index: int
    kind: OperationKind
    key: str
    size: int | None
    """Bytes of the object; None when its key does not say (a foreign object)."""
    generation: int = 0
    offset: int = 0
    """Where a range begins."""
    length: int | None = None
    """Bytes of a range; None for the whole object."""
    keys: tuple[str, ...] = ()
    """What is deleted at once; the source of a copy."""
    content: str | None = None
    """Key of the object whose bytes this one holds; None for its own, as a rule."""


def _load(data: Mapping[str, Any]) -> Load:
    array = data.get("array")
    return Load(**{**data, "array": None if array is None else ArraySpec(**array)})


def _target_or_none(data: Mapping[str, Any] | None) -> Target | None:
    return None if data is None else Target(**data)


def wrong(name: str, problem: str, *, hint: str = "") -> UsageError:
    """Return the error that says what is wrong with one setting or field."""
    return UsageError(f"`{name}` {problem}", hint=hint, field=name)


def _at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise wrong(name, f"must be at least {least}, got {value}")


def _positive(name: str, value: float) -> None:
    if not value > 0:
        raise wrong(name, f"must be positive, got {value}")
