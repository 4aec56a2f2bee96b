"""A header and one row; nested fields become columns like ``ttfb_s.p50``."""

import csv
from collections.abc import Iterator, Mapping
from typing import TextIO

from serverless_bench.reduce import RATE_PERCENTILES, Summary

_NESTED = ("per_function_bytes_per_s", "ttfb_s", "ack_s")


def report(summary: Summary, out: TextIO) -> None:
    """Write the report."""
    row = dict(_columns(summary.to_json()))
    writer = csv.DictWriter(out, row, lineterminator="\n")
    writer.writeheader()
    writer.writerow(row)


def _columns(data: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for name, value in data.items():
        if name in _NESTED:
            values = value if isinstance(value, Mapping) else {}
            for p in RATE_PERCENTILES:
                yield f"{name}.p{p}", values.get(f"p{p}")
        elif name == "errors":
            yield name, "; ".join(f"{n} x {e}" for e, n in dict(value).items())  # type: ignore[call-overload]
        elif name != "corrupt":
            yield name, value
