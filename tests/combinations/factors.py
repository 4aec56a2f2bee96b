"""What is combined, and what the command refuses: data."""

from collections.abc import Mapping, Sequence
from typing import Final

from serverless_bench.clients import CLIENTS
from serverless_bench.driver.directory_bucket import WITH_SESSIONS

NO: Final = "no"
FACTORS: Final[Mapping[str, Sequence[str]]] = {
    "workload": ("write", "read", "mixed", "array write", "array read", "call", "job file"),
    "client": ("wire", *(name for name in sorted(CLIENTS) if name != "wire")),
    "executor": ("inline", "local", "lambda", "workers"),
    "probe": ("yes", NO),
    "memory": (NO, "1769"),
    "arch": (NO, "own"),
    "bucket": ("standard", "directory", "google"),
    "prefix": ("sbench/", "bench-", "", "long/", "mäß/日本-"),
    "objects": ("2", "1", "3"),
    "size": ("4KiB", "uniform:1KiB:64KiB", "11MiB"),
    "split": (NO, "2"),
    "threads": ("1", "2"),
    "connections": ("1", "2"),
    "part": (NO, "5"),
    "stat": ("key", "each", "before"),
    "rate": (NO, "100"),
    "arrivals": ("uniform", "poisson"),
    "duration": (NO, "0.2"),
    "warm-up": ("0", "1"),
    "repeats": ("1", "2"),
    "gate": (NO, "1"),
    "compressibility": ("1", "4"),
    "verify": ("full", "sample", "none"),
    "faults": (NO, "refused", "cut", "spoiled"),
    "resume": (NO, "killed"),
}
"""The first value of each is what a command does by itself."""
LONG: Final = "long/" * 170
"""850 bytes."""

_NO_OPTION: Final = "No such option"
_ONLY_ITS_OWN: Final = "does not offer multipart"
_UPLOADS: Final = ("write", "mixed", "array write", "array read", "call", "job file")

REFUSED: Final[Sequence[tuple[Mapping[str, str], str]]] = (
    # Shares and repeats are for what reads a list.
    *(
        ({"workload": name, "split": "2"}, _NO_OPTION)
        for name in ("write", "mixed", "array write", "array read", "call")
    ),
    *(({"workload": name, "repeats": "2"}, _NO_OPTION) for name in ("write", "mixed", "call")),
    # The function, or the library of arrays, has threads of its own.
    *(
        ({"workload": name, factor: value}, _NO_OPTION)
        for name in ("array write", "array read", "call")
        for factor, value in (("threads", "2"), ("rate", "100"), ("arrivals", "poisson"))
    ),
    # What an array holds its shape says.
    *(
        ({"workload": name, factor: value}, _NO_OPTION)
        for name in ("array write", "array read")
        for factor, value in (
            ("size", "uniform:1KiB:64KiB"),
            ("size", "11MiB"),
            ("compressibility", "4"),
        )
    ),
    *(
        ({"workload": name, "client": client, "part": "5"}, _ONLY_ITS_OWN)
        for name in _UPLOADS
        for client in ("obstore", "s3dlio", "s3torchconnector")
    ),
    ({"workload": "mixed", "threads": "2", "objects": "1"}, "need as many objects"),
    # A directory bucket has sessions, which not all can make, and lists whole folders.
    *(
        ({"bucket": "directory", "client": name}, "makes no sessions")
        for name in sorted(set(CLIENTS) - set(WITH_SESSIONS))
    ),
    *(
        ({"bucket": "directory", "workload": name}, "array libraries make no sessions")
        for name in ("array write", "array read")
    ),
    *(
        ({"bucket": "directory", "workload": name, "prefix": prefix}, "a prefix ends in a slash")
        for name in ("write", "mixed", "call", "job file")
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
    # Nobody chooses the machine that this is.
    *(
        ({"executor": executor, factor: value}, "means nothing to")
        for executor in ("inline", "local", "workers")
        for factor, value in (("memory", "1769"), ("arch", "own"), ("probe", NO))
    ),
)
"""Parts of cases that the command refuses before it starts, and what it says."""
