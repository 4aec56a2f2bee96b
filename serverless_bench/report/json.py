"""A JSON object on a single line; docs/figures.md lists its fields."""

import json
from typing import TextIO

from serverless_bench.metrics.summary import Summary


def report(summary: Summary, out: TextIO) -> None:
    """Write the report."""
    json.dump(summary.to_json(), out)
    out.write("\n")
