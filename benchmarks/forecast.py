"""Published results against the forecast with the parameters that come with sbench.

    python -m benchmarks.forecast

Each row is a job on AWS Lambda that somebody has measured and published; nothing is measured here.
A miss is forecast over published, less one.
"""

import argparse
import csv
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

from benchmarks.common import make_parser
from serverless_bench.base.units import KIB, MIB, format_count
from serverless_bench.features.cost.forecast import ForecastRange
from serverless_bench.features.cost.outlook import plan
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target, Transfer

HEADER: Final = ("source", "job", "figure", "published", "forecast", "90 %", "miss %")
EXPRESS: Final = "b--use1-az4--x-s3"
SEBS: Final = {
    "2022": (1.138, 1.155, 1.166, 2.017, 3.022, 4.683, 7.665),
    "2024": (1.16, 1.172, 1.177, 1.991, 2.928, 4.449),
}
SEBS_SIZES: Final = (KIB, 32 * KIB, MIB, 32 * MIB, 64 * MIB, 128 * MIB, 256 * MIB)
IPERF: Final = {
    "outside": {1: 106.0, 256: 106.0},
    "inside": {32: 101.6, 64: 82.2, 128: 45.2, 256: 21.9},
}
"""MB/s of a function by their number, outside and inside a VPC: means of 10 s."""


def forecast(
    workload: str, number: int, size: int, *, memory: int, bucket: str = "b", **settings: Any
) -> Any:
    """Return the forecast of a write or a read; ``client`` and ``in_vpc`` are settings, too."""
    in_vpc = settings.pop("in_vpc", False)
    target = Target(bucket=bucket, client=settings.pop("client", "wire"))
    given = {"target": target, "number": number, "concurrency": number, **settings}
    keys: Sequence[str] = ()
    if workload == "read":
        keys = [f"sbench/{n:032x}.{size}" for n in range(number * given.get("objects", 1))]
    else:
        given["size"] = size
    job = JobSpec(workload=workload, **given)
    return plan(job, keys, memory=memory, quota=10_000, in_vpc=in_vpc).forecast


def rows() -> Iterator[tuple[str, str, str, float, ForecastRange]]:
    """Yield source, job, figure, the published value, and the forecast."""
    for store, bucket, workload, seconds in (
        ("S3", "b", "read", 32.7),
        ("S3", "b", "write", 46.5),
        ("Express", EXPRESS, "read", 4.9),
        ("Express", EXPRESS, "write", 7.4),
    ):
        found = forecast(workload, 10, KIB, memory=7076, bucket=bucket, objects=1000)
        job = f"{store}, 10 functions {workload} 1,000 objects of 1 KiB"
        yield "Skyrise 2024", job, "function s", seconds, found.transfer_s
    for number, workload, rate, span in (
        (100, "write", 84.8, 12.0),
        (100, "read", 99.8, 7.4),
        (1000, "write", 94.1, 24.3),
        (1000, "read", 99.8, 14.3),
    ):
        found = forecast(workload, number, 512 * MIB, memory=1024)
        job = f"{number:,} functions {workload} 512 MiB"
        yield "Lithops 2022", job, "function MB/s", rate, rates(512 * MIB, found.transfer_s)
        yield "Lithops 2022", job, "span s", span, found.run_s
    for workload, rate in (("write", 30.0), ("read", 40.0)):
        found = forecast(workload, 1800, 2000 * MIB, memory=1536)
        job = f"1,800 functions {workload} 2,000 MiB"
        yield "PyWren 2016", job, "function MB/s", rate, rates(2000 * MIB, found.transfer_s)
    for year, times in SEBS.items():
        for size, seconds in zip(SEBS_SIZES, times, strict=False):
            found = forecast("read", 20, size, memory=512, client="boto3")
            job = f"20 functions of 512 MB read {size // KIB:,} KiB"
            yield f"SeBS-Flow {year}", job, "function s", seconds, found.function_s
    for store, bucket, means in (
        ("S3", "b", (48.9, 51.4, 86.7)),
        ("Express", EXPRESS, (12.7, 12.5, 18.6)),
    ):
        found = forecast("read", 1, 10 * KIB, memory=1769, bucket=bucket, objects=1000)
        for whole, seconds in zip(("50 MiB", "500 MiB", "5 GiB"), means, strict=True):
            job = f"{store}, a function reads 1,000 objects of 10 KiB of {whole}"
            yield "Prisma 2026", job, "function s", seconds, found.transfer_s
    yield from network_rows()


def network_rows() -> Iterator[tuple[str, str, str, float, ForecastRange]]:
    """Yield the rows of what iPerf3 received in 10 s, with the burst, on four connections."""
    transfer = Transfer(connections=4, part_size=16 * MIB)
    for place, by_number in IPERF.items():
        for number, rate in by_number.items():
            size, in_vpc = round(rate * 10e6), place == "inside"
            found = forecast("read", number, size, memory=7076, in_vpc=in_vpc, transfer=transfer)
            job = f"{format_count(number, 'function')} {place} a VPC, 10 s of iPerf3"
            yield "Skyrise 2024, iPerf3", job, "function MB/s", rate, rates(size, found.transfer_s)


def rates(size: int, seconds: ForecastRange) -> ForecastRange:
    """Return MB/s."""
    low, median, high = (size / 1e6 / s for s in (seconds.p95, seconds.p50, seconds.p5))
    return ForecastRange(p5=low, p50=median, p95=high)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    return make_parser(__doc__ or "")


def main() -> None:
    """Print the table as CSV."""
    parser().parse_args()
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(HEADER)
    for source, job, figure, published, found in rows():
        ends = f"{found.p5:.3g} to {found.p95:.3g}"
        miss = f"{100 * (found.p50 / published - 1):+.0f}"
        table.writerow((source, job, figure, published, f"{found.p50:.3g}", ends, miss))


if __name__ == "__main__":
    main()
