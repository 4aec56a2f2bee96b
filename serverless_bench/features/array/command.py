"""``sbench array``."""

import click

from serverless_bench.cli.job import job_command
from serverless_bench.cli.output.terminal import sections

command = sections(
    last={
        "Workload": "shape chunks shards dtype codec library driver source path library-option"
        " warm-up seed"
    }
)(
    job_command(
        "array",
        """Write arrays through an array library, append to them, or read them back.

    An array has the same bytes as an object with its key, so the command compares all bytes
    that it reads. Memory, threads and CPU time cover the calls of the library only.
    """,
        click.argument("operation", type=click.Choice(["write", "append", "read"])),
        further_results=False,
        objects="Arrays or appends per function.",
        prefix="Prefix of all keys.",
        key_file="File with keys of arrays, one per line: output of a write, input of a read.",
        read_times="Reads of each array.",
    )
)
