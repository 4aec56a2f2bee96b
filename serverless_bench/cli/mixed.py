"""``sbench mixed``."""

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
from serverless_bench.job.defaults import (
    DEFAULT_MB,
    DEFAULT_MIX,
    DEFAULT_NUMBER,
    DEFAULT_OBJECTS,
    DEFAULT_PREFIX,
)


@click.command("mixed")
@option("--number", type=int, default=DEFAULT_NUMBER["mixed"], show_default=True, help="Functions.")
@option("--mix", default=DEFAULT_MIX, show_default=True, help="Operations and their weights.")
@option("--operations", type=int, help="Per function; or --duration.")
@option(
    "--objects",
    type=int,
    default=DEFAULT_OBJECTS["mixed"],
    show_default=True,
    help="Prepared, per function.",
)
@option("--mb", type=int, help=f"Size of an object in MiB.  [default: {DEFAULT_MB}]")
@option("--size", help="Size of an object with its unit, as in 2GB or 64MiB.")
@option(
    "--range-kib", type=int, default=1024, show_default=True, help="KiB that a get_range reads."
)
@option("--prefix", default=DEFAULT_PREFIX, show_default=True, help="Goes before every key.")
@object_options
@load_options
@target_options
@transfer_options
@run_options
@pickle_option
@ceiling_option
@format_option
def command(**flags: Any) -> int:  # noqa: ANN401 - the shared groups of flags
    """Perform operations of several kinds by weight, and report on each kind.

    Every function prepares its objects first, which no figure counts. Then it reads,
    overwrites, adds and deletes; whatever it reads is compared with what must be there.
    """
    return run(prepare("mixed", flags)).exit_code
