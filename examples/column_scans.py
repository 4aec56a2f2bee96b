"""Find the first guess of a footer's length, and the gap between chunks, that suit a table.

The files are Parquet files with 50 row groups of 40 columns, of which a query reads a fifth.
"""

from dataclasses import replace

from serverless_bench import JobSpec, ParquetLoad, embedded_target, run_job, summarize

KIB = 1 << 10
SETTINGS = [(64 * KIB, 1), (128 * KIB, 1), (128 * KIB, 64 * KIB), (128 * KIB, 256 * KIB)]

with embedded_target() as target:
    load = ParquetLoad(row_groups=50, columns=40, column_fraction=0.2)
    job = JobSpec(workload="parquet", target=target, number=2, size=32 << 20, load=load)
    for guess, gap in SETTINGS:
        scan = replace(job, load=replace(load, footer_guess=guess, coalesce_gap=gap))
        run = run_job(scan, f"sbench-runs/parquet/guess-{guess}-gap-{gap}")
        figures = summarize(run).to_json()["scans"]
        ratio = figures["read_bytes"] / figures["needed_bytes"]
        print(
            f"guess {guess >> 10:3} KiB, gap {gap:6}: {figures['requests_per_file']:4.0f} requests,"
            f" {ratio:.2f} bytes read for each needed,"
            f" footer after {figures['footer_s']['p50'] * 1000:.0f} ms,"
            f" {figures['needed_bytes_per_s'] / 1e6:.0f} MB/s of needed bytes"
        )
