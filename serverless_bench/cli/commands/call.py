"""``sbench call``."""

from typing import Any

import click

from serverless_bench.cli.flags.of_jobs import job_options
from serverless_bench.cli.job import prepare, run
from serverless_bench.job.workload import OWN_FUNCTION


@click.command("call")
@click.argument("code", metavar="FILE.py:FUNCTION")
@job_options(
    OWN_FUNCTION,
    objects="Per function: new, and given.",
    mb="Size of a new object in MiB; without a size none may be made.",
    size="Size of a new object with its unit, as in 2GB or 64MiB.",
    prefix="Goes before every key.",
    key_file="Deal out the objects listed here, one key per line.",
)
def command(**flags: Any) -> int:  # noqa: ANN401 - the shared groups of flags
    """Call a function of your own in many functions, and report what it did.

    It gets the client, the bytes of objects and the recorder as its one argument;
    docs/own-function.md says how. It is sent by value, and runs with the rights of the
    functions: on AWS only where the stack was deployed with AllowCode=true.
    """
    return run(prepare(OWN_FUNCTION, flags))
