"""Scan Parquet files as query engines do: footer first, then the chunks of some columns.

Each function writes files before the measurement. All files have the same layout, so that each
scan makes the same requests; ``layout`` defines it, and ``operation`` performs a scan. Files that
sbench did not write are read as their footers say, unverified.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import MIB
from serverless_bench.features.parquet.layout import (
    END_BYTES,
    MOST_RANGE,
    chosen,
    joined,
    layout_of,
    read_layout,
)
from serverless_bench.features.parquet.load import ParquetLoad
from serverless_bench.job.abilities import Completing, Scan, Scanning
from serverless_bench.job.defaults import DEFAULT_MB
from serverless_bench.job.keys import listed
from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.job.planned_objects import planned_object
from serverless_bench.job.workload import PACED, Appearance, Load, Stream, Trait, Workload

if TYPE_CHECKING:
    from serverless_bench.job.spec import InvocationSpec, JobSpec, Work
    from serverless_bench.worker.operation_context import Performer


class Columns(Workload, Scanning, Completing):
    """One scan for each file of the function, all of them ``read_times`` times."""

    settings = (*PACED, "mb", "size", "prefix", "read_times")
    traits = (
        Trait.NEEDS_SIZE
        | Trait.CREATES_OBJECTS
        | Trait.DEALS_OBJECTS
        | Trait.DERIVES_KEYS
        | Trait.TAKES_EXISTING
    )
    look = Appearance(hue="sky", past_tense="scanned")
    load_type = ParquetLoad
    default_number = 4
    part = "serverless_bench.features.parquet.part:PART"

    def kinds(self, load: Load) -> Mapping[OperationKind, float]:
        """Return scans alone."""
        return {OperationKind.SCAN: 1.0}

    def completed(self, values: dict[str, Any]) -> dict[str, Any]:
        """Replace the path of ``layout_from`` by the layout, and the size by that of the layout."""
        load, usual = values["load"], ParquetLoad()
        if load.layout_from is None:
            return values
        given = (values["size"], load.row_groups, load.columns)
        if given != (DEFAULT_MB * MIB, usual.row_groups, usual.columns):
            raise UsageError(
                "`layout_from` determines size, row groups and columns",
                hint="leave out `mb`, `size`, `row_groups` and `columns`",
                field="layout_from",
            )
        layout = read_layout(load.layout_from)
        return {**values, "load": replace(load, layout_from=layout.encode()), "size": layout.size}

    def check(self, job: "JobSpec") -> None:
        """Check that the files have room for their chunks, or the size of their layout."""
        if job.reads_given:
            return
        size = layout_of(ParquetLoad.narrow(job.load), job.size or 0).size
        if job.size != size:
            raise UsageError(
                f"`size` is {job.size}, the layout in `layout_from` has {size}", field="size"
            )

    def scan(self, job: "Work") -> Scan | None:
        """Return the requests and bytes of a scan."""
        load, part_size = ParquetLoad.narrow(job.load), job.transfer.part_size
        return None if job.size is None else _scan(load, job.size, part_size)

    def keys(self, invocation: "InvocationSpec") -> Iterator[str]:
        """Yield the keys of all files."""
        if not invocation.reads_given:
            yield from (_key(invocation, number) for number in range(invocation.objects))

    def prepare(self, invocation: "InvocationSpec", thread: int) -> Stream:
        """Yield the puts of a thread's files."""
        count = 0 if invocation.reads_given else invocation.objects
        for number in range(thread, count, invocation.load.threads):
            key = _key(invocation, number)
            yield OperationSpec(kind=OperationKind.PUT, key=key, size=invocation.size)

    def operations(self, invocation: "InvocationSpec", thread: int = 0) -> Stream:
        """Yield the scans of a thread; the length is that of all requests."""
        scan, count = self.scan(invocation), invocation.objects
        for number in range(thread, count * invocation.read_times, invocation.load.threads):
            yield OperationSpec(
                kind=OperationKind.SCAN,
                key=_key(invocation, number % count),
                size=invocation.size,
                length=scan and scan.bytes,
            )

    def performer(self, invocation: "InvocationSpec") -> "Performer":
        """Return the scanner of a function."""
        from serverless_bench.features.parquet.operation import Scanner

        load = ParquetLoad.narrow(invocation.load)
        layout = None if invocation.reads_given else layout_of(load, invocation.size or 0)
        return Scanner(layout, load, invocation.transfer)


@lru_cache(maxsize=4)
def _scan(load: ParquetLoad, size: int, part_size: int | None) -> Scan:
    layout = layout_of(load, size)
    chunks = chosen(layout.row_groups, load.column_fraction)
    ranges = joined(chunks, load.coalesce_gap, part_size or MOST_RANGE)
    tail, guess = len(layout.tail), min(load.footer_guess, layout.size)
    again = tail - END_BYTES if tail > guess else 0
    return Scan(
        footer_requests=2 if again else 1,
        requests=len(ranges) + (2 if again else 1),
        bytes=sum(span.length for span in ranges) + guess + again,
        needed_bytes=sum(chunk.length for chunk in chunks) + tail,
    )


def _key(invocation: "InvocationSpec", number: int) -> str:
    """Return the key of a file: a folder that declares its size, as for the chunks of an array."""
    if invocation.reads_given:
        return listed(invocation.keys[number])[0]
    return f"{planned_object(invocation, number).key}/data.parquet"


WORKLOAD = Columns()
