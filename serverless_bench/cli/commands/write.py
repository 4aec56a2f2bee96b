"""``sbench write``."""

from typing import Any

import click

from serverless_bench.cli.flags.of_jobs import job_options, report_options
from serverless_bench.cli.flags.options import FILE, option
from serverless_bench.cli.job import prepare, run


@click.command("write")
@option("--key-file", type=FILE, help="Write the keys here, one per line.")
@job_options("write")
@report_options
def command(**flags: Any) -> int:  # noqa: ANN401 - the shared groups of flags
    """Write new objects from many functions and report the throughput.

    Every object goes to a random key and holds pseudorandom bytes that a reader can
    check from the key alone.
    """
    return run(prepare("write", flags)).exit_code
