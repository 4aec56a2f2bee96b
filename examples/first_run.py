"""A first run: eight functions write 16 MiB each and read it back, every byte verified."""

from serverless_bench import JobSpec, embedded_target, run_job, summarize
from serverless_bench.units import format_rate

with embedded_target() as target:
    write = JobSpec(workload="write", target=target, invocations=8, object_bytes=16 << 20)
    written = run_job(write, "sbench-runs/first-write")
    read = JobSpec(workload="read", target=target, invocations=8)
    done = run_job(read, "sbench-runs/first-read", keys=written.keys())
for summary in (summarize(written), summarize(done)):
    rate = format_rate(summary.whole_bytes_per_s)
    print(f"{summary.workload}: {summary.ok} ok, {rate}, {summary.verified_bytes} bytes verified")
