"""``sbench mixed``."""

from typing import Any, Final

import click

from serverless_bench.cli.job import perform, prepare
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
from serverless_bench.cli.write import object_sizes
from serverless_bench.errors import UsageError
from serverless_bench.units import KIB, format_size
from serverless_bench.workloads.mixed import KINDS

DEFAULT_MIX: Final = "get=45,head=30,put=15,delete=10"
"""warp's (cli/mixed.go): STAT is its word for head."""


@click.command("mixed")
@option("--number", type=int, default=4, show_default=True, help="Functions.")
@option("--mix", default=DEFAULT_MIX, show_default=True, help="Operations and their weights.")
@option("--operations", type=int, help="Per function; or --duration.")
@option("--objects", type=int, default=16, show_default=True, help="Prepared, per function.")
@option("--mb", type=int, help="Size of an object in MiB.  [default: 64]")
@option("--size", help="Size of an object with its unit, as in 2GB or 64MiB.")
@option(
    "--range-kib", type=int, default=1024, show_default=True, help="KiB that a get_range reads."
)
@option("--prefix", default="sbench/", show_default=True, help="Goes before every key.")
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
    mix: str,
    operations: int | None,
    objects: int,
    mb: int | None,
    size: str | None,
    range_kib: int,
    **flags: Any,  # noqa: ANN401 - the shared groups of flags
) -> int:
    """Perform operations of several kinds by weight, and report on each kind.

    Every function prepares its objects first, which no figure counts. Then it reads,
    overwrites, adds and deletes; whatever it reads is compared with what must be there.
    """
    if operations is None and flags["duration"] is None:
        raise UsageError(
            "a mix has no end of its own", hint="give --operations N or --duration SECONDS"
        )
    if operations is not None and flags["duration"] is not None:
        raise UsageError("--operations and --duration both end a mix", hint="give one of them")
    object_bytes, mean_bytes = object_sizes(mb, size, flags["sizes"])
    if flags["threads"] > objects >= 1:
        raise UsageError(
            f"--threads {flags['threads']} need as many objects, there are {objects}",
            hint="each thread has objects of its own: raise --objects",
        )
    load = {"mix": parse_mix(mix), "operations": operations, "range_bytes": range_kib * KIB}
    prepared = prepare(
        "mixed",
        {**flags, "load": load},
        invocations=number,
        objects=objects,
        object_bytes=object_bytes,
    )
    if prepared.where.embedded:
        # As many again may be added.
        most = 2 * number * objects
        check_room(most * mean_bytes, f"{most} objects of {format_size(mean_bytes)}")
    with open_target(prepared.where) as target:
        return perform(prepared, target).exit_code


def parse_mix(text: str) -> tuple[tuple[str, float], ...]:
    """Return the weights by kind of operation.

    Raises
    ------
    UsageError
        If the text is not ``kind=weight,...``, or names a kind twice or an unknown one.
    """
    known, found = {kind.value for kind in KINDS}, {}
    for piece in text.split(","):
        name, _, weight = (part.strip() for part in piece.partition("="))
        try:
            value = float(weight)
        except ValueError:
            value = -1.0
        if name not in known or name in found or not 0 <= value < float("inf"):
            raise UsageError(
                f"--mix {text!r}: {piece!r} is no kind and its weight",
                hint=f"as in {DEFAULT_MIX}; kinds: {', '.join(sorted(known))}, each once",
            )
        found[name] = value
    if not sum(found.values()):
        raise UsageError(f"--mix {text!r} has no weight above 0")
    return tuple((name, weight) for name, weight in found.items() if weight)
