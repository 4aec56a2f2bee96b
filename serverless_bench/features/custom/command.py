"""``sbench custom``."""

from typing import Any

import click

from serverless_bench.cli.flags.of_jobs import job_options
from serverless_bench.cli.job import prepare, run
from serverless_bench.job.workload import OWN_FUNCTION


@click.command("custom")
@click.argument("code", metavar="FILE.py:FUNCTION")
@job_options(
    OWN_FUNCTION,
    objects="New objects, and listed objects, per function.",
    mb="Size of a new object in MiB; new objects need a size.",
    size="Size of a new object with a unit, as in 2GB or 64MiB.",
    prefix="Prefix of all keys.",
    key_file="File with keys of objects to distribute to the functions, one per line.",
)
def command(**flags: Any) -> int:
    """Call your own function in many functions, and report on its operations.

    Its only argument provides the client, the bytes of objects and the recorder; see
    "Your function" in the documentation. The function is sent by value and runs
    with the permissions of the functions. On AWS it runs only in a stack that was deployed with
    AllowCode=true.
    """
    return run(prepare(OWN_FUNCTION, flags))
