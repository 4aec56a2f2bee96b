"""The combined factors, and combinations that the command refuses: data."""

from collections.abc import Mapping, Sequence
from typing import Final

from serverless_bench.clients import CLIENTS
from tests.contract.declared import info_of

NO: Final = "no"
STABLE: Final = "0.2 until stable"
"""A duration, with ``--until-stable``, which that is too short for."""
FACTORS: Final[Mapping[str, Sequence[str]]] = {
    "workload": (
        *("write", "read", "mixed", "array write", "array read", "custom", "job file", "parquet"),
        *("conditional increment", "conditional claim", "conditional append", "replay"),
        *("shuffle objects", "shuffle ranges", "read existing", "mixed existing"),
        "list",
    ),
    "client": ("wire", *(name for name in sorted(CLIENTS) if name != "wire")),
    "executor": ("inline", "local", "lambda", "workers", "dask"),
    # Slots of a Dask cluster that sbench starts; without a number there is one.
    "slots": (NO, "2"),
    "probe": ("yes", NO),
    "progress-objects": ("yes", NO),
    "memory": (NO, "1769"),
    "arch": (NO, "own"),
    "bucket": ("standard", "directory", "google"),
    "sse": (NO, "AES256"),
    "prefix": ("sbench/", "bench-", "", "long/", "mäß/日本-"),
    "objects": ("2", "1", "3"),
    "size": ("4KiB", "uniform:1KiB:64KiB", "11MiB"),
    "split": (NO, "2"),
    "threads": ("1", "2"),
    "connections": ("1", "2"),
    "part": (NO, "5MiB"),
    "stat": ("key", "each", "before"),
    "hedge": (NO, "2ms"),
    "rate": (NO, "100"),
    "arrivals": ("uniform", "poisson"),
    "duration": (NO, "0.2", STABLE),
    "warm-up": ("0", "1"),
    "repeats": ("1", "2"),
    "barrier": (NO, "1"),
    "compressibility": ("1", "4"),
    "verify": ("full", "sample", "none"),
    "faults": (NO, "refused", "cut", "spoiled"),
    "resume": (NO, "killed"),
    "speed": (NO, "2"),
    "max gap": (NO, "1ms"),
    "secret": (NO, "yes"),
    "progress": ("auto", "plain", "none"),
}
"""The first value of each is the command's default."""
LONG: Final = "long/" * 170
"""850 bytes."""

_NO_OPTION: Final = "No such option"
_ONLY_ITS_OWN: Final = "does not offer multipart"
_SHUFFLE: Final = ("shuffle objects", "shuffle ranges")
_UPLOADS: Final = (
    *("write", "mixed", "array write", "array read", "custom", "job file", "parquet", "replay"),
    *("list", *_SHUFFLE),
)

_SHARED: Final = ("conditional increment", "conditional claim", "conditional append")
_CONDITIONAL: Final = ("wire", "boto3")

REFUSED: Final[Sequence[tuple[Mapping[str, str], str]]] = (
    ({"arrivals": "poisson", "rate": NO}, "poisson needs "),
    # Shares and repeats are for reads of a list.
    *(
        ({"workload": name, "split": "2"}, _NO_OPTION)
        for name in (
            *("write", "mixed", "array write", "array read", "custom", "parquet", "replay"),
            *("mixed existing", "list", *_SHARED),
            *_SHUFFLE,
        )
    ),
    *(
        ({"workload": name, "repeats": "2"}, _NO_OPTION)
        for name in (
            "write",
            "mixed",
            "mixed existing",
            "list",
            "custom",
            "replay",
            *_SHARED,
            *_SHUFFLE,
        )
    ),
    # Only reads of objects are requested a second time, and only by this client.
    *(
        ({"workload": name, "hedge": "2ms"}, _NO_OPTION)
        for name in (
            "write",
            "array write",
            "array read",
            "job file",
            "parquet",
            "replay",
            "list",
            *_SHARED,
        )
    ),
    # The usual workload lacks the flag; wrong_values.toml has what a read says of the client.
    *(
        ({"client": name, "hedge": "2ms"}, _NO_OPTION)
        for name in CLIENTS
        if not info_of(name).hedges
    ),
    # Contenders go as fast as the others permit.
    *(
        ({"workload": name, factor: value}, _NO_OPTION)
        for name in (*_SHARED, "replay", *_SHUFFLE)
        for factor, value in (("rate", "100"), ("arrivals", "poisson"))
    ),
    # Only a replay has a log, whose instants can change and whose keys are pseudonyms.
    *(
        ({"workload": name, factor: FACTORS[factor][1]}, _NO_OPTION)
        for name in FACTORS["workload"]
        if name != "replay"
        for factor in ("speed", "max gap", "secret")
    ),
    # A log says what happens, and when it is over.
    ({"workload": "replay", "compressibility": "4"}, _NO_OPTION),
    *(({"workload": "replay", "duration": n}, _NO_OPTION) for n in ("0.2", STABLE)),
    ({"workload": "replay", "warm-up": "1"}, _NO_OPTION),
    # Every partition moves once.
    *(
        ({"workload": name, **part}, message)
        for name in _SHUFFLE
        for part, message in (
            ({"duration": "0.2"}, _NO_OPTION),
            ({"duration": STABLE}, _NO_OPTION),
            ({"warm-up": "1"}, _NO_OPTION),
            ({"size": "uniform:1KiB:64KiB"}, _NO_OPTION),
            ({"compressibility": "4"}, _NO_OPTION),
        )
    ),
    *(
        ({"workload": "conditional claim", "duration": n}, "does not apply to")
        for n in ("0.2", STABLE)
    ),
    *(
        ({"workload": "conditional append", "duration": n}, "takes no --dur")
        for n in ("0.2", STABLE)
    ),
    ({"progress-objects": NO, "duration": STABLE}, "does not"),
    *(
        ({"workload": workload, "client": name}, "makes no conditional writes")
        for workload in _SHARED
        for name in sorted(set(CLIENTS) - set(_CONDITIONAL))
    ),
    # The function, or the library of arrays, has threads of its own.
    *(
        ({"workload": name, factor: value}, _NO_OPTION)
        for name in ("array write", "array read", "custom")
        for factor, value in (("threads", "2"), ("rate", "100"), ("arrivals", "poisson"))
    ),
    # The content of an array follows from its shape; a shared key names its writer.
    *(
        ({"workload": name, factor: value}, _NO_OPTION)
        for name in ("array write", "array read", *_SHARED)
        for factor, value in (
            ("size", "uniform:1KiB:64KiB"),
            ("size", "11MiB"),
            ("compressibility", "4"),
        )
    ),
    # A tree has small objects, and an order that directory buckets lack.
    ({"workload": "list", "compressibility": "4"}, _NO_OPTION),
    ({"workload": "list", "bucket": "directory"}, "whose listings have no order"),
    # Objects that exist have sizes and bytes.
    ({"workload": "read existing", "size": "uniform:1KiB:64KiB"}, _NO_OPTION),
    ({"workload": "read existing", "compressibility": "4"}, _NO_OPTION),
    ({"workload": "mixed existing", "size": "uniform:1KiB:64KiB"}, "--sizes does not apply"),
    ({"workload": "mixed existing", "compressibility": "4"}, "--compressibility does not apply"),
    # Columns have a layout, and bytes that do not compress.
    ({"workload": "parquet", "size": "uniform:1KiB:64KiB"}, _NO_OPTION),
    ({"workload": "parquet", "compressibility": "4"}, _NO_OPTION),
    *(
        ({"workload": name, "client": client, "part": "5MiB"}, _ONLY_ITS_OWN)
        for name in _UPLOADS
        for client in ("obstore", "s3dlio", "s3torchconnector")
    ),
    *(
        ({"workload": name, "threads": "2", "objects": "1"}, "need as many objects")
        for name in ("mixed", "mixed existing")
    ),
    # A directory bucket has sessions, which not all can make, and lists whole folders.
    *(
        ({"bucket": "directory", "client": name}, "cannot create the sessions")
        for name in CLIENTS
        if not info_of(name).express
    ),
    *(
        ({"bucket": "directory", "workload": name}, "array libraries make no sessions")
        for name in ("array write", "array read")
    ),
    *(
        ({"bucket": "directory", "workload": name, "prefix": prefix}, "a prefix ends in a slash")
        for name in (
            *("write", "mixed", "custom", "job file", "parquet", "replay"),
            *_SHARED,
            *_SHUFFLE,
        )
        for prefix in ("bench-", "mäß/日本-")
    ),
    # Only obstore speaks Google's own API.
    *(
        ({"bucket": "google", "client": name}, "does not speak gs://")
        for name in sorted({*CLIENTS} - {"obstore"})
    ),
    *(
        ({"bucket": "google", "workload": name}, "array libraries are opened for S3 only")
        for name in ("array write", "array read")
    ),
    # Only S3 has this header, and not every library sends it.
    *(
        ({"client": name, "sse": "AES256"}, "is nothing that --client")
        for name in CLIENTS
        if not info_of(name).encrypts
    ),
    ({"bucket": "directory", "sse": "AES256"}, "has one encryption"),
    # With its client, as in wrong_values.toml, it is the encryption that is refused.
    ({"bucket": "google", "sse": "AES256"}, "does not speak gs://"),
    *(
        ({"workload": name, "sse": "AES256"}, "is nothing that array libraries send")
        for name in ("array write", "array read")
    ),
    # The type of this machine cannot be chosen.
    *(
        ({"executor": executor, factor: value}, "does not apply to")
        for executor in ("inline", "local", "workers", "dask")
        for factor, value in (("memory", "1769"), ("arch", "own"))
    ),
    *(
        ({"executor": executor, "probe": NO}, "does not apply to")
        for executor in ("inline", "local", "workers")
    ),
    *(
        ({"executor": executor, "progress-objects": NO}, "does not apply to")
        for executor in ("inline", "local")
    ),
    *(
        ({"executor": executor, "slots": "2"}, "does not apply to")
        for executor in ("inline", "local", "lambda", "workers")
    ),
)
"""Parts of cases that the command refuses before it starts, and its messages."""
