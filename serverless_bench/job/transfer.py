"""How one object is moved: connections, parts, retries, and how its size is learned."""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from serverless_bench.job.operations import OperationKind
from serverless_bench.job.types import check_limits, check_types, wrong
from serverless_bench.units import GIB, KIB, MIB

MAX_PARTS: Final = 10_000
_LIMITS: Final = {
    "min_split_size": (1, math.inf),
    # Of one operation: a part each.
    "connections": (1, MAX_PARTS),
    "retries": (0, math.inf),
}
MIN_PART_BYTES: Final = 5 * MIB
MAX_PART_BYTES: Final = 5 * GIB
"""Amazon S3 user guide, "Amazon S3 multipart upload limits"."""
DEFAULT_PART_BYTES: Final = 64 * MIB
"""1,800 functions at 95 MB/s make 2,550 UploadPart/s at 64 MiB, below the 3,500 PUT/s of
one S3 partition; at boto3's 8 MiB it would be 20,400."""


class Verify(StrEnum):
    """How much of what is read is compared with what was written."""

    FULL = "full"
    SAMPLE = "sample"
    """One block in sixteen, and the first and the last."""
    NONE = "none"


class Stat(StrEnum):
    """How the size of an object is learned before it is read."""

    KEY = "key"
    """It stands in the key: no request."""
    EACH = "each"
    """A HEAD before every get, as libraries do that split what they read into ranges."""
    BEFORE = "before"
    """All HEADs before the first get, and none after (sai3-bench's pre-stat)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """How one object is moved and checked.

    Parameters
    ----------
    connections
        Requests of one operation in flight at once.
    part_size
        Size of a part of an upload and of a range of a download; None moves objects whole.
    block_size
        Bytes generated, moved and compared at a time.
    verify
        How much of what is read is compared with what was written: full, sample or none.
    retries
        Further attempts after an attempt that failed for a reason that may pass; 0 for none.
    timeout
        An attempt ends when no byte has moved for this long.
    min_split_size
        Objects below this size are read whole, whatever ``part_size`` says.
    stat
        How the size of an object is learned before it is read: key, each or before.

    Examples
    --------
    >>> transfer = sbench.Transfer(part_size=8 << 20, connections=4)
    >>> transfer.verify.value, transfer.retries
    ('full', 4)
    """

    connections: int = 1
    part_size: int | None = None
    block_size: int = MIB
    verify: Verify = Verify.FULL
    retries: int = 4
    timeout: float = 60.0
    min_split_size: int | None = None
    stat: Stat = Stat.KEY

    def __post_init__(self) -> None:
        check_types(self)
        check_limits(self, _LIMITS, positives=("timeout",))
        if self.block_size < KIB:
            raise wrong("block_size", f"must be at least 1 KiB, got {self.block_size} bytes")
        if self.part_size is not None and not (KIB <= self.part_size <= MAX_PART_BYTES):
            raise wrong(
                "part_size",
                f"must be at most 5120 MiB, got {self.part_size / MIB:g}",
                hint="S3 takes parts of 5 MiB to 5 GiB",
            )

    def part_length(self, kind: OperationKind, size: int) -> int | None:
        """Return the size of a part or range of an object, or None to move it whole.

        Several connections need parts, and so does a put of more than 5 GiB (Amazon S3 user
        guide, "Uploading objects"): both get a size where none was asked for.
        """
        if kind is OperationKind.GET and size < (self.min_split_size or 0):
            return None
        chosen = self.part_size
        if chosen is None and self.connections > 1:
            share = -(-size // self.connections)
            chosen = max(MIN_PART_BYTES, min(DEFAULT_PART_BYTES, -(-share // MIB) * MIB))
        if chosen is None and kind is OperationKind.PUT and size > MAX_PART_BYTES:
            chosen = DEFAULT_PART_BYTES
        if chosen is None or size <= chosen:
            return None
        return max(chosen, -(-size // MAX_PARTS))
