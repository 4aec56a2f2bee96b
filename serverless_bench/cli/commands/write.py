"""``sbench write``."""

from serverless_bench.cli.flags.options import FILE, option
from serverless_bench.cli.job import job_command

command = job_command(
    "write",
    """Write new objects from many functions and report the throughput.

    Each object has a random key and pseudorandom bytes that a reader can verify from the key.
    """,
    option("--key-file", type=FILE, help="File to write the keys to, one per line."),
)
