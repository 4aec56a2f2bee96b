"""Ways to show a reduced run: one file and one line here each."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

from serverless_bench import plugins

if TYPE_CHECKING:
    # What it needs takes long to load, and help asks for the names alone.
    from serverless_bench.reporters.base import Reporter

REPORTERS: Final[Mapping[str, str]] = {
    "csv": "serverless_bench.reporters.csv:report",
    "json": "serverless_bench.reporters.json:report",
    "markdown": "serverless_bench.reporters.markdown:report",
    "operations": "serverless_bench.reporters.operations:report",
    "text": "serverless_bench.reporters.text:report",
}


def open_reporter(name: str) -> "Reporter":
    """Return the reporter called ``name``."""
    return cast("Reporter", plugins.load("reporters", REPORTERS, name))
