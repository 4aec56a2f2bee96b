"""``sbench write``."""

from pathlib import Path
from typing import Any

import click

from serverless_bench.cli.job import check_writable, perform, prepare
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
from serverless_bench.cli.target import check_room, open_target
from serverless_bench.errors import UsageError
from serverless_bench.job.keys import write_key_file
from serverless_bench.units import KIB, MIB, format_size, is_bare, parse_size

DEFAULT_MB = 64


@click.command("write")
@option("--number", type=int, default=16, show_default=True, help="Functions.")
@option("--mb", type=int, help=f"Size of an object in MiB.  [default: {DEFAULT_MB}]")
@option("--size", help="Size of an object with its unit, as in 2GB or 64MiB.")
@option("--objects", type=int, default=1, show_default=True, help="Objects per function.")
@option("--prefix", default="sbench/", show_default=True, help="Goes before every random key.")
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
def command(
    number: int,
    mb: int | None,
    size: str | None,
    objects: int,
    key_file: Path | None,
    **flags: Any,  # noqa: ANN401 - the shared groups of flags
) -> int:
    """Write new objects from many functions and report the throughput.

    Every object goes to a random key and holds pseudorandom bytes that a reader can
    check from the key alone.
    """
    object_bytes, mean_bytes = object_sizes(mb, size, flags["sizes"])
    prepared = prepare(
        "write", flags, invocations=number, objects=objects, object_bytes=object_bytes
    )
    check_writable("--key-file", key_file)
    if prepared.where.embedded:
        what = f"{number * objects} objects of {format_size(mean_bytes)}"
        check_room(number * objects * mean_bytes, what)
    with open_target(prepared.where) as target:
        done = perform(prepared, target)
    if key_file is not None:
        write_key_file(key_file, done.run.keys())
    return done.exit_code


def object_sizes(mb: int | None, size: str | None, sizes: str | None) -> tuple[int | None, int]:
    """Return the bytes of an object, or None if they are drawn, and their mean.

    Raises
    ------
    UsageError
        As ``object_size``, and if a size and a distribution are given.
    """
    if sizes is None:
        fixed = object_size(mb, size)
        return fixed, fixed
    if mb is not None or size is not None:
        raise UsageError("--sizes comes in place of --mb and --size", hint="give one of them")
    from serverless_bench.job.sizes import parse_sizes

    return None, round(parse_sizes(sizes).mean())


def object_size(mb: int | None, size: str | None) -> int:
    """Return the bytes of an object.

    Raises
    ------
    UsageError
        If both flags are given, or the one that is given names no size.
    """
    if mb is not None and size is not None:
        raise UsageError("--mb and --size both give the size of an object", hint="use one")
    if size is not None:
        if is_bare(size) and float(size) < KIB:
            raise UsageError(
                f"--size {size} has no unit", hint=f"--size {size}MiB, or --size {size}B for bytes"
            )
        return parse_size(size)
    mb = DEFAULT_MB if mb is None else mb
    if mb < 1:
        raise UsageError(f"--mb must be at least 1, got {mb}", hint="--size takes smaller ones")
    return mb * MIB
