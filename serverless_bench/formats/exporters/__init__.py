"""Ways to hand a run to other tools: one file and one line here each."""

from collections.abc import Mapping
from typing import Final, cast

from serverless_bench import plugins
from serverless_bench.formats.exporters.base import Exporter

EXPORTERS: Final[Mapping[str, str]] = {
    "csv": "serverless_bench.formats.exporters.csv:EXPORTER",
    "parquet": "serverless_bench.formats.exporters.parquet:EXPORTER",
    "pywren": "serverless_bench.formats.exporters.pywren:EXPORTER",
    "warp": "serverless_bench.formats.exporters.warp:EXPORTER",
}


def open_exporter(name: str) -> Exporter:
    """Return the exporter called ``name``."""
    return cast("Exporter", plugins.load("exporters", EXPORTERS, name))
