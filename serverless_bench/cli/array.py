"""``sbench array``."""

from pathlib import Path
from typing import Any

import click

from serverless_bench.arrays import ARRAYS
from serverless_bench.cli.job import prepare, run
from serverless_bench.cli.options import (
    format_option,
    option,
    run_options,
    target_options,
    transfer_options,
)
from serverless_bench.job.defaults import DEFAULT_PREFIX


@click.command("array")
@click.argument("operation", type=click.Choice(["write", "append", "read"]))
@option(
    "--library",
    default="tensorstore",
    show_default=True,
    help=f"What writes or reads: {', '.join(ARRAYS)}.",
)
@option("--driver", default="zarr", show_default=True, help="Format: zarr (2) or zarr3.")
@option(
    "--shape",
    default="4096,4096",
    show_default=True,
    help="Of an array, or of what one append adds.",
)
@option("--chunks", default="1024,1024", show_default=True, help="Shape of a chunk.")
@option("--shards", help="Shape of what becomes one object; a chunk without it.")
@option("--dtype", default="float32", show_default=True, help="uint8, uint16, uint32 or float32.")
@option(
    "--codec",
    default="none",
    show_default=True,
    help="none, blosc-lz4, blosc-zstd or zstd, all at level 1.",
)
@option("--source", default="numpy", show_default=True, help="Who holds the data: numpy or jax.")
@option(
    "--path",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory for arrays in files; the bucket without it.",
)
@option(
    "--library-option",
    multiple=True,
    metavar="NAME=VALUE",
    help="An option of the library; docs/arrays.md has them.",
)
@option("--number", type=int, default=1, show_default=True, help="Functions.")
@option("--objects", type=int, default=1, show_default=True, help="Arrays, or appends, of each.")
@option("--prefix", default=DEFAULT_PREFIX, show_default=True, help="Goes before every key.")
@option(
    "--key-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Keys of arrays, one per line: to write them there, or to read those arrays.",
)
@option("--read-times", type=int, default=1, show_default=True, help="Reads of each array.")
@target_options
@transfer_options
@run_options
@format_option
def command(**flags: Any) -> int:  # noqa: ANN401 - the shared groups of flags
    """Write arrays through an array library, append to them, or read them back.

    An array holds the same bytes as an object of its key, so every byte that is read is
    compared. Memory, threads and processor time are those of the library's own call.
    """
    return run(prepare("array", flags)).exit_code
