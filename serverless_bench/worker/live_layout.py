"""Where each counter of a live board stands, and the buckets of its latencies."""

from collections.abc import Mapping, Sequence
from typing import Final

from serverless_bench.job.operations import OperationKind

WARM_UP: Final = "warmup"
"""Stands for the kind of whatever a report leaves out: preparations and warm-ups."""
KINDS: Final = (*map(str, OperationKind), WARM_UP)
KIND_NUMBER: Final[Mapping[str, int]] = {kind: n for n, kind in enumerate(KINDS)}
FAILURES: Final = (
    *("throttled", "5xx", "4xx", "timeout", "reset", "corrupt", "deadline"),
    "other",
)
"""Classes of failed attempts. ``throttled`` is 503 or 429, ``5xx`` any other; ``reset`` is a
connection refused, reset or closed before the end; ``corrupt`` are operations that got other
bytes than were written, by attempts that succeeded as a rule."""
FAILURE_NUMBER: Final[Mapping[str, int]] = {
    "throttled": 0,
    "server_fault": 1,
    "access_denied": 2,
    "bad_request": 2,
    "not_found": 2,
    "timed_out": 3,
    "connection_lost": 4,
    "corrupt": 5,
    "deadline": 6,
}
"""By ``OperationError.code``; codes that are not there are ``other``."""
OTHER_FAILURE: Final = len(FAILURES) - 1

HEADER_WORDS: Final = 8
"""What the driver writes stands before the first slot, in a cache line of its own."""
STOP: Final = 0
"""The word of the header that has functions with a duration end."""

# The words of a slot, by their distance from its beginning: three by kind, one by class of failure,
# single words, and the histogram.
BYTES, OPERATIONS, FAILED, FAILURE = range(0, 4 * len(KINDS), len(KINDS))
(
    RETRIES,
    # Every attempt is in one of three: what Amazon S3 charges for as for GET, for PUT, not at all.
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
"""Of the histogram of latencies: eight of equal width between one power of two and the next,
from 2**12 ns to 2**40 ns (18 minutes). The first and the last also hold what lies beyond."""
# Whole cache lines: workers do not write into each other's.
SLOT_WORDS: Final = -(-(HISTOGRAM + BUCKETS) // 8) * 8


def bucket_of(latency_ns: int) -> int:
    """Return the bucket of the histogram that a latency belongs to."""
    bits = latency_ns.bit_length()
    if bits < LOWEST_BITS:
        return 0
    sub = latency_ns >> (bits - 1 - SUB_BITS) & 7
    return min((bits - LOWEST_BITS) << SUB_BITS | sub, BUCKETS - 1)


def bucket_bounds_ns(bucket: int) -> tuple[int, int]:
    """Return where a bucket begins, and where the next one does."""
    octave, sub = bucket >> SUB_BITS, bucket & 7
    step = 1 << (octave + LOWEST_BITS - 1 - SUB_BITS)
    return (8 + sub) * step, (9 + sub) * step


def percentile_ns(histogram: Sequence[int], share: float) -> int | None:
    """Return a percentile of the latencies in a histogram, within 6 %; None if there are none.

    Parameters
    ----------
    histogram
        Counts by bucket.
    share
        Of the latencies that are no longer than that; above 0, at most 1.
    """
    rank, seen = share * sum(histogram), 0
    for bucket, count in enumerate(histogram):
        seen += count
        if count and seen >= rank:
            low, high = bucket_bounds_ns(bucket)
            # The value whose distance from both ends is the same share of each.
            return 2 * low * high // (low + high)
    return None
