"""CSV with a row per operation kind and size class, for combining the rows of multiple runs."""

import csv
from collections.abc import Iterator
from dataclasses import fields
from typing import Final, TextIO

from serverless_bench.analysis.latency import PERCENTILES, Latency, Times
from serverless_bench.analysis.summary import Summary
from serverless_bench.escaping import for_cell

_TIMES: Final = ("latency", "service", "response", "queueing")
_PLAIN: Final = tuple(field.name for field in fields(Latency) if field.name not in _TIMES)
_SHOWN: Final = (*PERCENTILES, "max")


def report(summary: Summary, out: TextIO) -> None:
    """Write the report."""
    writer = csv.writer(out, lineterminator="\n")
    columns = [f"{name}_s.{statistic}" for name in _TIMES for statistic in ("mean", *_SHOWN)]
    writer.writerow(["run_id", *_PLAIN, *columns])
    for row in summary.latencies.by_kind:
        plain = [getattr(row, name) for name in _PLAIN]
        times = [value for name in _TIMES for value in _values(getattr(row, name))]
        writer.writerow(map(for_cell, [summary.run_id, *plain, *times]))


def _values(times: Times | None) -> Iterator[float | None]:
    yield None if times is None else times.mean_s
    for name in _SHOWN:
        yield None if times is None else times.percentiles_s[name]
