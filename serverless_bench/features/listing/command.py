"""``sbench list``."""

from serverless_bench.cli.job import job_command

command = job_command(
    "list",
    """List keys from many functions, and compare each page with the keys that were written.

    Each function writes a tree of small objects and lists its folders, or all keys in one
    sequence. The report has keys per second, the time to the first page, and each key that was
    missing, double or out of order.
    """,
    objects="Keys that each function writes.",
    mb="Size of an object in MiB.",
    size="Size of an object; 1 byte by default.",
)
