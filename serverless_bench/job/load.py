"""Operations of a function: their number, kinds, times and objects."""

import math
from dataclasses import dataclass
from typing import Final

from serverless_bench.base.units import KIB, MIB
from serverless_bench.job.keys import check_ratios, parse_layout
from serverless_bench.job.types import check_limits, check_types, wrong

MAX_DUE: Final = 10_000_000
"""Most operations that the schedules of a run may plan: more records would not fit anywhere."""
_LIMITS: Final = {
    "threads": (1, 10_000),
    "operations": (1, math.inf),
    "split": (1, math.inf),
    "range_size": (1, math.inf),
    "row_groups": (1, math.inf),
    "columns": (1, math.inf),
    "share": (0, 1),
    "gap": (0, math.inf),
    "footer_guess": (8, math.inf),
    "mappers": (1, math.inf),
    "reducers": (1, math.inf),
    "total": (1, math.inf),
}

_CHOICES: Final = {
    "arrivals": ("uniform", "poisson"),
    "pattern": (None, "increment", "claim", "append"),
    "partitions": ("objects", "ranges"),
    "reduce": ("barrier", "eager"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ArraySpec:
    """An array that a library writes, appends to or reads.

    Parameters
    ----------
    library
        tensorstore, zarr, ome_zarr or cpp_zarr; serverless_bench/features/array/README.md.
    operation
        write, append or read.
    driver
        Format on the store: zarr (version 2) or zarr3.
    shape
        Shape of the array, or of an append.
    chunks
        Shape of a chunk, one length per axis.
    shards
        Chunks that share an object; None for an object per chunk.
    dtype
        Type of an element.
    codec
        none, blosc-lz4 or zstd.
    source
        Library that holds the data in memory: numpy or jax.
    path
        A directory for arrays in files; None for the target's bucket.
    library_option
        Options of the library, as names and values.

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
    library_option: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        check_types(self)
        for name in ("shape", "chunks", "shards"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, tuple(value))
        object.__setattr__(self, "library_option", tuple((n, v) for n, v in self.library_option))


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The operations of a function, apart from the number of objects.

    Parameters
    ----------
    threads
        Operations of a function in flight at the same time; threads do not share objects.
    sizes
        Distribution of object sizes, as in docs/payload.md; None for one size.
    layout
        Layout of the keys: random, sharded:N or sequential.
    compressibility
        Factor by which a compressor makes the bytes smaller.
    duplication
        Average number of copies of each 4 KiB block in an object.
    mix
        Weights of the operations of a mixed workload, by kind.
    operations
        Operations that each function performs of a mix, or each thread of a contended workload;
        None to continue for ``duration``.
    rate
        Operations to start per second, whether or not earlier ones have finished (open loop): of
        the whole job, or in an invocation its part of that. None for a closed loop.
    arrivals
        Distribution of the start times: uniform (even distances) or poisson.
    split
        Functions that share each object read; None if each reads full objects.
    range_size
        Bytes that a get_range of a mix reads, at a random offset.
    pattern
        The kind of contention: increment, claim or append;
        serverless_bench/features/conditional/README.md.
    backoff
        Longest wait after the first conflict of a commit; doubled after each further conflict.
    row_groups
        Row groups of a Parquet file; serverless_bench/features/parquet/README.md.
    columns
        Columns of a Parquet file.
    like
        Encoded layout of a file; None for chunks of equal length.
    share
        Share of the columns that a scan reads.
    gap
        Most bytes between two column chunks that share a request.
    footer_guess
        Bytes that the first request of a scan reads from the end of the file.
    mappers
        Functions that write a partition for each reducer;
        serverless_bench/features/shuffle/README.md.
    reducers
        Functions that read a partition of each mapper.
    total
        Bytes of all partitions.
    partitions
        objects, or ranges of one object per mapper.
    reduce
        barrier: reducers read when all partitions exist; eager: each as soon as it exists.
    patience
        Seconds without a new partition after which a reducer stops waiting.
    poll
        Seconds between two listings of a waiting reducer.
    array
        The array of a workload ``array``; None for objects.
    code
        A user's function, as packed by ``run_job``.
    log
        The schedule of a replay, or in an invocation a part of that.
    speed
        Factor by which a replay is faster than the log.

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
    rate: float | None = None
    arrivals: str = "uniform"
    split: int | None = None
    range_size: int = MIB
    pattern: str | None = None
    backoff: float = 0.01
    row_groups: int = 8
    columns: int = 16
    like: str | None = None
    share: float = 0.25
    gap: int = 8 * KIB
    footer_guess: int = 64 * KIB
    mappers: int = 4
    reducers: int = 4
    total: int | None = None
    partitions: str = "objects"
    reduce: str = "barrier"
    patience: float = 300.0
    poll: float = 0.5
    array: ArraySpec | None = None
    code: str | None = None
    log: str | None = None
    speed: float = 1.0

    @property
    def is_drawn(self) -> bool:
        """Whether operations are drawn at random, so that their number is not known in advance."""
        return bool(self.mix)

    @property
    def library(self) -> str | None:
        """The library that moves the bytes in place of the client; None for the client."""
        return None if self.array is None else self.array.library

    @property
    def folder(self) -> str | None:
        """The directory that takes the place of a bucket; None for a bucket."""
        return None if self.array is None else self.array.path

    def __post_init__(self) -> None:
        check_types(self)
        object.__setattr__(self, "mix", tuple((str(n), float(w)) for n, w in self.mix))
        check_limits(self, _LIMITS, positives=("rate", "share", "speed", "patience", "poll"))
        if not 0 <= self.backoff < float("inf"):
            raise wrong(
                "backoff",
                f"must be at least 0, got {self.backoff:g}",
                hint="it is in seconds; 0 retries at once after a conflict",
            )
        parse_layout(self.layout)
        check_ratios(self.compressibility, self.duplication)
        for name, values in _CHOICES.items():
            if (given := getattr(self, name)) not in values:
                raise wrong(name, f"must be {' or '.join(filter(None, values))}, got {given!r}")
