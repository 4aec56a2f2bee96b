"""``sbench write``."""

from serverless_bench.cli.flags.of_jobs import report_options
from serverless_bench.cli.flags.options import FILE, option
from serverless_bench.cli.job import job_command

command = job_command(
    "write",
    """Write new objects from many functions and report the throughput.

    Every object goes to a random key and holds pseudorandom bytes that a reader can
    check from the key alone.
    """,
    option("--key-file", type=FILE, help="Write the keys here, one per line."),
    report_options,
)
