"""``sbench array``."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click

from serverless_bench.arrays import ARRAYS
from serverless_bench.arrays.check import check_array
from serverless_bench.cli.job import Prepared, check_writable, perform, prepare
from serverless_bench.cli.options import (
    DEFAULT_PREFIX,
    format_option,
    named_values,
    option,
    run_options,
    target_options,
    transfer_options,
)
from serverless_bench.cli.target import check_room, open_target
from serverless_bench.errors import UsageError
from serverless_bench.job.keys import read_key_file, write_key_file
from serverless_bench.job.spec import ArraySpec, Target
from serverless_bench.payload.array_layout import array_bytes, shape_at
from serverless_bench.units import format_size

_NOWHERE: Final = "http://127.0.0.1:9"
"""For arrays in files: the discard port, at which nothing answers."""


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
def command(
    operation: str,
    number: int,
    objects: int,
    key_file: Path | None,
    read_times: int,
    **flags: Any,  # noqa: ANN401 - the shared groups of flags
) -> int:
    """Write arrays through an array library, append to them, or read them back.

    An array holds the same bytes as an object of its key, so every byte that is read is
    compared. Memory, threads and processor time are those of the library's own call.
    """
    array = _array(operation, flags)
    check_array(array)
    keys = _keys(array, key_file)
    prepared = prepare(
        "array",
        {**flags, "load": {"array": array}},
        invocations=number,
        objects=objects,
        repeats=read_times,
        keys=keys,
    )
    if array.path is not None and prepared.job.gate is not None:
        raise UsageError("a gate needs a bucket", hint="leave --gate or --path out")
    if not keys:
        check_writable("--key-file", key_file)
        if prepared.where.embedded and array.path is None:
            total = number * objects * array_bytes(array)
            check_room(total, f"{number * objects} arrays of {format_size(array_bytes(array))}")
    with _target(prepared, array) as target:
        done = perform(prepared, target)
    if key_file is not None and not keys:
        write_key_file(key_file, done.run.keys())
    return done.exit_code


def _array(operation: str, flags: dict[str, Any]) -> ArraySpec:
    """Return the array that the flags describe, and take them out of ``flags``."""
    shards, path = flags.pop("shards"), flags.pop("path")
    return ArraySpec(
        operation=operation,
        shape=_lengths("--shape", flags.pop("shape")),
        chunks=_lengths("--chunks", flags.pop("chunks")),
        shards=None if shards is None else _lengths("--shards", shards),
        path=None if path is None else str(path.absolute()),
        options=tuple(
            (name.replace("-", "_"), value)
            for name, value in named_values("--library-option", flags.pop("library_option"))
        ),
        **{name: flags.pop(name) for name in ("library", "driver", "dtype", "codec", "source")},
    )


def _lengths(flag: str, text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise UsageError(f"{flag} {text!r} is no shape", hint="write it as in 4096,4096")
    return tuple(map(int, parts))


def _keys(array: ArraySpec, key_file: Path | None) -> list[str]:
    """Return the keys of the arrays to read; none for what makes its own."""
    if array.operation != "read":
        return []
    if key_file is None:
        raise UsageError(
            "give --key-file, to say what to read",
            hint="sbench array write --key-file FILE makes one; a run directory has its keys.txt",
        )
    keys = read_key_file(key_file)
    for key in keys:
        shape_at(array, key)
    return keys


@contextmanager
def _target(prepared: Prepared, array: ArraySpec) -> Iterator[Target]:
    """Yield where objects are; nowhere for arrays in files, unless a bucket is named."""
    if array.path is None or not prepared.where.embedded:
        with open_target(prepared.where) as target:
            yield target
        return
    yield Target(
        client=prepared.where.client,
        bucket="files",
        prefix=prepared.where.prefix,
        endpoint_url=_NOWHERE,
    )
