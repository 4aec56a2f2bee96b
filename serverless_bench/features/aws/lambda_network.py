"""Network rate of a Lambda function as a function of memory, VPC and the account's quota.

All modules take these numbers from here: ``plan``, the bottleneck and ``sbench serve``.

* The rate: 625 Mbps for each execution environment, independent of its memory, is a published
  quota since 2026-08-05 (AWS, What's New of that day, and "Lambda quotas"). An account can have it
  raised: then it grows with memory from 625 Mbps at 2,048 MB to 3,000 Mbps at 10,240 MB, but not
  in a VPC. Between the two it is assumed to be a straight line, for which no measurement has been
  published; in proportion to memory it would be 4 % more at most.
* The burst before it: a bucket of about 300 MiB for each direction, full when the environment is
  cold (iPerf3 raw data of hpides/skyrise, EDBT 2025, resources/benchmark/measurement/
  network_throughput/lambda: first burst 305 to 327 MiB; then p5, p50, p95 of 256 functions 76.6,
  77.7, 78.8 MiB/s, where the quota is 74.5). Whether a raised quota has another burst is unknown.
"""

from typing import Final

from serverless_bench.base.units import MIB

BURST_BYTES: Final = 300 * MIB
"""Bytes at full speed in each direction while the environment is new."""
BASE_MBPS: Final = 625.0
"""Rate of all functions without a raised quota, and of functions in a VPC with any quota."""
MOST_MBPS: Final = 3000.0
"""Maximum of a raised quota."""
SOURCE: Final = "AWS, What's New 2026-08-05, and Lambda quotas"
RAISED_FROM_MIB: Final = 2048
"""Memory size up to which a raised quota has no effect."""
_RAISED_TO_MIB: Final = 10240
_BYTES_PER_MBIT: Final = 1e6 / 8


def function_network(
    memory_mib: int, *, quota_mbps: float = BASE_MBPS, in_vpc: bool = False
) -> float:
    """Return the bytes per second of a function in each direction, after ``BURST_BYTES``.

    Parameters
    ----------
    memory_mib
        Memory of the function.
    quota_mbps
        The account's quota, in 10**6 bits per second.
    in_vpc
        Whether the function is in a VPC, where a raised quota does not apply.
    """
    rate = BASE_MBPS
    if not in_vpc:
        share = (memory_mib - RAISED_FROM_MIB) / (_RAISED_TO_MIB - RAISED_FROM_MIB)
        grown = BASE_MBPS + max(0.0, share) * (MOST_MBPS - BASE_MBPS)
        rate = max(rate, min(quota_mbps, grown))
    return rate * _BYTES_PER_MBIT


def published_rates(memory_mib: int) -> tuple[float, float]:
    """Return the rate of functions without a raised quota, and with the most that is granted."""
    return function_network(memory_mib), function_network(memory_mib, quota_mbps=MOST_MBPS)
