"""``sbench mixed``."""

from serverless_bench.cli.flags.of_jobs import report_options
from serverless_bench.cli.job import job_command

command = job_command(
    "mixed",
    """Perform operations of several kinds by weight, and report on each kind.

    Every function prepares its objects first, which no figure counts. Then it reads,
    overwrites, adds and deletes; whatever it reads is compared with what must be there.
    """,
    report_options,
    objects="Prepared, per function.",
    prefix="Goes before every key.",
)
