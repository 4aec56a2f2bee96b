"""``sbench mixed``."""

from serverless_bench.cli.job import job_command

command = job_command(
    "mixed",
    """Perform operations of several kinds by weight, and report on each kind.

    Each function first prepares its objects, which is not part of the results. It then reads,
    overwrites, adds and deletes objects, and compares all data it reads with the expected data.
    """,
    objects="Prepared objects per function.",
    prefix="Prefix of all keys.",
)
