"""``sbench write``."""

from pathlib import Path
from typing import Any

import click

from serverless_bench.cli.job import prepare, run
from serverless_bench.cli.options import (
    ceiling_option,
    format_option,
    load_options,
    object_options,
    option,
    pickle_option,
    run_options,
    target_options,
    transfer_options,
)
from serverless_bench.job.defaults import DEFAULT_MB, DEFAULT_PREFIX, USUAL_NUMBER


@click.command("write")
@option("--number", type=int, default=USUAL_NUMBER, show_default=True, help="Functions.")
@option("--mb", type=int, help=f"Size of an object in MiB.  [default: {DEFAULT_MB}]")
@option("--size", help="Size of an object with its unit, as in 2GB or 64MiB.")
@option("--objects", type=int, default=1, show_default=True, help="Objects per function.")
@option("--prefix", default=DEFAULT_PREFIX, show_default=True, help="Goes before every random key.")
@option(
    "--key-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the keys here, one per line.",
)
@object_options
@load_options
@target_options
@transfer_options
@run_options
@pickle_option
@ceiling_option
@format_option
def command(**flags: Any) -> int:  # noqa: ANN401 - the shared groups of flags
    """Write new objects from many functions and report the throughput.

    Every object goes to a random key and holds pseudorandom bytes that a reader can
    check from the key alone.
    """
    return run(prepare("write", flags)).exit_code
