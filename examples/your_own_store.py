"""Against a store of yours: write, read back, delete exactly what was written.

    AWS_ACCESS_KEY_ID=... AWS_SECRET_ACCESS_KEY=... \
        python examples/your_own_store.py https://store.example:9000 my-bucket

For AWS itself give an empty address (''): the bucket's region is found out.
"""

import sys

from serverless_bench import JobSpec, SbenchError, Target, clean, run_job, summarize

MIB = 1 << 20


def main(endpoint_url: str, bucket: str) -> None:
    """Write four objects, read them, delete them."""
    target = Target(bucket=bucket, endpoint_url=endpoint_url, prefix="sbench-example/")
    writing = JobSpec(workload="write", target=target, number=4, size=8 * MIB)
    written = run_job(writing, progress=True)
    reading = JobSpec(workload="read", target=target, number=4)
    read = run_job(reading, keys=written.keys(), progress=True)
    print(summarize(written), summarize(read), clean(written), sep="\n\n")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python your_own_store.py ENDPOINT_URL BUCKET")
    try:
        main(*sys.argv[1:])
    except SbenchError as exc:
        sys.exit(f"{exc}\n{exc.hint}")
