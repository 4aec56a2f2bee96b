"""``sbench replay``."""

import click

from serverless_bench.cli.job import job_command

command = job_command(
    "replay",
    """Replay the requests of a log with their original timing, on objects of the run's own.

    LOG is an S3 server access log, an op-log of warp or sai3-bench, or a table with the columns
    time, op and key; - is standard input. Keys are replaced by pseudonyms. All
    objects are prepared, written and deleted below the run's own folder.
    """,
    click.argument("log", metavar="LOG"),
    prefix="Prefix of all keys.",
)
