"""A first run: eight functions write 16 MiB each and read it back, every byte verified."""

from serverless_bench import JobSpec, embedded_target, run_job, summarize

with embedded_target() as target:
    write = JobSpec(workload="write", target=target, number=8, size=16 << 20)
    written = run_job(write, progress=True)
    read = JobSpec(workload="read", target=target, number=8)
    done = run_job(read, keys=written.keys(), progress=True)
print(summarize(written), summarize(done), sep="\n\n")
