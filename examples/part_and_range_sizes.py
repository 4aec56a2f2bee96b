"""One factor at a time: effect of the size of parts and ranges on throughput and requests.

On S3 the size determines the number of requests per prefix: 1,800 functions at 95 MB/s
make 20,400 requests per second with 8 MiB parts and 2,550 with 64 MiB, while one S3
partition accepts 3,500 writes.
"""

from dataclasses import replace

from serverless_bench import JobSpec, Transfer, embedded_target, run_job, summarize

MIB = 1 << 20
SIZES = (None, 5 * MIB, 8 * MIB, 16 * MIB)

with embedded_target() as target:
    for size in SIZES:
        transfer = Transfer(part_size=size, connections=1 if size is None else 2)
        name = "whole" if size is None else f"{size // MIB} MiB"
        writing = JobSpec(
            workload="write",
            target=target,
            transfer=transfer,
            number=4,
            concurrency=2,
            size=32 * MIB,
        )
        written = run_job(writing, f"sbench-runs/parts/{name}-write")
        reading = replace(writing, workload="read", size=None)
        read = run_job(reading, f"sbench-runs/parts/{name}-read", keys=written.keys())
        for summary in (summarize(written), summarize(read)):
            rate = (summary.throughput_bytes_per_s or 0) / 1e6
            requests = summary.attempt_stats.attempts
            print(f"{name:7} {summary.workload:6} {rate:8.0f} MB/s {requests:5} requests")
