"""``sbench array``."""

from typing import Any

import click

from serverless_bench.cli.flags.of_jobs import job_options
from serverless_bench.cli.job import prepare, run


@click.command("array")
@click.argument("operation", type=click.Choice(["write", "append", "read"]))
@job_options(
    "array",
    objects="Arrays, or appends, of each.",
    prefix="Goes before every key.",
    key_file="Keys of arrays, one per line: to write them there, or to read those arrays.",
    read_times="Reads of each array.",
)
def command(**flags: Any) -> int:  # noqa: ANN401 - the shared groups of flags
    """Write arrays through an array library, append to them, or read them back.

    An array holds the same bytes as an object of its key, so every byte that is read is
    compared. Memory, threads and processor time are those of the library's own call.
    """
    return run(prepare("array", flags)).exit_code
