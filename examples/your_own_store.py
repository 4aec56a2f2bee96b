"""Against a store of yours: write, read back, delete exactly what was written.

    AWS_ACCESS_KEY_ID=... AWS_SECRET_ACCESS_KEY=... \
        python examples/your_own_store.py https://store.example:9000 my-bucket

For AWS itself give an empty address (''): the bucket's region is found out.
"""

import sys

from serverless_bench import JobSpec, SbenchError, Target, run_job, summarize
from serverless_bench.driver.cleanup import delete
from serverless_bench.driver.target import resolve

MIB = 1 << 20


def main(endpoint_url: str, bucket: str) -> None:
    """Write four objects, read them, delete them."""
    asked = Target(bucket=bucket, endpoint_url=endpoint_url, prefix="sbench-example/")
    target = resolve(asked, region=None)
    writing = JobSpec(workload="write", target=target, invocations=4, object_bytes=8 * MIB)
    written = run_job(writing, "sbench-runs/yours-write")
    reading = JobSpec(workload="read", target=target, invocations=4)
    read = run_job(reading, "sbench-runs/yours-read", keys=written.keys())
    for summary in (summarize(written), summarize(read)):
        rate = (summary.whole_bytes_per_s or 0) / 1e6
        print(f"{summary.workload}: {summary.ok} of {summary.requested} ok, {rate:.0f} MB/s")
    print(f"deleted {delete(target, written.ledger()).objects} objects")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except SbenchError as exc:
        sys.exit(f"{exc}\n{exc.hint}")
