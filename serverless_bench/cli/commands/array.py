"""``sbench array``."""

import click

from serverless_bench.cli.job import job_command

command = job_command(
    "array",
    """Write arrays through an array library, append to them, or read them back.

    An array holds the same bytes as an object of its key, so every byte that is read is
    compared. Memory, threads and processor time are those of the library's own call.
    """,
    click.argument("operation", type=click.Choice(["write", "append", "read"])),
    objects="Arrays, or appends, of each.",
    prefix="Goes before every key.",
    key_file="Keys of arrays, one per line: to write them there, or to read those arrays.",
    read_times="Reads of each array.",
)
