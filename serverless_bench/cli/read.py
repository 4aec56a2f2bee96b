"""``sbench read``."""

from pathlib import Path
from typing import Any

import click

from serverless_bench.cli.job import perform, prepare
from serverless_bench.cli.options import (
    DEFAULT_PREFIX,
    ceiling_option,
    format_option,
    load_options,
    option,
    pickle_option,
    run_options,
    target_options,
    transfer_options,
)
from serverless_bench.cli.target import open_target
from serverless_bench.errors import UsageError
from serverless_bench.job.keys import read_key_file
from serverless_bench.job.read_assignment import functions_for


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
def command(
    number: int,
    key_file: Path | None,
    key: str | None,
    read_times: int,
    objects: int,
    split: int | None,
    **flags: Any,  # noqa: ANN401 - the shared groups of flags
) -> int:
    """Read objects back, compare every byte and report the throughput.

    With more functions than keys the list starts over; with fewer the rest stays unread.
    """
    if (key_file is None) == (key is None):
        raise UsageError(
            "give --key-file or --key, to say what to read",
            hint="sbench write --key-file FILE makes one; a run directory has its keys.txt",
        )
    keys = [key] if key is not None else read_key_file(key_file or Path())
    # PyWren's 0 stands for all keys (s3_benchmark.py:122).
    invocations = number or functions_for(
        len(keys), objects=max(1, objects), split=max(1, split or 1)
    )
    flags["prefix"] = DEFAULT_PREFIX
    prepared = prepare(
        "read",
        {**flags, "load": {"split": split}},
        invocations=invocations,
        objects=objects,
        repeats=read_times,
        keys=keys,
    )
    with open_target(prepared.where) as target:
        return perform(prepared, target).exit_code
