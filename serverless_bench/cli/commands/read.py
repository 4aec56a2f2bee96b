"""``sbench read``."""

from typing import Any

import click

from serverless_bench.cli.flags.of_jobs import job_options, report_options
from serverless_bench.cli.job import prepare, run


@click.command("read")
@job_options("read")
@report_options
def command(**flags: Any) -> int:  # noqa: ANN401 - the shared groups of flags
    """Read objects back, compare every byte and report the throughput.

    With more functions than keys the list starts over; with fewer the rest stays unread.
    """
    return run(prepare("read", flags)).exit_code
