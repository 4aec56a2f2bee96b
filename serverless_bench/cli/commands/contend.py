"""``sbench contend``."""

from typing import Any

import click

from serverless_bench.cli.flags.of_jobs import job_options, report_options
from serverless_bench.cli.job import prepare, run


@click.command("contend")
@job_options(
    "contend",
    objects="Keys that all share.",
    operations="Per thread; of increments --duration ends them, too.",
    prefix="Goes before every key.",
)
@report_options
def command(**flags: Any) -> int:  # noqa: ANN401 - the shared groups of flags
    """Write to shared keys on conditions, and check that no acknowledged write is lost.

    All functions increment registers (If-Match), claim keys (If-None-Match), or append to
    logs. Afterwards the history of every key is rebuilt, and has to be linearizable.
    """
    return run(prepare("contend", flags)).exit_code
