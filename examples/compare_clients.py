"""The same objects with every client: throughput, and the cost for the functions.

On one machine the store takes most of the CPU; look at the last column, which
only counts the functions.
"""

import serverless_bench as sbench

CLIENTS = ("wire", "boto3", "minio", "obstore", "awscrt", "s3dlio", "s3torchconnector")


def row(client: str, result: sbench.Result) -> str:
    """Return one line of the table."""
    rate, cpu_s = result.throughput / 1e6, result.summary.cpu_s_per_gib
    return f"{client:16} {result.job.workload:6} {rate:8.0f} MB/s {cpu_s:8.2f} CPU-s/GiB"


for client in CLIENTS:
    written = sbench.write(client=client, number=6, concurrency=3, size="16MiB")
    print(row(client, written))
    print(row(client, sbench.read(written, client=client)))
