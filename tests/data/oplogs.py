"""Op-logs of known content, in the columns of warp and of sai3-bench."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

S = 10**9
BEGIN = 1_700_000_000 * S
WARP = (
    *("idx", "thread", "op", "client_id", "n_objects", "bytes", "endpoint", "file", "error"),
    *("start", "first_byte", "last_byte", "end", "duration_ns", "cat"),
)
SAI3 = tuple(name for name in WARP if name not in {"last_byte", "cat"})


@dataclass(frozen=True, kw_only=True)
class Request:
    start_ns: int
    end_ns: int
    thread: int = 0
    op: str = "GET"
    client: str = "abcd"
    size: int = 1000
    key: str = "prefix/object.rnd"
    error: str = ""
    first_byte_ns: int | None = None
    last_byte_ns: int | None = None


def instant(ns: int | None) -> str:
    """Format like Go's RFC3339Nano: without zeros at the end of the fraction."""
    if ns is None:
        return ""
    text = str(np.datetime64(ns, "ns")).rstrip("0").rstrip(".")
    return f"{text}Z"


def oplog(requests: Iterable[Request], columns: Sequence[str] = WARP) -> str:
    lines = ["\t".join(columns)]
    for number, request in enumerate(requests):
        cells = {
            "idx": number,
            "thread": request.thread,
            "op": request.op,
            "client_id": request.client,
            "n_objects": 1,
            "bytes": request.size,
            "endpoint": "http://store:9000",
            "file": request.key,
            "error": request.error,
            "start": instant(request.start_ns),
            "first_byte": instant(request.first_byte_ns),
            "last_byte": instant(request.last_byte_ns),
            "end": instant(request.end_ns),
            "duration_ns": request.end_ns - request.start_ns,
            "cat": 0,
        }
        lines.append("\t".join(str(cells[name]) for name in columns))
    return "\n".join([*lines, "# warp get --full", ""])


def impossible(seconds: float = 3.0) -> str:
    """64 threads that claim 2,635 objects of 32 MB a second: 84 GB/s, on a link of 2.5.

    A published table has these figures: the size stood in its label, not in its requests.
    """
    threads, per_s = 64, 2635
    took = threads * S // per_s
    return oplog(
        Request(
            thread=number % threads,
            start_ns=BEGIN + number // threads * took,
            end_ns=BEGIN + (number // threads + 1) * took,
            size=32_000_000,
        )
        for number in range(int(seconds * per_s) // threads * threads)
    )
