"""``sbench read``."""

from pathlib import Path
from typing import Any

import click

from serverless_bench.cli.job import prepare, run
from serverless_bench.cli.options import (
    ceiling_option,
    format_option,
    load_options,
    option,
    pickle_option,
    run_options,
    target_options,
    transfer_options,
)


@click.command("read")
@option("--number", type=int, default=0, help="Functions.  [default: as many as read all keys]")
@option(
    "--key-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Read the objects listed here, one key per line.",
)
@option("--key", help="Read this one object in every function.")
@option("--read-times", type=int, default=1, show_default=True, help="Reads of each object.")
@option("--objects", type=int, default=1, show_default=True, help="Objects per function.")
@option("--split", type=int, help="Functions that share each object; each reads a range.")
@load_options
@target_options
@transfer_options
@run_options
@pickle_option
@ceiling_option
@format_option
def command(**flags: Any) -> int:  # noqa: ANN401 - the shared groups of flags
    """Read objects back, compare every byte and report the throughput.

    With more functions than keys the list starts over; with fewer the rest stays unread.
    """
    return run(prepare("read", flags)).exit_code
