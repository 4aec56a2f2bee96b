"""``sbench read``."""

from serverless_bench.cli.flags.of_jobs import report_options
from serverless_bench.cli.job import job_command

command = job_command(
    "read",
    """Read objects back, compare every byte and report the throughput.

    With more functions than keys the list starts over; with fewer the rest stays unread.
    """,
    report_options,
)
