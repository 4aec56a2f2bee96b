"""Transfer of an object: connections, parts, retries, and the source of its size."""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from serverless_bench.base.units import GIB, KIB, MIB, format_size
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.types import Specification, check_limits, check_types, wrong

MAX_PARTS: Final = 10_000
_LIMITS: Final = {
    "min_split_size": (1, math.inf),
    # Per operation: at most a connection for each part.
    "connections": (1, MAX_PARTS),
    "retries": (0, math.inf),
}
MIN_PART_BYTES: Final = 5 * MIB
MAX_PART_BYTES: Final = 5 * GIB
"""Amazon S3 user guide, "Amazon S3 multipart upload limits"."""
DEFAULT_PART_BYTES: Final = 64 * MIB
"""1,800 functions at 95 MB/s make 2,550 UploadPart/s at 64 MiB, below the 3,500 PUT/s of one S3
partition; at boto3's 8 MiB it would be 20,400."""


class Verify(StrEnum):
    """Fraction of the bytes read that is compared with the bytes written."""

    FULL = "full"
    SAMPLE = "sample"
    """One block in sixteen, and the first and the last."""
    NONE = "none"


class Stat(StrEnum):
    """Source of the size of an object before it is read."""

    KEY = "key"
    """The size declared in the key: no request."""
    EACH = "each"
    """A HEAD before each get, as in libraries that split reads into ranges."""
    BEFORE = "before"
    """All HEADs before the first get, and none after (sai3-bench's pre-stat)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer(metaclass=Specification):
    """Parts, retries and verification of an object's transfer.

    Parameters
    ----------
    connections
        Requests of one operation in flight at the same time.
    part_size
        Size of an upload's parts and of a download's ranges; None to transfer objects in one piece.
    block_size
        Bytes generated, transferred and compared at a time.
    verify
        Amount of the bytes read to check against the bytes written: full, sample or none.
    retries
        Further attempts after a transient failure; 0 for none.
    timeout
        An attempt ends when no byte has moved for this long.
    min_split_size
        Objects below this size are read in one piece, regardless of ``part_size``.
    stat
        Source of the size of an object before it is read: key, each or before.

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
                f"must be between 1 KiB and 5 GiB, got {format_size(self.part_size)}",
                hint="S3 accepts parts of 5 MiB to 5 GiB; ranges of a read may be smaller",
            )

    def part_length(self, kind: OperationKind, size: int) -> int | None:
        """Return the size of a part or range of an object, or None for a single request.

        Several connections need parts, and so does a put of more than 5 GiB (Amazon S3 user guide,
        "Uploading objects"): in both cases a missing part size is chosen here.
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
