"""Loads of scans."""

from dataclasses import dataclass
from typing import Annotated

from serverless_bench.base.units import KIB, parse_distance, parse_share, parse_size
from serverless_bench.job.meaning import Meaning, absolute
from serverless_bench.job.types import Limits
from serverless_bench.job.workload import Load


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetLoad(Load):
    """The scans of a function.

    Parameters
    ----------
    row_groups
        Row groups of a Parquet file.
    columns
        Columns of a Parquet file.
    layout_from
        Encoded layout of a file; None for chunks of equal length.
    column_fraction
        Share of the columns that a scan reads.
    coalesce_gap
        Most bytes between two column chunks that share a request.
    footer_guess
        Bytes that the first request of a scan reads from the end of the file.

    Examples
    --------
    >>> load = sbench.ParquetLoad(row_groups=50, columns=40, column_fraction=0.2)
    >>> load.coalesce_gap
    8192
    """

    row_groups: Annotated[int, Limits(1), Meaning("Row groups of a file.")] = 8
    columns: Annotated[int, Limits(1), Meaning("Columns of a file.")] = 16
    layout_from: Annotated[
        str | None,
        Meaning(
            "Parquet file whose layout is used, without its data, or a layout as JSON.",
            parse=absolute,
            path="file",
        ),
    ] = None
    column_fraction: Annotated[
        float,
        Limits(positive=True, most=1),
        Meaning("Share of the columns to read.", parse=parse_share),
    ] = 0.25
    coalesce_gap: Annotated[
        int,
        Limits(0),
        Meaning("Chunks at most this far apart share a request.", parse=parse_distance),
    ] = 8 * KIB
    footer_guess: Annotated[
        int, Limits(8), Meaning("Bytes of the first request, from the end.", parse=parse_size)
    ] = 64 * KIB
