"""Position of each counter of a live board, and the buckets of its latency histogram."""

from collections.abc import Mapping, Sequence
from typing import Final

from serverless_bench.worker.board import KINDS

KIND_NUMBER: Final[Mapping[str, int]] = {kind: n for n, kind in enumerate(KINDS)}
FAILURES: Final = (
    *("throttled", "5xx", "4xx", "timeout", "reset", "corrupt", "deadline"),
    "other",
)
"""Classes of failed attempts. ``throttled`` is 503 or 429, ``5xx`` any other; ``reset`` is a
connection refused, reset or closed too early; ``corrupt`` counts operations that got wrong bytes,
usually from attempts that succeeded."""
FAILURE_NUMBER: Final[Mapping[str, int]] = {
    "throttled": 0,
    "server_error": 1,
    "access_denied": 2,
    "bad_request": 2,
    "not_found": 2,
    "timeout": 3,
    "connection_error": 4,
    "corrupt": 5,
    "deadline": 6,
}
"""Class by ``OperationError.code``; codes not listed are ``other``."""
OTHER_FAILURE: Final = len(FAILURES) - 1

# Offsets of a slot's words: three words per kind, one per class of failure, single words, and the
# histogram.
BYTES, OPERATIONS, FAILED, FAILURE = range(0, 4 * len(KINDS), len(KINDS))
MOVED = slice(BYTES, OPERATIONS)
# Without the last kind: preparations and warm-ups.
MEASURED = slice(OPERATIONS, FAILED - 1)
(
    RETRIES,
    # Each attempt counts in one of three: billed like GET, billed like PUT, or free (Amazon S3).
    GETS,
    PUTS,
    FREE,
    IN_FLIGHT_NS,
    CONFLICTS,
    PAYLOAD_NS,
    AWAKE_NS,
    SAMPLED_NS,
    PROBES,
    DELAYED,
    HISTOGRAM,
) = range(FAILURE + len(FAILURES), FAILURE + len(FAILURES) + 12)

SUB_BITS: Final = 3
LOWEST_BITS: Final = 13
OCTAVES: Final = 28
BUCKETS: Final = OCTAVES << SUB_BITS
"""Buckets of the latency histogram: eight of equal width per power of two, from 2**12 ns to 2**40
ns (18 minutes). The first and the last also hold the values beyond."""
# Rounded up to full cache lines, so that workers never write to the same line.
SLOT_WORDS: Final = -(-(HISTOGRAM + BUCKETS) // 8) * 8


def bucket_of(latency_ns: int) -> int:
    """Return the histogram bucket of a latency."""
    bits = latency_ns.bit_length()
    if bits < LOWEST_BITS:
        return 0
    sub = latency_ns >> (bits - 1 - SUB_BITS) & 7
    return min((bits - LOWEST_BITS) << SUB_BITS | sub, BUCKETS - 1)


def bucket_bounds_ns(bucket: int) -> tuple[int, int]:
    """Return the lower and the upper bound of a bucket."""
    octave, sub = bucket >> SUB_BITS, bucket & 7
    step = 1 << (octave + LOWEST_BITS - 1 - SUB_BITS)
    return (8 + sub) * step, (9 + sub) * step


def percentile_ns(histogram: Sequence[int], share: float) -> int | None:
    """Return a percentile of the latencies in a histogram, within 6 %; None if it is empty.

    Parameters
    ----------
    histogram
        Counts by bucket.
    share
        Fraction of latencies at or below the result; above 0, at most 1.
    """
    rank, seen = share * sum(histogram), 0
    for bucket, count in enumerate(histogram):
        seen += count
        if count and seen >= rank:
            low, high = bucket_bounds_ns(bucket)
            # The value with the same relative distance from both bounds.
            return 2 * low * high // (low + high)
    return None
