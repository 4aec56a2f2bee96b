"""``sbench contend``."""

from serverless_bench.cli.flags.of_jobs import report_options
from serverless_bench.cli.job import job_command

command = job_command(
    "contend",
    """Write to shared keys on conditions, and check that no acknowledged write is lost.

    All functions increment registers (If-Match), claim keys (If-None-Match), or append to
    logs. Afterwards the history of every key is rebuilt, and has to be linearizable.
    """,
    report_options,
    objects="Keys that all share.",
    operations="Per thread; of increments --duration ends them, too.",
    prefix="Goes before every key.",
)
