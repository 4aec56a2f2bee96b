"""What a user says of a job: plain settings, the same on the command line, in files and in Python.

A setting is called like its flag, with underscores, and like the field of a specification
(``JobSpec`` and what it holds) that is made from it. Help texts, docs/settings.md and how a
text is read stand here. msgspec checks types and choices; what values can be is checked where
specifications are made, in ``job.spec``.
"""

from dataclasses import dataclass, fields
from typing import Annotated, Literal

from serverless_bench.job.defaults import (
    CONTROL_PREFIX,
    DEFAULT_EXECUTOR,
    DEFAULT_MB,
    DEFAULT_MIX,
    DEFAULT_PREFIX,
)
from serverless_bench.job.shared_keys import Pattern
from serverless_bench.job.target import Addressing
from serverless_bench.job.transfer import Stat, Verify
from serverless_bench.settings.meaning import Harmless, Meaning
from serverless_bench.settings.schema import checked
from serverless_bench.settings.texts import (
    read_duration,
    read_folder,
    read_lengths,
    read_mix,
    read_options,
    read_pairs,
    read_size,
    read_sizes,
)
from serverless_bench.units import parse_link, parse_share


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    """Settings of one job, of the right types; docs/settings.md has them as a table.

    Raises
    ------
    UsageError
        If a value is of another type.
    """

    workload: Annotated[
        str, Meaning("What functions do: write, read, contend ...; no flag, but the command.")
    ]
    name: Annotated[str | None, Harmless("Name of the run directory; a time stamp without it.")] = (
        None
    )
    number: Annotated[
        int | None,
        Harmless(
            "Functions.",
            otherwise=lambda workload: (
                workload.default_number or "as many as read all keys, at least 1"
            ),
        ),
    ] = None
    objects: Annotated[
        int | None,
        Harmless("Objects per function.", otherwise=lambda workload: workload.default_objects),
    ] = None

    # Where objects are.
    bucket: Annotated[
        str | None,
        Meaning(
            "Bucket: NAME, or az://CONTAINER or gs://BUCKET on another cloud; without it, and"
            " without an endpoint, a store starts here."
        ),
    ] = None
    endpoint_url: Annotated[
        str | None,
        Meaning(
            "Any S3-compatible store; the cloud's own if only a bucket is named. Of several, with"
            " commas between them, functions take turns."
        ),
    ] = None
    region: Annotated[str | None, Meaning("Where the bucket lives; found out if not given.")] = None
    create_bucket: Annotated[
        bool, Meaning("Make the bucket of an S3-compatible store if it is missing.")
    ] = False
    addressing: Annotated[Addressing, Meaning("Bucket in the host name or in the path.")] = (
        Addressing.AUTO
    )
    client: Annotated[
        str | None,
        Harmless(
            "Library that moves the bytes.",
            otherwise=lambda _: "wire; obstore for az:// and gs://",
        ),
    ] = None
    client_option: Annotated[
        str | tuple[str, ...] | dict[str, str | int | float | bool],
        Meaning(
            "An option of that library; docs/clients.md has them.",
            read=lambda name, given: tuple(sorted(read_pairs(name, given))),
        ),
    ] = ()
    prefix: Annotated[str, Meaning("Goes before every random key.", own=True)] = DEFAULT_PREFIX

    # How an object is moved.
    connections: Annotated[int, Harmless("Connections of each function.")] = 1
    part_size: Annotated[
        str | int | None,
        Harmless("Size of a part or range, as in 16MiB; whole objects without it.", read=read_size),
    ] = None
    block_size: Annotated[str | int, Harmless("Bytes moved at a time.", read=read_size)] = "1MiB"
    verify: Annotated[Verify, Harmless("How much of what is read is compared.")] = Verify.FULL
    retries: Annotated[
        int, Harmless("Further attempts of what failed for a passing reason; 15 s if throttled.")
    ] = 4
    timeout: Annotated[
        float | str,
        Harmless("Time without a byte that ends an attempt.", read=read_duration),
    ] = 60.0
    min_split_size: Annotated[
        str | int | None, Harmless("Smaller objects are read whole.", read=read_size)
    ] = None
    stat: Annotated[
        Stat,
        Harmless(
            "How sizes are learned before a read: from the key, by a HEAD each, or all before."
        ),
    ] = Stat.KEY

    # How a function goes through its operations.
    threads: Annotated[int, Harmless("Operations at once, in each function.", own=True)] = 1
    rate: Annotated[
        float | None,
        Harmless(
            "Operations due per second, of the functions that run at once (open loop).",
            own=True,
        ),
    ] = None
    arrivals: Annotated[
        Literal["uniform", "poisson"], Harmless("When they begin, with --rate.", own=True)
    ] = "uniform"

    # New objects.
    mb: Annotated[
        int | None,
        Harmless(
            "Size of an object in MiB.",
            own=True,
            otherwise=lambda workload: DEFAULT_MB if workload.needs_size else None,
        ),
    ] = None
    size: Annotated[
        str | int | None,
        Harmless("Size of an object with its unit, as in 2GB or 64MiB.", own=True, read=read_size),
    ] = None
    sizes: Annotated[
        str | None,
        Meaning(
            "Distribution of sizes, as in loguniform:4KiB:64MiB; docs/payload.md.",
            own=True,
            read=read_sizes,
        ),
    ] = None
    layout: Annotated[str, Harmless("Keys: random, sharded:N or sequential.", own=True)] = "random"
    compressibility: Annotated[
        float, Harmless("How many times smaller a compressor makes the bytes.", own=True)
    ] = 1.0
    duplication: Annotated[
        float, Harmless("How often each 4 KiB block stands in an object.", own=True)
    ] = 1.0

    # Reads.
    key: Annotated[str | None, Meaning("Read this one object in every function.", own=True)] = None
    key_file: Annotated[
        str | None,
        Meaning("Read the objects listed here, one key per line.", own=True),
    ] = None
    read_times: Annotated[int, Harmless("Reads of each object.", own=True)] = 1
    split: Annotated[
        int | None,
        Harmless("Functions that share each object; each reads a range.", own=True),
    ] = None

    # Operations of several kinds.
    mix: Annotated[
        str | dict[str, float], Harmless("Operations and their weights.", own=True, read=read_mix)
    ] = DEFAULT_MIX
    operations: Annotated[int | None, Harmless("Per function; or --duration.", own=True)] = None
    range_size: Annotated[
        str | int, Harmless("What a get_range reads.", own=True, read=read_size)
    ] = "1MiB"

    # Keys that all functions write to.
    pattern: Annotated[Pattern, Harmless("What functions contend for.", own=True)] = (
        Pattern.INCREMENT
    )
    backoff: Annotated[
        float | str,
        Harmless("Longest wait after a conflict.", own=True, read=read_duration),
    ] = 0.01

    # Arrays.
    operation: Annotated[
        Literal["write", "append", "read"] | None,
        Meaning("What to do with arrays; behind `sbench array`.", own=True),
    ] = None
    library: Annotated[
        str, Harmless("What writes or reads: cpp_zarr, ome_zarr, tensorstore, zarr.", own=True)
    ] = "tensorstore"
    driver: Annotated[str, Harmless("Format: zarr (2) or zarr3.", own=True)] = "zarr"
    shape: Annotated[
        str | tuple[int, ...],
        Harmless("Of an array, or of what one append adds.", own=True, read=read_lengths),
    ] = "4096,4096"
    chunks: Annotated[
        str | tuple[int, ...], Harmless("Shape of a chunk.", own=True, read=read_lengths)
    ] = "1024,1024"
    shards: Annotated[
        str | tuple[int, ...] | None,
        Harmless(
            "Shape of what becomes one object; a chunk without it.", own=True, read=read_lengths
        ),
    ] = None
    dtype: Annotated[str, Harmless("uint8, uint16, uint32 or float32.", own=True)] = "float32"
    codec: Annotated[
        str, Harmless("none, blosc-lz4, blosc-zstd or zstd, all at level 1.", own=True)
    ] = "none"
    source: Annotated[str, Harmless("Who holds the data: numpy or jax.", own=True)] = "numpy"
    path: Annotated[
        str | None,
        Meaning(
            "Directory for arrays in files; the bucket without it.", own=True, read=read_folder
        ),
    ] = None
    library_option: Annotated[
        str | tuple[str, ...] | dict[str, str | int | float | bool],
        Meaning("An option of the library; docs/arrays.md has them.", own=True, read=read_options),
    ] = ()

    code: Annotated[
        str | None,
        Meaning(
            "The function of `sbench call`, as `driver.pickling.pack` makes it.",
            own=True,
        ),
    ] = None

    # Where functions run, and for how long.
    executor: Annotated[str, Meaning("Where functions run.")] = DEFAULT_EXECUTOR
    concurrency: Annotated[int | None, Harmless("Functions at once; see docs/executors.md.")] = None
    deadline: Annotated[
        float | str,
        Harmless(
            "Time after which a function stops by itself; the driver's own requests have 40 s.",
            read=read_duration,
        ),
    ] = 900.0
    duration: Annotated[
        float | str | None,
        Harmless("Time to go through the objects again and again.", read=read_duration),
    ] = None
    until_stable: Annotated[
        str | float | None,
        Harmless(
            "End before --duration, after 30 s or more, once an interval of the rate is this"
            " narrow: half its width over the rate, as in 2%; docs/limit.md.",
            read=lambda name, given: parse_share(f"`{name}`", str(given)),
        ),
    ] = None
    warm_up: Annotated[
        int,
        Harmless("Rounds through the objects that come first and do not count."),
    ] = 0
    gate: Annotated[
        float | None, Harmless("Begin together, once this share of functions is there.")
    ] = None
    gate_timeout: Annotated[
        float | str,
        Harmless("Time after which the gate opens, whoever is there.", read=read_duration),
    ] = 60.0
    link: Annotated[
        str | float | None,
        Harmless(
            "What the network carries at most, as in 20Gbit: more is not believed.",
            read=lambda _, given: parse_link(given) if isinstance(given, str) else given,
        ),
    ] = None
    seed: Annotated[int, Harmless("Seed of everything random.")] = 0

    # Functions elsewhere.
    stack: Annotated[str | None, Meaning("What `sam deploy` made: its functions, its buckets.")] = (
        None
    )
    memory: Annotated[
        int | None,
        Harmless(
            "MB of a function: chooses among the stack's; others must have as much. Decides the"
            " cost.",
        ),
    ] = None
    arch: Annotated[
        Literal["arm64", "x86_64"] | None,
        Harmless("Processor of the functions, as the memory."),
    ] = None
    function: Annotated[
        str | tuple[str, ...],
        Meaning("Deployed function to invoke; several share the load."),
    ] = ()
    function_region: Annotated[
        str | None, Meaning("Where the functions are, if not where the bucket is.")
    ] = None
    probe: Annotated[
        bool, Harmless("Ask each function, or Dask worker, first what it is and may do.")
    ] = True
    scheduler: Annotated[
        str | None,
        Meaning("Of a Dask cluster, as in tls://HOST:8786; without it one is started here."),
    ] = None
    lithops_keys: Annotated[
        bool, Meaning("Let Lithops send the keys in its configuration with every call.")
    ] = False
    slots: Annotated[
        int | None,
        Harmless("Functions at once of a Dask cluster that is started."),
    ] = None
    control_prefix: Annotated[
        str | None,
        Meaning(
            "Where functions leave records: PREFIX, or s3://BUCKET/PREFIX, az:// or gs://.",
            otherwise=lambda _: CONTROL_PREFIX,
        ),
    ] = None
    start_timeout: Annotated[
        float | str,
        Harmless(
            "Time after which a function that has not begun is launched again.",
            read=read_duration,
        ),
    ] = 60.0

    def __post_init__(self) -> None:
        for one in fields(self):
            value = checked(JobSettings, one.name, getattr(self, one.name))
            object.__setattr__(self, one.name, value)
