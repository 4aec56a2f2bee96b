"""``sbench parquet``."""

from serverless_bench.cli.job import job_command

command = job_command(
    "parquet",
    """Scan Parquet files: read the footers, then the chunks of some columns.

    Each function first writes files with real footers. The report has the time to the footer,
    the requests per file, and the bytes read and needed.
    """,
    objects="Files per function.",
    mb="Size of a file in MiB.",
    size="Size of a file, as in 2GB, 64MiB or 1000 (bytes).",
    connections="Column chunks of a file that are read at the same time.",
    part_size="Longest joined range, and size of an uploaded part; 32 MiB by default.",
    read_times="Scans of each file.",
)
