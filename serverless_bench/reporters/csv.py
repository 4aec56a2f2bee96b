"""A header and a row; nested fields become columns like ``ttfb_s.p50``.

All runs have the same columns, so that rows of multiple reports can be combined into a table.
"""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Final, TextIO

from serverless_bench.analysis.bottleneck.causes import CAUSES, Bottleneck
from serverless_bench.analysis.bottleneck.slots import SLOT_STATES
from serverless_bench.analysis.clock_offsets import Clocks
from serverless_bench.analysis.contention import Contention
from serverless_bench.analysis.summary import GateSummary, Summary
from serverless_bench.analysis.throughput import MissingFunctions
from serverless_bench.escaping import for_cell
from serverless_bench.rundir.tables import RATE_PERCENTILES

_PERCENTILES: Final = (*(f"p{p}" for p in RATE_PERCENTILES), "n")
_NESTED: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        ("per_function_bytes_per_s", "ttfb_s", "ack_s", "latency_s", "service_s"), _PERCENTILES
    ),
    **{
        name: tuple(field.name for field in fields(kind))
        for name, kind in (
            ("bottleneck", Bottleneck),
            ("missing_functions", MissingFunctions),
            ("clocks", Clocks),
            ("gate", GateSummary),
        )
    },
    "bottleneck.functions": CAUSES,
    "bottleneck.slots": SLOT_STATES,
    "contention": tuple(f.name for f in fields(Contention) if f.name != "violations"),
    "contention.commit_s": _PERCENTILES,
    "gate.wait_s": _PERCENTILES,
}
_COUNTS: Final = ("errors", "errors_of_attempts", "throttled_by_prefix")
_LEFT_OUT: Final = ("bad_ranges", "bill", "deliveries", "latencies", "libraries", "neighbours")
"""Fields with different columns for each run; they are part of the JSON report, and the reporter
``operations`` has a table of latencies."""


def report(summary: Summary, out: TextIO) -> None:
    """Write the report."""
    row = {name: for_cell(value) for name, value in _columns("", summary.to_json())}
    writer = csv.DictWriter(out, row, lineterminator="\n")
    writer.writeheader()
    writer.writerow(row)


def _columns(above: str, data: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for name, value in data.items():
        path = above + name
        if path in _NESTED:
            values = value if isinstance(value, Mapping) else {}
            yield from _columns(f"{path}.", {sub: values.get(sub) for sub in _NESTED[path]})
        elif path in _COUNTS and isinstance(value, Mapping):
            yield path, "; ".join(f"{count} x {name}" for name, count in value.items())
        elif isinstance(value, tuple):
            yield path, "; ".join(map(str, value))
        elif path not in _LEFT_OUT:
            yield path, value
