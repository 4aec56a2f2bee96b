"""Ways to show a reduced run: one file and one line here each."""

from typing import TYPE_CHECKING, Final

from serverless_bench.plugins import Registry

if TYPE_CHECKING:
    # What it needs takes long to load, and help asks for the names alone.
    from serverless_bench.reporters.reporter import Reporter as Reporter

REPORTERS: Final = Registry["Reporter"](
    "reporters",
    {
        "csv": "serverless_bench.reporters.csv:report",
        "html": "serverless_bench.reporters.html:report",
        "json": "serverless_bench.reporters.json:report",
        "markdown": "serverless_bench.reporters.markdown:report",
        "operations": "serverless_bench.reporters.operations:report",
        "text": "serverless_bench.reporters.text:report",
    },
)

open_reporter: Final = REPORTERS.load
