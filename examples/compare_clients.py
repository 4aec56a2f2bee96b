"""The same objects with every client: throughput, and the cost for the functions.

On one machine the store takes most of the processor; look at the last column, which
only counts the functions.
"""

from dataclasses import replace

from serverless_bench import JobSpec, Summary, embedded_target, run_job, summarize
from serverless_bench.clients import CLIENTS

MIB = 1 << 20


def row(client: str, summary: Summary) -> str:
    """Return one line of the table."""
    rate = (summary.throughput_bytes_per_s or 0) / 1e6
    return (
        f"{client:8} {summary.workload:6} {rate:8.0f} MB/s {summary.cpu_s_per_gib:8.2f} CPU-s/GiB"
    )


with embedded_target() as target:
    for client in CLIENTS:
        writing = JobSpec(
            workload="write",
            target=replace(target, client=client),
            number=6,
            concurrency=3,
            size=16 * MIB,
        )
        written = run_job(writing, f"sbench-runs/clients/{client}-write")
        print(row(client, summarize(written)))
        reading = replace(writing, workload="read", size=None)
        read = run_job(reading, f"sbench-runs/clients/{client}-read", keys=written.keys())
        print(row(client, summarize(read)))
