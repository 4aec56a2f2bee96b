"""``sbench mixed``."""

from typing import Any

import click

from serverless_bench.cli.flags.of_jobs import job_options, report_options
from serverless_bench.cli.job import prepare, run


@click.command("mixed")
@job_options("mixed", objects="Prepared, per function.", prefix="Goes before every key.")
@report_options
def command(**flags: Any) -> int:  # noqa: ANN401 - the shared groups of flags
    """Perform operations of several kinds by weight, and report on each kind.

    Every function prepares its objects first, which no figure counts. Then it reads,
    overwrites, adds and deletes; whatever it reads is compared with what must be there.
    """
    return run(prepare("mixed", flags)).exit_code
