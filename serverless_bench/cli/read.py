"""``sbench read``."""

from typing import Any

import click

from serverless_bench.cli.job import prepare, run
from serverless_bench.cli.job_flags import job_options, report_options


@click.command("read")
@job_options("read")
@report_options
def command(**flags: Any) -> int:  # noqa: ANN401 - the shared groups of flags
    """Read objects back, compare every byte and report the throughput.

    With more functions than keys the list starts over; with fewer the rest stays unread.
    """
    return run(prepare("read", flags)).exit_code
