"""Loads of scans."""

from dataclasses import dataclass
from typing import Annotated

from serverless_bench.base.units import KIB
from serverless_bench.job.load import Load
from serverless_bench.job.types import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnsLoad(Load):
    """The scans of a function.

    Parameters
    ----------
    row_groups
        Row groups of a Parquet file.
    columns
        Columns of a Parquet file.
    like
        Encoded layout of a file; None for chunks of equal length.
    share
        Share of the columns that a scan reads.
    gap
        Most bytes between two column chunks that share a request.
    footer_guess
        Bytes that the first request of a scan reads from the end of the file.

    Examples
    --------
    >>> load = sbench.ColumnsLoad(row_groups=50, columns=40, share=0.2)
    >>> load.gap
    8192
    """

    row_groups: Annotated[int, Limits(1)] = 8
    columns: Annotated[int, Limits(1)] = 16
    like: str | None = None
    share: Annotated[float, Limits(positive=True, most=1)] = 0.25
    gap: Annotated[int, Limits(0)] = 8 * KIB
    footer_guess: Annotated[int, Limits(8)] = 64 * KIB
